"""`read`: the text of one document."""

from pathlib import PurePosixPath
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from activities.toolbox.definition import ToolContext
from activities.toolbox.errors import DocumentUnreadable
from activities.toolbox.files.documents import is_text, readable_text
from activities.toolbox.paths import LONGEST_PATH, documents_root, open_inside
from activities.toolbox.registry import tool

_MOST_BYTES: Final = 4 * 1024 * 1024


class ReadArguments(BaseModel):
    """Which document, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=LONGEST_PATH, description="As search or list_files gave it")]
    max_chars: Annotated[int, Field(ge=1, le=200_000)] = 20_000


class DocumentText(BaseModel):
    """The text of a document; `truncated` when there is more of it."""

    path: str
    title: str
    text: str
    truncated: bool


@tool(effect="read", timeout="20s", resource="file:{docs}/{path}")
def read(args: ReadArguments, context: ToolContext) -> DocumentText:
    """Read the text of one document of the documents folder.

    HTML is turned into plain text. Only text below the folder is read: no hidden file, no link that leads out.
    """
    with open_inside(documents_root(context.docs), args.path) as file:
        content = file.read(_MOST_BYTES + 1)
    if not is_text(content):
        raise DocumentUnreadable(f"{args.path!r} is not text")
    document = readable_text(args.path, content[:_MOST_BYTES])
    return DocumentText(
        path=PurePosixPath(args.path).as_posix(),
        title=document.title,
        text=document.text[: args.max_chars],
        truncated=len(document.text) > args.max_chars or len(content) > _MOST_BYTES,
    )
