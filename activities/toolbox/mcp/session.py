"""The session with one MCP server, opened again when its transport has ended.

All sessions live in a thread of their own, so that tools can be listed before a worker's event loop
runs, and a server that floods its pipe delays nobody else.
"""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from mcp import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from sennit.activities.http.headers_command import HeadersCommand
from sennit.activities.limits import MAX_SERVER_PAUSE_SECONDS, MAX_TOOL_PAGES
from sennit.activities.toolbox.configuration import Secrets
from sennit.activities.toolbox.errors import (
    AddressRefused,
    McpCredentialsRefused,
    McpToolFailed,
    McpUnavailable,
    ToolError,
    ToolSetupError,
)
from sennit.activities.toolbox.mcp.configuration import ServerDeclaration
from sennit.activities.toolbox.mcp.http_transport import NOT_BEGUN, REFUSED
from sennit.activities.toolbox.mcp.logins import login_file
from sennit.activities.toolbox.mcp.transport import Server, Transport, leave_out

_TOKEN: Final = (sys.executable, "-P", "-m", "sennit.workers", "token")
_FIRST_PAUSE = 1.0
_LISTEN_PAUSE = 30.0
_RESULT: Final = TypeAdapter[CallToolResult | InputRequiredResult](
    CallToolResult | InputRequiredResult
)

T = TypeVar("T")

log = logging.getLogger("mcp.server")


class Hears(NamedTuple):
    """Who hears what a server says during a call: its progress, and what it logs as an
    error. From any thread.
    """

    progress: Callable[[str], None]
    error: Callable[[str], None]


class Listed(NamedTuple):
    """What a server offers: its version, its tools, and its resources, also those
    whose URI has parameters.
    """

    version: str
    tools: Sequence[Tool]
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()


class Connection:
    """An open session. It ends when its transport has ended and nobody waits
    for an answer any more.
    """

    def __init__(self, client: Client, transport: Transport) -> None:
        self.client = client
        self.transport = transport
        self._calls = 0
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Client]:
        """Keep the session for the block."""
        self._calls += 1
        self._idle.clear()
        try:
            yield self.client
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def ended(self) -> None:
        """Return when the session can be closed."""
        await self.transport.ended.wait()
        if self._calls:
            await self._idle.wait()


class Session:
    """The session with one server. Its coroutines run in the thread of sessions."""

    def __init__(
        self, name: str, declared: ServerDeclaration, secrets: Secrets, logins: Path | None = None
    ) -> None:
        """`logins` is the folder in which a person's logins are kept. Raises ToolSetupError when a
        variable that the declaration names is not set.
        """
        self.name = name
        self.declared = declared
        env = secrets.filled(declared.env, f"mcpServers.{name}.env")
        headers = secrets.filled(declared.headers, f"mcpServers.{name}.headers")
        renewed = None
        if declared.headers_command is not None:
            renewed = HeadersCommand(declared.headers_command, env)
        elif declared.url is not None and logins is not None:
            renewed = HeadersCommand(
                (*_TOKEN, name, declared.url),
                {"SENNIT_LOGINS": str(logins)},
                login_file(logins, name),
            )
        self.server = Server(name, declared, env, headers, renewed)
        self._opening = asyncio.Lock()
        self._news = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._owners: set[asyncio.Task[None]] = set()  # also of sessions that are about to end
        self._connection: Connection | None = None
        self._failures = 0
        self._not_before = 0.0

    def check_command(self) -> None:
        """Raise ToolSetupError if the declared command is not there."""
        if not self.declared.has_command(self.server.env):
            raise ToolSetupError(
                f"mcpServers.{self.name}.command: there is no command {self.declared.command!r}"
            )

    async def list_offers(self) -> Listed:
        """Return what the server offers, in the time that a start may take. Raises McpUnavailable,
        or AddressRefused for a URL that must not be asked.
        """
        try:
            async with (
                asyncio.timeout(self.declared.start_timeout),
                (await self.open()).used() as client,
            ):
                self._news.clear()
                self.server.left_out.clear()
                version = client.server_info.version if client.server_info is not None else ""
                tools = await self._pages(client.list_tools, "tools")
                listed = Listed(version, tools, *await self._resources(client))
        except TimeoutError:
            raise self._unavailable(self._late) from None
        except (
            MCPError,
            RuntimeError,
            ValueError,
        ) as error:  # a list that the SDK does not understand, too
            raise self._unavailable(f"does not list its tools: {error}") from None
        self._failures = 0
        return listed

    async def news(self) -> None:
        """Return when the server may offer something else than it has listed: it says
        so, or was started again.
        """
        await self._news.wait()

    async def _resources(
        self, client: Client
    ) -> tuple[Sequence[Resource], Sequence[ResourceTemplate]]:
        """Return the resources of a server that has any; a server that cannot list them has its
        tools all the same, and one that knows no templates has its resources.
        """
        if client.server_capabilities.resources is None:
            return (), ()
        try:
            found = await self._pages(client.list_resources, "resources")
        except (MCPError, ValueError) as error:
            leave_out(self.server, "its resources", f"it does not list them: {error}")
            return (), ()
        try:
            templates = await self._pages(client.list_resource_templates, "resource_templates")
        except (MCPError, ValueError) as error:
            if not isinstance(error, MCPError) or error.code != METHOD_NOT_FOUND:
                leave_out(self.server, "its resource templates", f"it does not list them: {error}")
            templates = []
        return found, templates

    async def call(self, tool: str, arguments: dict[str, Any], hears: "Hears") -> CallToolResult:
        """Call a tool. A cancellation is passed on to the server. An error that the server answers
        is this call's alone. Raises McpUnavailable and McpCredentialsRefused before anything was
        done, and MCPError after it.

        The call may be silent for the declared time. Each report of progress begins that anew, up
        to the longest time that is declared.
        """
        loop = asyncio.get_running_loop()
        last = loop.time() + self.declared.longest_call
        silence = asyncio.timeout(self.declared.timeout)

        async def report(progress: float, total: float | None, message: str | None) -> None:
            of_total = f"/{total:g}" if total else ""
            hears.progress(f"{progress:g}{of_total} {message or ''}".strip())
            if not silence.expired():
                silence.reschedule(min(loop.time() + self.declared.timeout, last))

        async def ask(client: Client) -> CallToolResult:
            request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
            # `Client.call_tool` would throw away an answer that does not keep to
            # the schema of its output.
            try:
                answer = await client.session.send_request(
                    request, _RESULT, progress_callback=report
                )
            except MCPError as error:
                if error.code != HEADER_MISMATCH:
                    raise
                # The SDK learns from it which headers arguments need.
                await self._pages(client.list_tools, "tools")
                answer = await client.session.send_request(
                    request, _RESULT, progress_callback=report
                )
            if isinstance(answer, InputRequiredResult):
                raise McpToolFailed(
                    "it asks for input in the middle of a call, which nobody can give here"
                )
            return answer

        try:
            async with silence:
                return await self._asked(ask, hears)
        except TimeoutError:
            raise MCPError(REQUEST_TIMEOUT, "no answer in time") from None

    async def read(
        self, uri: str, seconds: float
    ) -> Sequence[TextResourceContents | BlobResourceContents]:
        """Return the contents of a resource. Raises as `call` does, and TimeoutError."""
        async with asyncio.timeout(seconds):
            return (await self._asked(lambda client: client.read_resource(uri))).contents

    async def _asked(
        self, ask: Callable[[Client], Awaitable[T]], hears: "Hears | None" = None
    ) -> T:
        connection = await self.open()
        errors = connection.transport.errors
        if hears is not None:
            errors.append(hears.error)
        try:
            async with connection.used() as client:
                answer = await ask(client)
        except MCPError as error:
            if error.data == REFUSED:
                raise self._refused(error) from None
            if error.data == NOT_BEGUN:
                raise self._unavailable(f"did not take the call: {error}") from None
            await self._ask_again(connection)
            raise
        finally:
            if hears is not None:
                errors.remove(hears.error)
        self._failures = 0
        return answer

    def _refused(self, error: MCPError) -> McpCredentialsRefused:
        """Return the error of a call whose credentials are refused, with what an
        operator can do about it.
        """
        todo = (
            "renew what `headers` names and restart the worker, or declare a `headers_command` "
            "that prints them"
        )
        if self.server.renewed is not None and self.server.renewed.needs is not None:
            todo = f"log in with: sennit tools login {self.name}"
        if self.declared.headers_command is not None:
            todo = "so it does with what its `headers_command` prints; check that command"
        return McpCredentialsRefused(f"MCP server {self.name}: {error}; {todo}")

    async def _pages(self, ask: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
        """Return all that a server lists, page by page. A cursor that comes again ends the list:
        what was read by then is kept, and the log names the fault.
        """
        found: list[Any] = []
        cursors: dict[str | None, None] = {None: None}
        while len(cursors) <= MAX_TOOL_PAGES:
            page = await ask(cursor=next(reversed(cursors)))
            items = getattr(page, field)
            if page.next_cursor in cursors and page.next_cursor is not None:
                log.warning("%s: its list of %s has no end: a cursor comes again", self.name, field)
                unseen = [item for item in items if item not in found]
                return found + unseen
            found += items
            if page.next_cursor is None:
                return found
            cursors[page.next_cursor] = None
        log.warning(
            "%s: its list of %s has over %d pages; the rest is left out",
            self.name,
            field,
            MAX_TOOL_PAGES,
        )
        return found

    async def _ask_again(self, connection: Connection) -> None:
        """End a session if the server has refused a call of it and refuses even to list
        its tools now: servers that have lost a session say so by 404, and some by 400, as
        they do of a wrong call.
        """
        transport = connection.transport
        if not transport.doubted or transport.ended.is_set():
            return
        transport.doubted = False
        with suppress(TimeoutError, MCPError, RuntimeError, ValueError):
            async with asyncio.timeout(self.declared.start_timeout):
                await connection.client.list_tools()
        if transport.doubted:
            transport.ended.set()

    async def open(self) -> Connection:
        """Return the open session; start the server if there is none. Raises as `list_tools` does.

        After a failure a server is started again only after a pause, which
        grows with every failure.
        """
        async with self._opening:
            found = self._connection
            if (
                found is not None
                and not found.transport.ended.is_set()
                and self._owner
                and not self._owner.done()
            ):
                return found
            pause = self._not_before - time.monotonic()
            if pause > 0:
                raise self._unavailable("failed and is started again", after=pause)
            self._failures += 1
            next_pause = min(MAX_SERVER_PAUSE_SECONDS, _FIRST_PAUSE * 2 ** (self._failures - 1))
            self._not_before = time.monotonic() + next_pause
            ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
            owner = self._owner = asyncio.create_task(self._keep_open(ready))
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
            try:
                async with asyncio.timeout(self.declared.start_timeout):
                    return await asyncio.shield(ready)
            except TimeoutError:
                raise self._unavailable(self._late) from None
            finally:
                # Too late, or the call was cancelled: the next one starts a server of its own.
                if not ready.done():
                    owner.cancel()
                    ready.cancel()

    @property
    def _late(self) -> str:
        return f"did not answer within {self.declared.start_timeout:g} s"

    async def _keep_open(self, ready: "asyncio.Future[Connection]") -> None:
        """Hold the session from its opening to its end in one task, as its
        cancellation scopes require.
        """
        transport = Transport(self.server, self._news)
        try:
            async with self._connected(transport) as client:
                connection = self._connection = Connection(client, transport)
                self._news.set()
                # Even if the call was cancelled just now: the next one uses it.
                if not ready.done():
                    ready.set_result(connection)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await connection.ended()
                finally:
                    listening.cancel()
                    await asyncio.wait([listening])
        except (ExceptionGroup, MCPError, ToolError, OSError, RuntimeError, ValueError) as error:
            if not ready.done():
                ready.set_exception(self._failure(_innermost(error), transport))
        finally:
            if not ready.done():
                ready.set_exception(self._unavailable("does not start"))

    async def _listen(self, client: Client) -> None:
        """Note what a server says about its list of tools where the protocol has a stream for that;
        by older protocols it says so unasked. A server that has no such stream never changes its
        list, as far as anybody can tell.
        """
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, RuntimeError, ValueError, TimeoutError):
            while True:
                try:
                    async with client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self._news.set()
                except SubscriptionLost:
                    self._news.set()  # something may have been missed
                await asyncio.sleep(_LISTEN_PAUSE)

    def _connected(self, transport: Transport) -> AbstractAsyncContextManager[Client]:
        return transport.connected()

    def _failure(self, error: BaseException, transport: Transport) -> ToolError:
        if isinstance(error, AddressRefused):
            return error
        if isinstance(error, MCPError) and error.data == REFUSED:
            return self._refused(error)
        wrote = f"; it wrote: {transport.last_line}" if transport.last_line else ""
        return self._unavailable(f"does not start: {str(error) or type(error).__name__}{wrote}")

    def _unavailable(self, problem: str, after: float | None = None) -> McpUnavailable:
        return McpUnavailable(
            f"MCP server {self.name} {problem}", retryable=True, retry_after=after
        )


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
