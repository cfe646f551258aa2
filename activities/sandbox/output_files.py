"""What a command left in its folder: how much, which files are kept, and how all of it is removed. Standard library
only. The command may have made anything: links, pipes, folders a thousand deep or closed to their owner."""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MOST_ENTRIES = 10_000
_DEEPEST = 40
_MOST_FILES = 50


def too_large(folder: Path, most: int, processes: Iterable[int]) -> bool:
    """Whether the folder holds more than `most` bytes, with the unlinked files that `processes` keep open, or more
    than 10,000 entries."""
    total = _unlinked_bytes(processes)
    for count, entry in enumerate(_entries(folder)):
        with suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
        if total > most or count > MOST_ENTRIES:
            return True
    return total > most


def collect(folder: Path, given: dict[str, str], most: int) -> tuple[dict[str, str], list[str]]:
    """Return the text files that are new or changed, `most` bytes in all, and the names of the files left out.

    Only regular files with one name are read: a link could lead out. Hidden names are ignored.
    """
    files: dict[str, str] = {}
    left_out: list[str] = []
    for entry in sorted(_entries(folder), key=lambda entry: entry.path):
        name = os.path.relpath(entry.path, folder)
        if entry.is_dir(follow_symlinks=False) or any(part.startswith(".") for part in Path(name).parts):
            continue
        printable = os.fsencode(name).decode("utf-8", "replace")
        text = _text(entry, most) if printable == name and len(files) < _MOST_FILES else None
        if text is None:
            left_out.append(printable)
        elif given.get(name) != text:
            most -= len(text.encode())
            files[name] = text
    return files, left_out[:_MOST_FILES]


def clear(folder: Path) -> None:
    """Remove the folder and everything in it. Nested folders are moved up first, so depth does not matter."""
    pending, prefix, count = [folder], secrets.token_hex(8), 0
    while pending:
        current = pending.pop()
        with suppress(OSError):
            current.chmod(0o700)
        with os.scandir(current) as entries:
            inside = list(entries)
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                count += 1
                moved = folder / f"{prefix}.{count}"
                os.chmod(entry.path, 0o700)  # noqa: PTH101 - of a DirEntry
                os.rename(entry.path, moved)  # noqa: PTH104
                pending.append(moved)
            else:
                os.unlink(entry.path)  # noqa: PTH108
        if current != folder:
            current.rmdir()
    folder.rmdir()


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield what is below, to a bounded depth and number."""
    pending = [(str(folder), 0)]
    count = 0
    while pending:
        path, depth = pending.pop()
        try:
            entries = os.scandir(path)
        except OSError:
            continue
        with entries:
            for entry in entries:
                count += 1
                if count > MOST_ENTRIES + 2:
                    return
                yield entry
                if depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, depth + 1))


def _unlinked_bytes(processes: Iterable[int]) -> int:
    """Return the bytes of open files that have been unlinked: they fill the disk and are in no folder."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    if status.st_nlink == 0:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def _text(entry: "os.DirEntry[str]", most: int) -> str | None:
    """Return the text of a regular file with one name; None for anything else or more than `most` bytes."""
    try:
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return None
        with open(os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            body = file.read(most + 1)
        return body.decode() if len(body) <= most and b"\0" not in body else None
    except (OSError, ValueError):
        return None
