"""The tools of the declared MCP servers, which plans call as `server_tool`."""

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mcp_types import Tool as McpTool
from pydantic import TypeAdapter

from sennit.activities.limits import MAX_MESSAGE_CHARACTERS, MAX_NODE_WARNINGS, MAX_START_SECONDS
from sennit.activities.toolbox.configuration import Secrets, flaw_of, is_deep, read_declared
from sennit.activities.toolbox.definition import NAME, Tool, ToolContext
from sennit.activities.toolbox.errors import (
    AddressRefused,
    McpCredentialsRefused,
    McpUnavailable,
    ToolSetupError,
)
from sennit.activities.toolbox.mcp.answers import McpText, failures, output_of
from sennit.activities.toolbox.mcp.configuration import Declarations
from sennit.activities.toolbox.mcp.resources import TOOL, resource_tool
from sennit.activities.toolbox.mcp.session import Hears, Listed, Session
from sennit.activities.toolbox.mcp.transport import leave_out
from sennit.activities.toolbox.redaction import mask
from sennit.activities.toolbox.registry import Registry
from sennit.activities.toolbox.server_thread import ServerThread
from sennit.workflows.plan.language.text import one_line, printable

_MARKED: Final = (
    'the server marks it as read-only; if you trust that, give it "effects": {{"{name}": "read"}} '
    "in SENNIT_MCP"
)
_ODD: Final = re.compile(r"[^A-Za-z0-9_]")
_PAUSE, _LONG_PAUSE = 1.0, 60.0

log = logging.getLogger("mcp.server")


class McpServers:
    """The servers that a file declares, and the tools of those that have listed them.

    What a server has listed last is what plans can call: it is listed again when the server says
    that its list has changed, and when it was started again. A server that does not answer is
    started again, after a pause that grows to 60 s, until it does.
    """

    def __init__(self, path: Path, env: Mapping[str, str], logins: Path | None = None) -> None:
        """Start the servers, and wait as long as their starts may take, at most 45 s.

        Raises ToolSetupError naming the field that is wrong, the command that is not there, the
        variable that is not set, or the address that must not be asked.
        """
        declared, secrets = read_declared(path, Declarations), Secrets(env)
        for place in declared.foreign():
            log.warning("%s: %s means nothing here and is ignored", path, place)
        self._sessions: list[Session] = []
        for name, declaration in declared.enabled.items():
            self._sessions.append(Session(name, declaration, secrets, logins))
        for session in self._sessions:
            session.check_command()
        self._tools: dict[str, list[Tool]] = {}
        self._shown: dict[str, list[str]] = {}
        self._absences: dict[str, str] = {}
        self._registry: Registry | None = None
        self._changes = threading.Lock()
        self._thread = ServerThread("mcp")
        self._tasks = self._thread.wait(self._start())

    def offer(self, registry: Registry) -> None:
        """Let a registry have the tools: those listed by now, and others as soon as they are. One
        whose name is taken is left out.
        """
        with self._changes:
            self._registry = registry
            for session in self._sessions:
                self._show(session)

    async def _start(self) -> list[asyncio.Task[None]]:
        """Have every server list its tools; return when each has tried once.
        Raises ToolSetupError.
        """
        tried: list[asyncio.Event] = []
        tasks: list[asyncio.Task[None]] = []
        for session in self._sessions:
            done = asyncio.Event()
            tried.append(done)
            tasks.append(asyncio.create_task(self._list(session, done)))
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_START_SECONDS):
                for done in tried:
                    await done.wait()
        for session, task, done in zip(self._sessions, tasks, tried, strict=True):
            if task.done():
                task.result()
            elif not done.is_set():
                self._change(session, absence=f"MCP server {session.name} has not answered yet")
        return tasks

    async def _list(self, session: Session, tried: asyncio.Event) -> None:
        """Keep the list of a server's tools. Raises ToolSetupError at the first try."""
        while True:
            try:
                listed = await session.list_offers()
            except McpUnavailable as problem:
                if problem.retry_after is None:
                    self._change(session, absence=str(problem))
                tried.set()
                await asyncio.sleep(problem.retry_after or _PAUSE)
            except McpCredentialsRefused as problem:
                self._change(session, absence=str(problem))
                tried.set()
                await asyncio.sleep(_LONG_PAUSE)
            except AddressRefused as problem:
                if not tried.is_set():
                    tried.set()
                    raise ToolSetupError(f"mcpServers.{session.name}.url: {problem}") from None
                self._change(session, absence=str(problem))  # a name may lead elsewhere again
                await asyncio.sleep(_LONG_PAUSE)
            else:
                self._change(session, tools=_tools_of(session, self._thread, listed))
                tried.set()
                await session.news()
                await asyncio.sleep(_PAUSE)  # changes that come together are one

    def _change(
        self, session: Session, *, tools: list[Tool] | None = None, absence: str = ""
    ) -> None:
        before = self._absences.get(session.name, "")
        with self._changes:
            self._absences[session.name] = absence
            self._tools[session.name] = tools or []
            if self._registry is not None:
                self._show(session)
        if absence and absence != before:
            log.warning("unavailable: %s", absence)
        elif before and not absence:
            log.info(
                "MCP server %s answers now; it offers %d tools", session.name, len(tools or ())
            )

    def _show(self, session: Session) -> None:
        """Let the registry have the tools of a server in the place of those that it
        has had from it so far.
        """
        registry, prefix = self._registry, _name(session, "")
        assert registry is not None
        before, shown = self._shown.get(session.name, []), []
        for tool in self._tools.get(session.name, ()):
            if tool.name in registry and tool.name not in before:
                leave_out(
                    session.server, tool.name.removeprefix(prefix), "another tool has this name"
                )
            else:
                shown.append(tool)
        registry.exchange(before, shown)
        self._shown[session.name] = [tool.name for tool in shown]
        registry.leave_out(session.server.left_out, f"{session.name}_")
        registry.set_absent(prefix, self._absences.get(session.name, ""))


def _tools_of(session: Session, thread: ServerThread, listed: Listed) -> list[Tool]:
    """Return the tools to offer; one that cannot be is left out, as are those that
    would have the same name.
    """
    offered = [each for each in listed.tools if session.declared.offers(each.name)]
    names = Counter(_name(session, each.name) for each in offered)
    tools: list[Tool] = []
    for each in offered:
        name = _name(session, each.name)
        reason = _reason_against(each, name, names[name])
        if reason:
            leave_out(session.server, each.name, reason)
        else:
            tools.append(_tool(session, thread, each, listed.version))

    # All resources of the server are read by one tool more.
    if (listed.resources or listed.templates) and session.declared.offers(TOOL):
        name = _name(session, TOOL)
        if name in names:
            leave_out(session.server, "its resources", f"a tool of its own is called {name}")
        else:
            tools.append(resource_tool(name, session, thread, listed))
    return tools


def _reason_against(declared: McpTool, name: str, namesakes: int) -> str:
    """Return why a tool is not offered under its name, which so many would
    have; nothing if it is.
    """
    if not NAME.match(name):
        return f"{printable(name, 80)!r} cannot be a tool's name"
    if namesakes > 1:
        return f"{namesakes} tools would be called {name}"
    if declared.execution is not None and declared.execution.task_support == "required":
        return "it runs as a task only, which is not supported yet"
    flaw = flaw_of(declared.input_schema)
    if flaw:
        return flaw
    if is_deep(declared.output_schema):
        return "its output is nested too deep"
    return ""


def _name(session: Session, tool: str) -> str:
    return _ODD.sub("_", f"{session.name}_{tool}")


def _tool(session: Session, thread: ServerThread, declared: McpTool, version: str) -> Tool:
    server, hints = session.declared, declared.annotations
    declared_effect = server.effect_of(declared.name)
    effect = declared_effect or "write"
    idempotent = bool(hints and hints.idempotent_hint)
    name = _name(session, declared.name)
    repeatable = effect != "write" or idempotent
    hint = ""
    if declared_effect is None and hints and hints.read_only_hint:
        hint = _MARKED.format(name=declared.name)

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        heard: list[str] = []
        try:
            with failures(name, repeatable=repeatable):
                hears = Hears(context.progress, heard.append)
                answer = await thread.start(session.call(declared.name, arguments, hears))
                return output_of(answer, declared.output_schema, context.warn)
        finally:
            for line in dict.fromkeys(heard[:MAX_NODE_WARNINGS]):
                log.error("%s: the server logs: %s", name, line)
                context.warn(f"{name}: the server logs an error: {line}")

    return Tool(
        name=name,
        description=one_line(
            mask(declared.description or declared.title or declared.name), MAX_MESSAGE_CHARACTERS
        ),
        effect=effect,
        hint=hint,
        version=version,
        timeout=server.longest_call + 5,
        resource=server.resources.get(declared.name),
        idempotent=idempotent,
        may_change=True,
        schema=mask(declared.input_schema),
        output_schema=mask(declared.output_schema)
        or TypeAdapter(McpText).json_schema(mode="serialization"),
        function=call,
    )
