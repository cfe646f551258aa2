"""What a confined command left in its folder: how much, what of it is kept, and how all of it goes. Standard library
only. The command may have made anything: links, pipes, folders a thousand deep or closed to their owner."""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MOST_ENTRIES = 10_000
_DEEPEST = 40
_COLLECTED = 50


def too_large(folder: Path, most: int, processes: Iterable[int]) -> bool:
    """Whether the folder, with what `processes` hold open of files without a name, has more bytes than `most`; or more
    entries than 10,000."""
    total = _nameless(processes)
    if total > most:
        return True
    for count, entry in enumerate(_entries(folder)):
        with suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
        if total > most or count > MOST_ENTRIES:
            return True
    return False


def collect(folder: Path, given: dict[str, str], most: int) -> tuple[dict[str, str], list[str]]:
    """Return the text files that are new or changed, `most` bytes in all, and the names of those left out.

    Only plain files with one name are read: a link could lead out. Hidden names do not count.
    """
    found: dict[str, str] = {}
    left_out: list[str] = []
    for entry in sorted(_entries(folder), key=lambda each: each.path):
        name = os.path.relpath(entry.path, folder)
        if entry.is_dir(follow_symlinks=False) or any(part.startswith(".") for part in Path(name).parts):
            continue
        shown = os.fsencode(name).decode("utf-8", "replace")
        fits = _plain(entry) and shown == name and len(found) < _COLLECTED
        text = _text(entry.path, most) if fits else None
        if text is None:
            left_out.append(shown)
            continue
        if given.get(name) == text:
            continue
        most -= len(text.encode())
        found[name] = text
    return found, left_out[:_COLLECTED]


def clear(folder: Path) -> None:
    """Remove the folder and everything in it. Nested folders are moved up first, so depth does not matter."""
    rooms, mark, count = [folder], secrets.token_hex(8), 0
    while rooms:
        room = rooms.pop()
        with suppress(OSError):
            room.chmod(0o700)
        with os.scandir(room) as entries:
            listed = list(entries)
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                count += 1
                above = folder / f"{mark}.{count}"
                os.chmod(entry.path, 0o700)  # noqa: PTH101 - of a DirEntry
                os.rename(entry.path, above)  # noqa: PTH104
                rooms.append(above)
            else:
                os.unlink(entry.path)  # noqa: PTH108
        if room != folder:
            room.rmdir()
    folder.rmdir()


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield what is below, to a bounded depth and number."""
    rooms = [(str(folder), 0)]
    seen = 0
    while rooms:
        room, depth = rooms.pop()
        try:
            entries = os.scandir(room)
        except OSError:
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > MOST_ENTRIES + 2:
                    return
                yield entry
                if depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                    rooms.append((entry.path, depth + 1))


def _nameless(processes: Iterable[int]) -> int:
    """Return the bytes of open files that have been unlinked: they fill the disk and are in no folder."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    seen = entry.stat()
                    if seen.st_nlink == 0:
                        sizes[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return sum(sizes.values())


def _plain(entry: "os.DirEntry[str]") -> bool:
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(seen.st_mode) and seen.st_nlink == 1


def _text(path: str, most: int) -> str | None:
    """Return a file's text, None when it is longer than `most` bytes or no text."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            body = file.read(most + 1)
        return body.decode() if len(body) <= most and b"\0" not in body else None
    except (OSError, ValueError):
        return None
