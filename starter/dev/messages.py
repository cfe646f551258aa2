"""What the person who waits for a local stack reads: progress on standard error,
and why there is none.
"""

import sys
from collections.abc import Callable
from pathlib import Path

Say = Callable[[str], None]


class LocalStackFailed(Exception):
    """The local stack, or a part of it, cannot start or stop. The text says
    why and where its log is.
    """


class WrongSettings(LocalStackFailed):
    """The workers refuse a setting, so another start would not help. The text names the setting."""


def to_stderr(line: str) -> None:
    """Write one line at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def last_lines(log: Path, *, since: int = 0) -> str:
    """Return the last five lines with text in a log, after its first `since` bytes."""
    if not log.exists():
        return ""
    text = log.read_bytes()[since:][-20_000:].decode(errors="replace")
    lines = [line.strip() for line in text.splitlines()]
    with_text = list(filter(None, lines))
    return "\n".join(with_text[-5:])
