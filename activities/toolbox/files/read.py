"""`read`: the text of one document."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.limits import MAX_DOCUMENT_PATH_CHARACTERS, MAX_FILE_BYTES
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.files.documents import most_bytes, readable_text
from sennit.activities.toolbox.paths import documents_root, open_inside
from sennit.activities.toolbox.registry import tool


class ReadArguments(BaseModel):
    """Which document, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_DOCUMENT_PATH_CHARACTERS,
            description="As search or list_files gave it",
        ),
    ]
    max_chars: Annotated[int, Field(ge=1, le=200_000)] = 20_000


class DocumentText(BaseModel):
    """The text of a document; `truncated` when there is more of it. `encoding` is what it was read by, or `pdf`."""  # noqa: E501 - models read it

    path: str
    title: str
    text: str
    truncated: bool
    encoding: str


@tool(effect="read", timeout="20s", typical="5ms", resource="file:{docs}/{path}")
def read(args: ReadArguments, context: ToolContext) -> DocumentText:
    """Read the text of one document of the documents folder.

    HTML and PDF are turned into plain text. Only text below the folder is read: no hidden file,
    no link that leads out.
    """
    most = most_bytes(args.path, MAX_FILE_BYTES)
    with open_inside(documents_root(context.docs), args.path) as file:
        content = file.read(most + 1)
    whole = len(content) <= most
    document = readable_text(args.path, content if whole else content[:most], whole=whole)
    if document.is_taken_for:
        context.warn(
            f"{args.path} is not UTF-8 and does not say what it is: it was read as "
            f"{document.encoding}"
        )
    return DocumentText(
        path=PurePosixPath(args.path).as_posix(),
        title=document.title,
        text=document.text[: args.max_chars],
        truncated=len(document.text) > args.max_chars or not whole,
        encoding=document.encoding,
    )
