"""The session with one MCP server, reopened when it has died.

All sessions live in a thread of their own, so that tools can be listed before a worker's event loop runs, and a server
that floods its pipe delays nobody else.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TextIO, TypeVar

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, Tool

from activities.http.addresses import admit
from activities.toolbox.configuration import Secrets
from activities.toolbox.errors import LONGEST_MESSAGE, McpUnavailable, ToolError
from activities.toolbox.mcp.configuration import ServerDeclaration
from activities.toolbox.redaction import redact
from workflows.plan.language.text import one_line

START_SECONDS: Final = 60.0
"""How long a server may take to start; the first start of `npx` downloads."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_MOST_PAGES = 100
_LONGEST_LINE = 10_000
_MOST_BYTES = 16 * 1024 * 1024
_PLAIN = {"accept-encoding": "identity"}

log = logging.getLogger("mcp.server")

T = TypeVar("T")


class SessionThread:
    """The thread and the event loop of all sessions of this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run `work` there, from another event loop; cancelling the future cancels it."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and wait, from a thread without an event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class Session:
    """The session with one server. Its coroutines run in the thread of sessions."""

    def __init__(self, name: str, declared: ServerDeclaration, secrets: Secrets) -> None:
        """Raises ToolSetupError when a variable that the declaration names is not set."""
        self.name = name
        self.declared = declared
        self._env = secrets.filled(declared.env, f"mcpServers.{name}.env")
        self._headers = secrets.filled(declared.headers, f"mcpServers.{name}.headers")
        self._opening = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._closed = asyncio.Event()
        self._last_line = ""
        self._failures = 0
        self._not_before = 0.0

    async def list_tools(self) -> tuple[str, list[Tool]]:
        """Return the server's version and its tools. Raises McpUnavailable."""
        client = await self.open()
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
        except MCPError as error:
            raise self._unavailable(str(error)) from None
        return client.server_info.version if client.server_info is not None else "", tools

    async def call(
        self, tool: str, arguments: dict[str, Any], seconds: float, show: Callable[[str], None]
    ) -> CallToolResult:
        """Call a tool. A cancellation is passed on to the server. Raises McpUnavailable before anything was sent, and
        MCPError after it."""
        client = await self.open()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            show(f"{progress:g}{f'/{total:g}' if total else ''} {message or ''}".strip())

        try:
            answer = await client.call_tool(tool, arguments, read_timeout_seconds=seconds, progress_callback=report)
        except MCPError as error:
            died = error.code == CONNECTION_CLOSED or self.declared.url is not None
            if died and self._client is client:  # else another call has opened a new session already
                self._client = None
                self._closed.set()
            raise
        self._failures = 0
        return answer

    async def open(self) -> Client:
        """Return the client of the open session; start the server if there is none. Raises McpUnavailable.

        After a failure a server is started again only after a pause, which grows with every failure.
        """
        async with self._opening:
            if self._client is not None and self._owner is not None and not self._owner.done():
                return self._client
            pause = self._not_before - time.monotonic()
            if pause > 0:
                raise self._unavailable("it failed and is started again", after=pause)
            self._failures += 1
            self._not_before = time.monotonic() + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self._failures - 1))
            ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
            self._client, self._closed = None, asyncio.Event()
            self._owner = asyncio.create_task(self._own(ready, self._closed))
            try:
                async with asyncio.timeout(START_SECONDS):
                    return await asyncio.shield(ready)
            except TimeoutError:
                raise self._unavailable(f"it did not start within {START_SECONDS:g} s") from None
            finally:
                if not ready.done():  # too late, or the call was cancelled: the next one starts a server of its own
                    self._owner.cancel()
                    ready.cancel()

    async def _own(self, ready: "asyncio.Future[Client]", closed: asyncio.Event) -> None:
        """Hold the session from its opening to its end in one task, as its cancellation scopes require."""
        try:
            async with self._connected() as client:
                self._client = client  # even if the call was cancelled just now: the next one uses it
                ready.set_result(client)
                await closed.wait()
        except (ExceptionGroup, MCPError, ToolError, OSError, RuntimeError, ValueError) as error:
            if not ready.done():
                wrote = f"; it wrote: {self._last_line}" if self._last_line else ""
                ready.set_exception(self._unavailable(f"it does not start: {_innermost(error)}{wrote}"))
        finally:
            if not ready.done():
                ready.set_exception(self._unavailable("it does not start"))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        declared = self.declared
        async with AsyncExitStack() as stack:
            if declared.command is not None:
                command = StdioServerParameters(
                    command=declared.command, args=list(declared.args), env=self._env, cwd=declared.cwd
                )
                transport = stdio_client(command, errlog=stack.enter_context(self._stderr()))
            else:
                await admit(declared.url or "", declared=True)  # its own client follows no redirect to another host
                http = await stack.enter_async_context(create_mcp_http_client(_PLAIN | self._headers))
                http.event_hooks = {"response": [_read_bounded]}
                transport = streamable_http_client(declared.url or "", http_client=http)
            yield await stack.enter_async_context(Client(transport, cache=None))

    def _stderr(self) -> TextIO:
        """Return a file for what the server writes to stderr; its lines go to the log of this worker."""
        read, write = os.pipe()
        threading.Thread(target=self._log_lines, args=(read,), name=f"mcp-{self.name}", daemon=True).start()
        return os.fdopen(write, "w")

    def _log_lines(self, read: int) -> None:
        with os.fdopen(read, errors="replace") as lines:
            while line := lines.readline(_LONGEST_LINE):
                self._last_line = redact(one_line(line))[:LONGEST_MESSAGE]
                log.info("%s: %s", self.name, self._last_line)

    def _unavailable(self, problem: str, after: float | None = None) -> McpUnavailable:
        return McpUnavailable(f"MCP server {self.name}: {problem}", retryable=True, retry_after=after)


async def _read_bounded(response: Any) -> None:
    """Read an answer, of at most 16 MiB, for the client of the SDK, which reads and unpacks any amount. A stream of
    events is left to it: each of those has a bound. Raises ValueError.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ValueError("it answers compressed, which it was not asked to")
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > _MOST_BYTES:
            raise ValueError(f"its answer has over {_MOST_BYTES:,} bytes")
    response._content = bytes(body)


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
