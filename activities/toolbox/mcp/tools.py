"""The tools of the declared MCP servers, which plans call as `server_tool`."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as McpTool
from pydantic import BaseModel, TypeAdapter

from activities.toolbox.configuration import Secrets, read_declared
from activities.toolbox.definition import NAME, Tool, ToolContext
from activities.toolbox.errors import (
    LONGEST_MESSAGE,
    McpToolFailed,
    McpUnavailable,
    ToolError,
    ToolResultError,
    ToolSetupError,
    UnknownOutcome,
)
from activities.toolbox.mcp.configuration import Declarations
from activities.toolbox.mcp.session import Session, SessionThread
from activities.toolbox.redaction import mask
from workflows.plan.language.text import one_line

_MOST_CHARACTERS: Final = 1_000_000
_MARKED: Final = (
    'the server marks it as read-only; if you trust that, give it "effects": {{"{name}": "read"}} in SENNIT_MCP'
)
_ODD: Final = re.compile(r"[^A-Za-z0-9_]")


class McpText(BaseModel):
    """The result of a tool that has no schema of its output.

    `links` are URIs of resources; `left_out` names pictures, sounds and other bytes; `truncated` when the text had
    more than 1,000,000 characters.
    """

    text: str
    links: list[str]
    left_out: list[str]
    truncated: bool


def mcp_tools(path: Path, env: Mapping[str, str]) -> list[Tool]:
    """Start the servers that the file at `path` declares and return their tools.

    What a server lists now is what plans can call until this worker ends. Raises ToolSetupError naming the server
    that does not start, the variable that is not set, or the name that two tools would have.
    """
    secrets = Secrets(env)
    sessions = [Session(name, each, secrets) for name, each in read_declared(path, Declarations).mcp_servers.items()]
    thread = SessionThread()
    try:
        lists = thread.wait(_list_tools(sessions))
    except McpUnavailable as problem:
        raise ToolSetupError(str(problem)) from None
    tools: dict[str, Tool] = {}
    for session, (version, found) in zip(sessions, lists, strict=True):
        for each in found:
            if session.declared.offers(each.name):
                tool = _tool(session, thread, each, version)
                if tool.name in tools:
                    raise ToolSetupError(f"mcpServers.{session.name}: two tools would be called {tool.name}")
                tools[tool.name] = tool
    return list(tools.values())


async def _list_tools(sessions: list[Session]) -> list[tuple[str, list[McpTool]]]:
    return await asyncio.gather(*(session.list_tools() for session in sessions))


def _tool(session: Session, thread: SessionThread, declared: McpTool, version: str) -> Tool:
    server, hints = session.declared, declared.annotations
    given = server.effect_of(declared.name)
    effect = given or "write"
    idempotent = bool(hints and hints.idempotent_hint)
    name = _ODD.sub("_", f"{session.name}_{declared.name}")
    if not NAME.match(name):
        raise ToolSetupError(f"mcpServers.{session.name}: {name[:80]!r} is too long for a tool's name")
    repeatable = effect != "write" or idempotent

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        try:
            answer = await thread.start(session.call(declared.name, arguments, server.timeout, context.progress))
            return _output(answer, structured=declared.output_schema is not None)
        except MCPError as error:
            failure = _failure(str(error), error.code, repeatable=repeatable)
        except (OSError, RuntimeError, ValueError) as error:
            failure = _failure(str(error), 0, repeatable=repeatable)
        except (McpToolFailed, ToolResultError) as error:
            failure = error
        raise type(failure)(f"{name}: {failure}", retryable=failure.retryable)

    return Tool(
        name=name,
        description=one_line(mask(declared.description or declared.title or declared.name), LONGEST_MESSAGE),
        effect=effect,
        hint=_MARKED.format(name=declared.name) if given is None and hints and hints.read_only_hint else "",
        version=version,
        timeout=server.timeout + 5,
        resource=server.resources.get(declared.name),
        idempotent=idempotent,
        schema=mask(declared.input_schema),
        output_schema=mask(declared.output_schema) or TypeAdapter(McpText).json_schema(mode="serialization"),
        function=call,
    )


def _failure(message: str, code: int, *, repeatable: bool) -> ToolError:
    if code in (INVALID_PARAMS, METHOD_NOT_FOUND):
        return McpToolFailed(message)
    if code == REQUEST_TIMEOUT:
        message = "no answer in time"
    if not repeatable:
        return UnknownOutcome(f"{message}; whether it took effect is not known")
    return McpUnavailable(message, retryable=True)


def _output(answer: CallToolResult, *, structured: bool) -> Any:
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
            left_out.append(f"{block.mime_type}, {len(block.data) * 3 // 4} bytes")
    text = "\n".join(texts)
    return McpText(
        text=text[:_MOST_CHARACTERS], links=links[:100], left_out=left_out[:100], truncated=len(text) > _MOST_CHARACTERS
    )
