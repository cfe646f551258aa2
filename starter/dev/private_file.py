"""Files of the state directory that change as a whole."""

import os
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and put it in place: a reader sees the old one or the new one."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with open(part, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(f"{text}\n")
    part.replace(path)
