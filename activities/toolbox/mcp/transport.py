"""How a server is reached: a process that speaks on stdin and stdout, or a URL of streamable HTTP.

What goes wrong with one message fails that call alone. The session ends with the transport: when
the process has closed its output, or an HTTP server answers that it does not know the session.

Two answers are replaced on their way, as the SDK (2.3) has no way of its own for them. It validates
a whole list of tools before it hands any of it on, so that one odd tool would cost all others. And
an HTTP status reaches nobody: 401, 404 and 500 are one error in the same words. Both happen in the
transport, which the SDK lets its users write, and in none of its internals.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Self, TextIO, TypeAlias

import httpx2
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCResponse,
    ListToolsResult,
    LoggingMessageNotificationParams,
    ToolListChangedNotification,
    methods,
)
from pydantic import ValidationError

from sennit.activities.http.addresses import admit
from sennit.activities.http.cookies import no_cookies
from sennit.activities.http.headers_command import CommandFailed, HeadersCommand
from sennit.activities.limits import (
    MAX_LOG_LINE_CHARACTERS,
    MAX_MESSAGE_CHARACTERS,
    MAX_RESULT_LEVELS,
    MAX_SERVER_MESSAGE_BYTES,
)
from sennit.activities.sandbox.reaper import bound_to_this_process
from sennit.activities.toolbox.mcp.configuration import ServerDeclaration
from sennit.activities.toolbox.mcp.http_transport import (
    NOT_BEGUN,
    REFUSED,
    AdmittedTransport,
    CommandAuth,
    failed,
)
from sennit.activities.toolbox.mcp.stdio import StdioTransport
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.plan.language.text import both_ends, one_line, printable

_CONNECT_SECONDS: Final = 30.0
_LEAST_READ_SECONDS: Final = 300.0  # streams of events may be silent for long
_SESSION_HEADER: Final = "mcp-session-id"
_REFUSALS: Final = (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN)
_ERROR_LEVELS: Final = ("error", "critical", "alert", "emergency")
_ErrorListeners: TypeAlias = list[Callable[[str], None]]
TOO_DEEP: Final = f"its schema is nested more than {MAX_RESULT_LEVELS} deep"

log = logging.getLogger("mcp.server")


@dataclass(frozen=True, slots=True)
class Server:
    """A declared server, with the secrets of its declaration filled in. `renewed` gives more
    headers, which expire; `left_out` says by name why tools of it are not offered.
    """

    name: str
    declared: ServerDeclaration
    env: Mapping[str, str]
    headers: Mapping[str, str]
    renewed: HeadersCommand | None = None
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Transport:
    """One connection to a server. `ended` is set when its session is over, `doubted` when the
    server has refused a request of its session in a way that may mean so; `last_line` is what its
    process wrote last on stderr. `errors` are told what the server logs as an error, and `news` is
    set when it says that its list of tools has changed.
    """

    server: Server
    news: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    doubted: bool = False
    last_line: str = ""
    version: str | None = None
    errors: _ErrorListeners = field(default_factory=list)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        """Start the server, or connect to it, and greet it. Raises whatever the SDK raises when
        that fails, and AddressRefused.
        """
        declared = self.server.declared
        if declared.command is None:
            url = declared.url or ""
            # Before anything else, so that a wrong address is named as such.
            await admit(url, declared=True)
            patience = httpx2.Timeout(
                _CONNECT_SECONDS, read=max(_LEAST_READ_SECONDS, declared.timeout + 5)
            )
            async with (
                _HttpClient(self, patience) as http,
                self._greeted(
                    streamable_http_client(
                        url, http_client=http, max_sse_event_size=MAX_SERVER_MESSAGE_BYTES
                    )
                ) as client,
            ):
                yield client
            return
        with self._stderr() as errors:
            command = bound_to_this_process([declared.command, *declared.args])
            stdio = StdioTransport(
                command, self.server.env, declared.cwd, errors, self.leave_out_deep
            )
            async with self._greeted(stdio) as client:
                yield client

    def leave_out_deep(self, tool: str) -> None:
        leave_out(self.server, tool, TOO_DEEP)

    @asynccontextmanager
    async def _greeted(self, transport: Any) -> AsyncIterator[Client]:
        client = Client(
            _Watched(transport, self),
            cache=None,
            log_level="error",
            logging_callback=self._log,
            message_handler=self._note,
        )
        async with client:
            self.version = client.protocol_version
            yield client

    async def _log(self, params: LoggingMessageNotificationParams) -> None:
        """Tell the calls in flight what the server logs as an error: the protocol
        does not say whose it is.
        """
        if params.level in _ERROR_LEVELS:
            if isinstance(params.data, str):
                text = params.data
            else:
                text = json.dumps(params.data, ensure_ascii=False)
            for listener in self.errors:
                listener(redact(both_ends(text, MAX_MESSAGE_CHARACTERS)))

    async def _note(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.news.set()

    @contextmanager
    def _stderr(self) -> Iterator[TextIO]:
        """Give a file for what the server writes to stderr; its lines go to
        the log of this worker.
        """
        read, write = os.pipe()
        threading.Thread(
            target=self._log_lines, args=(read,), name=f"mcp-{self.server.name}", daemon=True
        ).start()
        with os.fdopen(write, "w") as errors:
            yield errors

    def _log_lines(self, read: int) -> None:
        with os.fdopen(read, errors="replace") as lines:
            while line := lines.readline(MAX_LOG_LINE_CHARACTERS):
                self.last_line = redact(one_line(line))[:MAX_MESSAGE_CHARACTERS]
                log.info("%s: %s", self.server.name, self.last_line)


@dataclass(slots=True)
class _Watched:
    """A transport of the SDK whose reading end notes that the other end is closed."""

    inner: Any
    transport: Transport

    async def __aenter__(self) -> Any:
        read, write = await self.inner.__aenter__()
        return _Reader(read, self.transport), write

    async def __aexit__(self, *error: Any) -> bool | None:
        ended: bool | None = await self.inner.__aexit__(*error)
        return ended


class _Reader:
    """What the SDK reads messages from. It leaves out tools for which the SDK
    would refuse a whole list.
    """

    def __init__(self, inner: Any, transport: Transport) -> None:
        self._inner = inner
        self._transport = transport

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._readable(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._readable(await anext(self._inner))

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """The SDK leaves when nothing more can come, and fails all calls in flight."""
        self._transport.ended.set()
        left: bool | None = await self._inner.__aexit__(kind, error, trace)
        return left

    def _readable(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        message = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(item, SessionMessage) or not isinstance(message, JSONRPCResponse):
            return item
        listed, version = message.result.get("tools"), self._transport.version
        if not isinstance(listed, list) or version is None:
            return item
        kept = [each for each in listed if self._is_valid(each, message.result, version)]
        return replace(
            item, message=message.model_copy(update={"result": {**message.result, "tools": kept}})
        )

    def _is_valid(self, tool: Any, result: dict[str, Any], version: str) -> bool:
        try:
            alone = {**result, "tools": [tool]}
            methods.validate_server_result("tools/list", version, alone)
            ListToolsResult.model_validate(alone, by_name=False)
        except ValidationError as error:
            name = tool.get("name") if isinstance(tool, dict) else tool
            about = error.errors(include_url=False)[0]
            place = ".".join(map(str, about["loc"][2:]))
            leave_out(self._transport.server, str(name), f"{place}: {about['msg']}")
            return False
        return True


def leave_out(server: Server, tool: str, reason: str) -> None:
    """Note that a tool of a server is not offered, and say so in the log."""
    named, why = printable(redact(tool), 80), printable(redact(reason), MAX_MESSAGE_CHARACTERS)
    server.left_out[f"{server.name}_{named}"] = why
    log.warning("%s: the tool %s is left out: %s", server.name, named, why)


class _HttpClient(httpx2.AsyncClient):
    """What the SDK sends requests with. It keeps no cookies: what a server sets in the call of one
    run would go out with those of others.
    """

    def __init__(self, transport: Transport, timeout: httpx2.Timeout) -> None:
        renewed = transport.server.renewed
        super().__init__(
            headers={"accept-encoding": "identity", **transport.server.headers},
            timeout=timeout,
            transport=AdmittedTransport(transport.leave_out_deep),
            cookies=no_cookies(),
            trust_env=False,
            auth=CommandAuth(renewed) if renewed is not None else None,
        )
        self._of = transport

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, and note what its answer says about the session and its credentials."""
        try:
            response = await super().send(request, **options)
        except CommandFailed as error:
            return _with_request(failed(str(error), REFUSED), request)
        if response.status_code in _REFUSALS:
            return await _replaced(
                response, f"it refuses the credentials ({response.status_code})", REFUSED
            )
        if request.method == "POST" and _SESSION_HEADER in request.headers:
            if response.status_code == httpx2.codes.NOT_FOUND:
                self._of.ended.set()
                return await _replaced(response, "it does not know the session any more", NOT_BEGUN)
            if response.status_code == httpx2.codes.BAD_REQUEST:
                self._of.doubted = True
        return response


async def _replaced(response: httpx2.Response, message: str, data: str) -> httpx2.Response:
    """Return an error of the protocol in the place of a server's answer."""
    await response.aclose()
    return _with_request(failed(message, data), response.request)


def _with_request(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    response.request = request
    return response
