"""Files of the state directory, which nobody but its owner reads."""

import os
from pathlib import Path


def private(name: str, flags: int) -> int:
    """Open a file, for `open`, that only its owner can read if it is made now."""
    return os.open(name, flags, 0o600)


def replace_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and put it in place: a reader sees the
    old one or the new one.
    """
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with open(part, "x", opener=private) as file:
        file.write(f"{text}\n")
    part.replace(path)
