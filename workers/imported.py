"""Notes the user's modules that a worker has imported, for those who ask whether one has changed since."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_noted: dict[str, str] = {}


def note_imported(note: Path, tools: Sequence[str], folders: Sequence[Path]) -> None:
    """Write a digest of each file of a module that belongs to a package of `tools` or lies below one of `folders`.

    A file keeps the digest that it had when it was first noted. The note is replaced at once, and only its owner can
    read it.
    """
    found = {file: _digest(Path(file)) for file in _files(tools, folders) if file not in _noted}
    if _noted and not found:
        return
    _noted.update(found)
    part = note.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        with open(part, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as written:
            json.dump(_noted, written, indent=2)
        part.replace(note)


def _files(tools: Sequence[str], folders: Sequence[Path]) -> Iterator[str]:
    tops = {name.partition(".")[0] for name in tools}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and (name.partition(".")[0] in tops or _is_below(Path(file), folders)):
            yield file


def _is_below(file: Path, folders: Sequence[Path]) -> bool:
    """Whether a folder holds a file otherwise than by an environment of Python in it."""
    return any(file.is_relative_to(each) for each in folders) and not file.is_relative_to(sys.prefix)


def _digest(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:  # it was removed meanwhile, which is a change
        return ""
