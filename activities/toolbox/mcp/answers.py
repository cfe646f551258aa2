"""What the answers of MCP servers are to plans: outputs, and the errors of calls."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, ValidationError

from sennit.activities.limits import MAX_MEDIA_BYTES, MAX_RESULT_CHARACTERS
from sennit.activities.toolbox.definition import JsonSchema
from sennit.activities.toolbox.errors import (
    McpToolFailed,
    McpUnavailable,
    ToolError,
    UnknownOutcome,
)
from sennit.activities.toolbox.mcp.stdio import ANSWERED
from sennit.activities.toolbox.media import BadMedia, MediaFile, decoded
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.validation_messages import first_error
from sennit.workflows.plan.limits import MAX_CALL_MEDIA

_NO_RESOURCE: Final = -32002
_FAULTS_OF_THE_CALL: Final = (INVALID_PARAMS, METHOD_NOT_FOUND, _NO_RESOURCE)


class McpText(BaseModel):
    """The result of a tool that has no schema of its output, or the content of a resource.

    `links` are URIs of resources; `media` are its images, PDFs and sounds, which a model call takes as `media`;
    `left_out` names other bytes; `truncated` when the text had more than 1,000,000 characters.
    """  # noqa: E501 - models read it

    text: str
    links: list[str]
    media: list[MediaFile] = []
    left_out: list[str]
    truncated: bool


@contextmanager
def failures(name: str, *, repeatable: bool) -> Iterator[None]:
    """Raise what goes wrong in a call as a ToolError that begins with its name."""
    try:
        yield
        return
    except MCPError as error:
        failure = _failure(error, repeatable=repeatable)
    except ValidationError as error:
        failure = McpToolFailed(
            f"its answer is not what the protocol says: {first_error(error)[1]}"
        )
    except (OSError, RuntimeError, ValueError) as error:
        failure = _in_doubt(str(error) or "no answer in time", repeatable=repeatable)
    except McpToolFailed as error:
        failure = error
    raise type(failure)(f"{name}: {failure}", retryable=failure.retryable)


def _failure(error: MCPError, *, repeatable: bool) -> ToolError:
    """Return the error of a call that a server, or its session, has answered with an
    error of the protocol.
    """
    if error.code in _FAULTS_OF_THE_CALL or error.code == PARSE_ERROR or error.data == ANSWERED:
        return McpToolFailed(str(error))
    if error.code == REQUEST_TIMEOUT:
        return _in_doubt("no answer in time", repeatable=repeatable)
    return _in_doubt(str(error), repeatable=repeatable)


def _in_doubt(message: str, *, repeatable: bool) -> ToolError:
    """Return the error of a call that the server may have made or not."""
    if not repeatable:
        return UnknownOutcome(f"{message}; whether it took effect is not known")
    return McpUnavailable(message, retryable=True)


def output_of(
    answer: CallToolResult, schema: JsonSchema | None, warn: Callable[[str], None]
) -> Any:
    """Return the output of a tool, whose schema is given if it promises structured
    output. An answer that does not keep to it is given as text, with a warning: the call
    was made. Raises McpToolFailed.
    """
    plain = _plain(answer)
    if answer.is_error:
        raise McpToolFailed(_reason(plain.text, answer.structured_content))
    if schema is None:
        return plain
    structured = answer.structured_content
    if structured is None:
        structured = _json_in(plain.text)  # servers may give the same JSON as text
    if structured is None:
        warn("it promises structured output and gave text, which is the output")
        return plain
    problem = next(violations(structured, schema), None)
    if problem is None:
        if plain.media:
            warn(
                f"{len(plain.media)} images, PDFs or sounds beside its structured output are left "
                "out"
            )
        return structured
    if answer.structured_content is not None:
        where, sentence = problem
        place = f"{place_of(where)} " if where else ""
        warn(
            f"its structured output is not what it promises ({place}{sentence}); its text is the "
            "output"
        )
    else:
        warn("it promises structured output and gave text, which is the output")
    text = plain.text or json.dumps(structured, ensure_ascii=False)
    return plain.model_copy(update={"text": text[:MAX_RESULT_CHARACTERS]})


def _json_in(text: str) -> Any:
    """Return the JSON that a text is, None if it is none."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> None:
    """Raise ValueError: NaN and infinities are no JSON."""
    raise ValueError(name)


def _reason(text: str, structured: Any) -> str:
    """Return why a tool failed: its text, and what it gave beside that."""
    details = ""
    if structured is not None:
        details = json.dumps(structured, ensure_ascii=False)
    if text and details:
        return f"{text} {details}"
    return text or details or "it failed without a reason"


def _plain(answer: CallToolResult) -> McpText:
    texts, links = list[str](), list[str]()
    bytes_of = _Bytes()
    for block in answer.content:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, ResourceLink):
            links.append(str(block.uri))
        elif isinstance(block, EmbeddedResource):
            links.append(str(block.resource.uri))
            if isinstance(block.resource, TextResourceContents):
                texts.append(block.resource.text)
            else:
                bytes_of.take(
                    block.resource.mime_type,
                    block.resource.blob,
                    _file_name(str(block.resource.uri)),
                )
        else:
            bytes_of.take(block.mime_type, block.data)
    return text_of(texts, links, bytes_of.left_out, bytes_of.media)


def content_of(contents: Iterable[TextResourceContents | BlobResourceContents]) -> McpText:
    """Return what a resource holds, as far as it is text."""
    texts, links = list[str](), list[str]()
    bytes_of = _Bytes()
    for each in contents:
        links.append(str(each.uri))
        if isinstance(each, TextResourceContents):
            texts.append(each.text)
        else:
            bytes_of.take(each.mime_type, each.blob, _file_name(str(each.uri)))
    return text_of(texts, links, bytes_of.left_out, bytes_of.media)


def text_of(
    texts: Iterable[str], links: list[str], left_out: list[str], media: Iterable[MediaFile] = ()
) -> McpText:
    text = "\n".join(texts)
    return McpText(
        text=text[:MAX_RESULT_CHARACTERS],
        links=links[:100],
        media=list(media),
        left_out=left_out[:100],
        truncated=len(text) > MAX_RESULT_CHARACTERS,
    )


class _Bytes:
    """The bytes in an answer: media that models take, as far as a node may keep
    it, and what is left out.
    """

    def __init__(self) -> None:
        self.media: list[MediaFile] = []
        self.left_out: list[str] = []
        self._room = MAX_MEDIA_BYTES

    def take(self, content_type: str | None, data: str, name: str = "") -> None:
        """Take bytes of a type that the server says; what they are, they say themselves."""
        size = len(data) * 3 // 4
        try:
            media: MediaFile | None = MediaFile.of(decoded(data, ""), name)
        except BadMedia:
            media = None
        if media is None or size > self._room or len(self.media) == MAX_CALL_MEDIA:
            self.left_out.append(f"{content_type or 'unknown type'}, {size} bytes")
        else:
            self._room -= size
            self.media.append(media)


def _file_name(uri: str) -> str:
    return uri.rpartition("/")[2][:100]
