"""`list_files`: which documents there are."""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import PathRefused
from sennit.activities.toolbox.paths import documents_root, scan
from sennit.activities.toolbox.registry import tool


class ListFilesArguments(BaseModel):
    """Which files to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    glob: Annotated[
        str,
        Field(
            min_length=1, max_length=200, description="Pattern such as **/*.md; ** spans folders"
        ),
    ] = "**/*"
    max_items: Annotated[int, Field(ge=1, le=2000)] = 200


class ListedFile(BaseModel):
    """One file."""

    path: str
    bytes: int


class FileList(BaseModel):
    """The matching files, sorted by path; `truncated` when there are more than were asked for."""

    count: int
    items: list[ListedFile]
    truncated: bool


@tool(effect="read", timeout="20s", typical="5ms", resource="file")
def list_files(args: ListFilesArguments, context: ToolContext) -> FileList:
    """List the files of the documents folder whose path matches a pattern.

    Hidden files, links that lead out and anything that is no regular file are left out.
    """
    pattern = re.sub(r"(\*\*/)+", "**/", args.glob.removeprefix("./")).split("/")
    if pattern[0] == "" or ".." in pattern:
        raise PathRefused(
            f"glob {args.glob!r} leads out of the documents; patterns are relative and without '..'"
        )
    root = documents_root(context.docs)
    matching = [file for file in scan(root) if _matches(file.path.split("/"), pattern)]
    items: list[ListedFile] = []
    for file in matching[: args.max_items]:
        items.append(ListedFile(path=file.path, bytes=file.size))
    return FileList(count=len(items), items=items, truncated=len(matching) > len(items))


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Match part by part; `reached[n]` says whether the parts so far match the
    first n of the pattern.
    """
    # A path without parts fits an empty pattern, and `**`, which may span no folder.
    reached = [True, pattern[0] == "**"] + [False] * (len(pattern) - 1)
    for part in parts:
        following = [False]
        for n, expected in enumerate(pattern):
            if expected == "**":
                following.append(reached[n + 1] or following[n])
            else:
                following.append(reached[n] and fnmatchcase(part, expected))
        reached = following
    return reached[-1]
