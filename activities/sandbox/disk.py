"""Whether code has written more than it may. Standard library only."""

import os
from collections.abc import Iterable
from contextlib import suppress

from sennit.activities.sandbox import processes
from sennit.activities.sandbox.output_files import MAX_FOLDER_ENTRIES, entries


def is_full(folder: int) -> bool:
    """Whether the file system of the folder, which is of limited size, has no space left
    or holds 10,000 entries.
    """
    usage = os.fstatvfs(folder)
    return usage.f_bfree == 0 or usage.f_files - usage.f_ffree > MAX_FOLDER_ENTRIES


def is_exceeded(folder: int, most: int, largest: int, pids: Iterable[int]) -> bool:
    """Whether the folder holds more than `most` bytes or 10,000 entries, as far as
    can be seen from outside.

    Counted with it are files without a name that the processes hold: open ones by their size,
    mapped ones as `largest` bytes, since nobody but root can see theirs. A folder that cannot be
    looked into counts as too much.
    """
    total = _nameless_bytes(os.fstat(folder).st_dev, largest, pids)
    closed: list[str] = []
    for count, entry in enumerate(entries(folder, closed.append)):
        with suppress(OSError):
            total += entry.found.stat(follow_symlinks=False).st_blocks * 512
        if total > most or count > MAX_FOLDER_ENTRIES or closed:
            return True
    return total > most or bool(closed)


def _nameless_bytes(device: int, largest: int, pids: Iterable[int]) -> int:
    sizes: dict[int, int] = {}
    mapped: set[int] = set()
    for pid in pids:
        for task in processes.tasks(pid):  # each thread may have open files of its own
            sizes |= _open_files(task, device)
            mapped |= _mapped_files(task, device)
    return sum(sizes.values()) + largest * len(mapped - sizes.keys())


def _open_files(task: str, device: int) -> dict[int, int]:
    """Return the bytes of each open file without a name, by inode."""
    sizes: dict[int, int] = {}
    with suppress(OSError), os.scandir(f"{task}/fd") as descriptors:
        for descriptor in descriptors:
            with suppress(OSError):
                status = descriptor.stat()
                if status.st_nlink == 0 and status.st_dev == device:
                    sizes[status.st_ino] = status.st_blocks * 512
    return sizes


def _mapped_files(task: str, device: int) -> set[int]:
    """Return the inodes of mapped files that have no name any more."""
    found = set()
    with suppress(OSError), open(f"{task}/maps", "rb") as maps:  # noqa: PTH123
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].endswith(b" (deleted)\n"):
                major, _, minor = fields[3].partition(b":")
                if os.makedev(int(major, 16), int(minor, 16)) == device:
                    found.add(int(fields[4]))
    return found
