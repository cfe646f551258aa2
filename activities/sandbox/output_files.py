"""What a command left in its folder: which files are kept, and how all of it is removed.
Standard library only.

The command may have made anything: links, pipes, folders a thousand deep or closed to their owner.
So nothing here follows a link or a path: each name is opened in the open folder that holds it.
"""

import os
import secrets
import stat
from collections.abc import Callable, Container, Iterator
from itertools import islice
from typing import NamedTuple

MAX_FOLDER_ENTRIES = 10_000  # files and folders that code may leave, since all are looked at
MAX_SANDBOX_FILES = 50  # texts that code is given, and that it leaves
DEEPEST = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """Something in an open folder, and its path from the root."""

    folder: int
    path: str
    found: "os.DirEntry[str]"


def entries(
    folder: int,
    on_closed: Callable[[str], None],
    path: str = "",
    depth: int = 0,
    apart: Container[str] = (),
) -> Iterator[Entry]:
    """Yield what is below, sorted, and of a folder with more than 10,000 entries some. Nothing is
    yielded of those that are looked at `apart`.

    `on_closed` is called with the path of a folder that cannot be opened or is more than 40 deep.
    """
    with os.scandir(folder) as scan:
        inside = sorted(islice(scan, MAX_FOLDER_ENTRIES + 2), key=lambda entry: entry.name)
    for entry in inside:
        if entry.name in apart:
            continue
        yield Entry(folder, path + entry.name, entry)
        if not entry.is_dir(follow_symlinks=False):
            continue
        try:
            if depth == DEEPEST:
                raise PermissionError
            inner = os.open(entry.name, _FOLDER, dir_fd=folder)
        except PermissionError:
            on_closed(path + entry.name)
        except OSError:
            continue  # it is gone, or something else by now
        else:
            try:
                yield from entries(inner, on_closed, f"{path}{entry.name}/", depth + 1)
            finally:
                os.close(inner)


def collect(
    folder: int, inputs: dict[str, str], most: int, apart: Container[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Return the text files that are new or changed, `most` bytes in all, and the names of the
    files left out, without those that are looked at `apart`.

    Only regular files with one name are read, and only under names that can be printed.
    Hidden names are ignored.
    """
    files: dict[str, str] = {}
    left_out: list[str] = []
    for entry in entries(folder, left_out.append, apart=apart):
        name = entry.path
        is_hidden = name.startswith(".") or "/." in name
        if entry.found.is_dir(follow_symlinks=False) or is_hidden:
            continue
        text = _text(entry, most) if name.isprintable() else None
        if text is not None and inputs.get(name) == text:
            continue
        if text is None or len(files) == MAX_SANDBOX_FILES:
            left_out.append(name)
        else:
            most -= len(text.encode())
            files[name] = text
    return files, list(map(_printable, left_out[:MAX_SANDBOX_FILES]))


def clear(folder: int) -> None:
    """Remove everything in the folder. Nested folders are moved up first, so
    depth does not matter.
    """
    pending, prefix, count = ["."], secrets.token_hex(8), 0
    while pending:
        name = pending.pop()
        current = os.open(name, _FOLDER, dir_fd=folder)
        with os.scandir(current) as scan:
            inside = list(scan)
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                count += 1
                _open_to_owner(entry.name, current)
                os.rename(entry.name, f"{prefix}.{count}", src_dir_fd=current, dst_dir_fd=folder)
                pending.append(f"{prefix}.{count}")
            else:
                os.unlink(entry.name, dir_fd=current)
        os.close(current)
        if name != ".":
            os.rmdir(name, dir_fd=folder)


def _printable(name: str) -> str:
    return "".join(each if each.isprintable() else "\ufffd" for each in name)


def _open_to_owner(name: str, folder: int) -> None:
    """Make a folder readable and writable, whatever its mode."""
    descriptor = os.open(
        name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
    )
    os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101 - of a descriptor
    os.close(descriptor)


def _text(entry: Entry, most: int) -> str | None:
    """Return the text of a regular file with one name; None for anything else or
    more than `most` bytes.
    """
    try:
        with open(os.open(entry.found.name, _FILE, dir_fd=entry.folder), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                return None
            body = file.read(most + 1)
        if len(body) > most or b"\0" in body:
            return None
        return body.decode()
    except (OSError, ValueError):
        return None
