"""Every tool of every declared MCP server, as a tool that plans can call by `server_tool`."""

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
from activities.toolbox.context import ToolContext
from activities.toolbox.definition import NAME, Tool
from activities.toolbox.errors import (
    LONGEST_MESSAGE,
    McpToolFailed,
    McpUnavailable,
    ToolError,
    ToolResultError,
    ToolSetupError,
    UnknownOutcome,
)
from activities.toolbox.mcp.configuration import Declarations, ServerDeclaration
from activities.toolbox.mcp.session import Session, SessionThread
from workflows.messages import queues
from workflows.plan.language.text import one_line

_MOST_CHARACTERS: Final = 1_000_000
_ODD: Final = re.compile(r"[^A-Za-z0-9_]")


class McpText(BaseModel):
    """What a tool without a schema of its output gives: its texts, and what it gave besides.

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
    declared = read_declared(path, Declarations).mcp_servers
    secrets = Secrets(env)
    thread = SessionThread()
    sessions = {name: thread.wait(_session(name, each, secrets)) for name, each in declared.items()}
    try:
        listed = thread.wait(_listed(list(sessions.values())))
    except McpUnavailable as problem:
        raise ToolSetupError(str(problem)) from None
    tools: dict[str, Tool] = {}
    for name, (version, found) in zip(declared, listed, strict=True):
        for each in found:
            if declared[name].offers(each.name):
                made = _tool(declared[name], sessions[name], thread, secrets, each, version)
                if made.name in tools:
                    raise ToolSetupError(f"mcpServers.{name}: two tools would be called {made.name}")
                tools[made.name] = made
    return list(tools.values())


async def _session(name: str, declared: ServerDeclaration, secrets: Secrets) -> Session:
    return Session(name, declared, secrets)


async def _listed(sessions: list[Session]) -> list[tuple[str, list[McpTool]]]:
    async def one(session: Session) -> tuple[str, list[McpTool]]:
        return await session.version(), await session.tools()

    return list(await asyncio.gather(*map(one, sessions)))


def _tool(
    declared: ServerDeclaration,
    session: Session,
    thread: SessionThread,
    secrets: Secrets,
    listed: McpTool,
    version: str,
) -> Tool:
    hints = listed.annotations
    effect = declared.effect_of(listed.name, reads=bool(hints and hints.read_only_hint))
    idempotent = bool(hints and hints.idempotent_hint)
    name = _ODD.sub("_", f"{session.name}_{listed.name}")
    if not NAME.match(name):
        raise ToolSetupError(f"mcpServers.{session.name}: {name[:80]!r} is too long for a tool's name")
    safe = effect != "write" or idempotent

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        try:
            answer = await thread.start(session.call(listed.name, arguments, declared.timeout, context.progress))
        except MCPError as error:
            raise _failure(name, secrets.hidden(str(error)), error.code, safe=safe) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise _failure(name, secrets.hidden(str(error)), 0, safe=safe) from None
        return _value(name, answer, secrets, structured=listed.output_schema is not None)

    return Tool(
        name=name,
        description=one_line(listed.description or listed.title or listed.name, LONGEST_MESSAGE),
        effect=effect,
        version=version,
        timeout=declared.timeout + 5,
        queue=queues.TOOLS,
        resource=declared.resources.get(listed.name),
        idempotent=idempotent,
        schema=listed.input_schema,
        output_schema=listed.output_schema or TypeAdapter(McpText).json_schema(mode="serialization"),
        function=call,
        arguments_model=None,
        wants_context=True,
    )


def _failure(name: str, message: str, code: int, *, safe: bool) -> ToolError:
    if code in (INVALID_PARAMS, METHOD_NOT_FOUND):
        return McpToolFailed(f"{name}: {message}")
    if code == REQUEST_TIMEOUT:
        message = "no answer in time"
    if not safe:
        return UnknownOutcome(f"{name}: {message}; whether it took effect is not known")
    return McpUnavailable(f"{name}: {message}", retryable=True)


def _value(name: str, answer: CallToolResult, secrets: Secrets, *, structured: bool) -> Any:
    plain = _plain(answer)
    if answer.is_error:
        raise McpToolFailed(secrets.hidden(f"{name}: {plain.text or 'it failed and does not say why'}"))
    if not structured:
        return plain
    if answer.structured_content is None:
        raise ToolResultError(f"{name} promises structured output and gave none")
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
