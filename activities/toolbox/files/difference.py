"""What a file would become, as a person reads it before it is written."""

from difflib import unified_diff

from sennit.activities.limits import MAX_DIFFERENCE_BYTES, MAX_DIFFERENCE_LINES
from sennit.workflows.plan.language.text import text_bytes


def difference(name: str, old: bytes | None, new: str) -> str:
    """Return the unified diff against what is there, or else the sizes and the new text."""
    size = f"{text_bytes(new):,} bytes"
    if old is None:
        return f"new file {name}, {size}\n{new}"
    if old == new.encode(errors="replace"):
        return f"{name} is this already, {size}\n{new}"
    before = _lines(old)
    after = new.splitlines(keepends=True)
    if (
        before is None
        or text_bytes(new) > MAX_DIFFERENCE_BYTES
        or len(after) > MAX_DIFFERENCE_LINES
    ):
        return f"{name}, {len(old):,} bytes, would be replaced by {size}\n{new}"
    diff = unified_diff(before, after, f"{name} (now)", f"{name} (then)")
    lines: list[str] = []
    for line in diff:
        lines.append(line)
        if not line.endswith("\n"):
            lines.append("\n\\ no newline at the end\n")
    return "".join(lines)


def _lines(body: bytes) -> list[str] | None:
    """Return the lines of a text that is not too long to compare."""
    try:
        if len(body) > MAX_DIFFERENCE_BYTES:
            return None
        lines = body.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    if len(lines) > MAX_DIFFERENCE_LINES:
        return None
    return lines
