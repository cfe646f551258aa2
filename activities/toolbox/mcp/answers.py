"""What the answers of MCP servers are to plans: outputs, and the errors of calls."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

from sennit.activities.limits import MAX_RESULT_CHARACTERS
from sennit.activities.toolbox.errors import McpToolFailed, McpUnavailable, ToolError, ToolResultError, UnknownOutcome

_NO_RESOURCE: Final = -32002
_FAULTS_OF_THE_CALL: Final = (INVALID_PARAMS, METHOD_NOT_FOUND, _NO_RESOURCE)


class McpText(BaseModel):
    """The result of a tool that has no schema of its output, or the content of a resource.

    `links` are URIs of resources; `left_out` names pictures, sounds and other bytes; `truncated` when the text had
    more than 1,000,000 characters.
    """

    text: str
    links: list[str]
    left_out: list[str]
    truncated: bool


@contextmanager
def failures(name: str, *, repeatable: bool) -> Iterator[None]:
    """Raise what goes wrong in a call as a ToolError that begins with its name."""
    try:
        yield
        return
    except MCPError as error:
        failure = _failure(str(error), error.code, repeatable=repeatable)
    except (OSError, RuntimeError, ValueError) as error:
        failure = _failure(str(error) or "no answer in time", 0, repeatable=repeatable)
    except (McpToolFailed, ToolResultError) as error:
        failure = error
    raise type(failure)(f"{name}: {failure}", retryable=failure.retryable)


def _failure(message: str, code: int, *, repeatable: bool) -> ToolError:
    """Return the error of a call that a server, or its session, has answered with an error of the protocol."""
    if code in _FAULTS_OF_THE_CALL:
        return McpToolFailed(message)
    if code == REQUEST_TIMEOUT:
        message = "no answer in time"
    if not repeatable:
        return UnknownOutcome(f"{message}; whether it took effect is not known")
    return McpUnavailable(message, retryable=True)


def output_of(answer: CallToolResult, *, structured: bool) -> Any:
    """Return the output; raises McpToolFailed, or ToolResultError if it does not keep to its schema's promise."""
    plain = _plain(answer)
    if answer.is_error:
        raise McpToolFailed(plain.text or "it failed without a reason")
    if not structured:
        return plain
    if answer.structured_content is None:
        raise ToolResultError("it promises structured output and gave none")
    return answer.structured_content


def _plain(answer: CallToolResult) -> McpText:
    texts, links, left_out = [], [], []
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
            left_out.append(_bytes(block.mime_type, block.data))
    return text_of(texts, links, left_out)


def content_of(contents: Iterable[TextResourceContents | BlobResourceContents]) -> McpText:
    """Return what a resource holds, as far as it is text."""
    texts, links, left_out = [], [], []
    for each in contents:
        links.append(str(each.uri))
        if isinstance(each, TextResourceContents):
            texts.append(each.text)
        else:
            left_out.append(_bytes(each.mime_type, each.blob))
    return text_of(texts, links, left_out)


def text_of(texts: Iterable[str], links: list[str], left_out: list[str]) -> McpText:
    text = "\n".join(texts)
    return McpText(
        text=text[:MAX_RESULT_CHARACTERS],
        links=links[:100],
        left_out=left_out[:100],
        truncated=len(text) > MAX_RESULT_CHARACTERS,
    )


def _bytes(kind: str | None, data: str) -> str:
    return f"{kind or 'unknown type'}, {len(data) * 3 // 4} bytes"
