"""`write`: writes one text file below the folder that a worker opens to plans."""

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.limits import (
    MAX_COMPARED_BYTES,
    MAX_DOCUMENT_PATH_CHARACTERS,
    MAX_WRITTEN_CHARACTERS,
)
from sennit.activities.toolbox.definition import Preview, Tool
from sennit.activities.toolbox.errors import PathRefused, ToolError, ToolSetupError
from sennit.activities.toolbox.files.difference import difference
from sennit.activities.toolbox.paths import inner_parts, open_folder
from sennit.activities.toolbox.registry import Registry, tool

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class WriteArguments(BaseModel):
    """Which file, and its content."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_DOCUMENT_PATH_CHARACTERS,
            description="Relative to the folder",
        ),
    ]
    text: Annotated[str, Field(max_length=MAX_WRITTEN_CHARACTERS)]
    mode: Annotated[
        Literal["replace", "create"], Field(description="create: fail if it exists")
    ] = "replace"


class WrittenFile(BaseModel):
    """The file as it is now; `changed` is false when it had the same content before."""

    path: str
    bytes: int
    sha256: str
    changed: bool


def write_tools(root: Path) -> list[Tool]:
    """Return the tool that writes to that folder. Raises ToolSetupError
    when this worker may not.
    """
    folder = root.resolve()
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ToolSetupError(f"{str(root)!r} is not a folder that this worker may write to")
    registry = Registry()

    resource, preview = f"file:{folder}/{{path}}", partial(_preview, folder)

    @tool(
        effect="write",
        timeout="20s",
        idempotent=True,
        resource=resource,
        preview=preview,
        registry=registry,
    )
    def write(args: WriteArguments) -> WrittenFile:
        """Write a whole text file, creating its folders. Readers see the old file or the
        new one, never a part.
        """
        return _write(folder, args)

    return list(registry)


def _preview(root: Path, args: WriteArguments) -> Preview:
    """Return the difference to the file that is there, and the digest of that file."""
    parts = _parts(args.path)
    try:
        folder = open_folder(root, parts[:-1])
        try:
            old = _read(folder, parts[-1], MAX_COMPARED_BYTES)
        finally:
            os.close(folder)
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise _refused(args, error) from None
    text = difference(PurePosixPath(*parts).as_posix(), old, args.text)
    if old is None:
        return Preview(text, "")
    return Preview(text, hashlib.sha256(old).hexdigest()[:40])


def _parts(path: str) -> tuple[str, ...]:
    # A line break or a change of direction would show a person another name.
    if not path.isprintable():
        raise PathRefused(f"{path[:80]!r} has characters that cannot be printed")
    return inner_parts(path)


def _refused(args: WriteArguments, error: OSError) -> ToolError:
    lasting = isinstance(
        error, FileExistsError | NotADirectoryError | IsADirectoryError | PermissionError
    )
    return ToolError(f"{args.path!r} cannot be written: {error.strerror}", retryable=not lasting)


def _write(root: Path, args: WriteArguments) -> WrittenFile:
    """Write the file. Safe to repeat: a second attempt finds the file and changes nothing."""
    parts = _parts(args.path)
    body = args.text.encode()
    try:
        folder = open_folder(root, parts[:-1], create=True)
        try:
            old = _read(folder, parts[-1], len(body) + 1)
            if old is not None and old != body and args.mode == "create":
                raise PathRefused(f"{args.path!r} exists and holds something else")
            if old != body:
                _replace(folder, parts[-1], body)
        finally:
            os.close(folder)
    except OSError as error:
        raise _refused(args, error) from None
    return WrittenFile(
        path=PurePosixPath(*parts).as_posix(),
        bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        changed=old != body,
    )


def _read(folder: int, name: str, most: int) -> bytes | None:
    """Return at most `most` bytes of the file; None when there is none.

    A link counts as an empty file, so it is replaced and never followed; a folder is an error.
    """
    try:
        with open(name, "rb", opener=lambda path, _: os.open(path, _READ, dir_fd=folder)) as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return b""
        raise


def _replace(folder: int, name: str, body: bytes) -> None:
    """Write a temporary file and rename it."""
    temporary = f".{secrets.token_hex(8)}"
    try:
        with open(
            temporary, "wb", opener=lambda path, _: os.open(path, _CREATE, 0o644, dir_fd=folder)
        ) as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
