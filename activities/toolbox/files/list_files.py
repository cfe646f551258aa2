"""`list_files`: the files of the documents folder."""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from activities.toolbox.context import ToolContext
from activities.toolbox.errors import PathRefused
from activities.toolbox.paths import documents_root, scan
from activities.toolbox.registry import tool


class ListFilesArguments(BaseModel):
    """Which files to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    glob: Annotated[
        str, Field(min_length=1, max_length=200, description="Pattern such as **/*.md; ** spans folders")
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


@tool(effect="read", timeout="20s", resource="file")
def list_files(args: ListFilesArguments, context: ToolContext) -> FileList:
    """List the files of the documents folder whose path matches a pattern.

    Hidden files, links that lead out and anything that is no regular file are left out.
    """
    pattern = re.sub(r"(\*\*/)+", "**/", args.glob.removeprefix("./")).split("/")
    if pattern[0] == "" or ".." in pattern:
        raise PathRefused(f"glob {args.glob!r} leads out of the documents; patterns are relative and without '..'")
    root = documents_root(context.docs)
    matching = [file for file in scan(root) if _matches(file.path.split("/"), pattern)]
    items = [ListedFile(path=file.path, bytes=file.size) for file in matching[: args.max_items]]
    return FileList(count=len(items), items=items, truncated=len(matching) > len(items))


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Match part by part, keeping every position the pattern may be at: linear in both lengths."""
    positions = {0}
    for part in parts:
        following: set[int] = set()
        for position in _past_stars(positions, pattern):
            if position < len(pattern):
                if pattern[position] == "**":
                    following.add(position)
                elif fnmatchcase(part, pattern[position]):
                    following.add(position + 1)
        positions = following
    return len(pattern) in _past_stars(positions, pattern)


def _past_stars(positions: set[int], pattern: list[str]) -> set[int]:
    """Add the positions reached when a `**` spans no folder at all."""
    reached = set(positions)
    for position in sorted(positions):
        while position < len(pattern) and pattern[position] == "**":
            position += 1
            reached.add(position)
    return reached
