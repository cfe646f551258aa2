"""Lines for the person who waits."""

import sys
from collections.abc import Callable
from pathlib import Path

Say = Callable[[str], None]


def to_stderr(line: str) -> None:
    """Write one line for a person at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def last_lines(log: Path, *, since: int = 0) -> str:
    """Return the last five lines with text in a log, after its first `since` bytes."""
    text = log.read_bytes()[since:][-20_000:].decode(errors="replace") if log.exists() else ""
    return "\n".join([line.strip() for line in text.splitlines() if line.strip()][-5:])
