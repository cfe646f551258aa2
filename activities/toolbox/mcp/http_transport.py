"""How the SDK's requests reach a server over HTTP: to admitted addresses alone,
with everything bounded.

A request that fails is answered with an error of the protocol, as a server would: it fails its own
call, and the session goes on.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final

import httpx2
from httpx2 import AsyncBaseTransport, AsyncByteStream, AsyncHTTPTransport, Request, Response
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from sennit.activities.http.addresses import Destination, admit
from sennit.activities.http.headers_command import HeadersCommand
from sennit.activities.http.turns import Turns
from sennit.activities.limits import MAX_SERVER_MESSAGE_BYTES
from sennit.activities.providers.sse import EventParser
from sennit.activities.toolbox.errors import ToolError
from sennit.activities.toolbox.mcp.deep_tools import without_deep_tools

NOT_BEGUN: Final = "not begun"
"""The data of an error if its request never began: no server can know it."""
REFUSED: Final = "credentials refused"
"""The data of an error if the server refuses the credentials of a request, and has done nothing."""

_EVENTS: Final = "text/event-stream"
_OF_TRANSFER: Final = ("content-length", "transfer-encoding", "content-encoding")
_IS_LIST: Final = re.compile(rb'"method"\s*:\s*"tools/list"')
_IS_ANSWER: Final = re.compile(r'"(?:result|error)"\s*:')


class AdmittedTransport(AsyncBaseTransport):
    """Sends each request to an address that was admitted for it just now, for a
    certificate of the URL's host.
    """

    def __init__(self, leave_out: Callable[[str], None]) -> None:
        """`leave_out` is told the names of tools that are nested too deep to be read."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._inner = AsyncHTTPTransport(limits=limits, trust_env=True)
        self._leave_out = leave_out

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: Request) -> Response:
        """Return the server's answer, or an error of the protocol in its place. Never raises
        for what a server does.
        """
        try:
            place = await admit(str(request.url), declared=True)
        except ToolError as error:
            return failed(str(error), NOT_BEGUN)
        try:
            response = await self._sent(request, place)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return failed(str(error) or "no connection in time", NOT_BEGUN)
        except httpx2.TransportError as error:
            return failed(str(error) or type(error).__name__)
        try:
            return await self._bounded(request, response)
        except (httpx2.TransportError, ValueError) as error:
            await response.aclose()
            return failed(str(error) or type(error).__name__)

    async def _sent(self, request: Request, place: Destination) -> Response:
        """Ask the admitted addresses, one after the other until one takes the connection."""
        *others, last = place.addresses
        for address in others:
            try:
                return await self._inner.handle_async_request(_pinned(request, place, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, place, last))

    async def _bounded(self, request: Request, response: Response) -> Response:
        """Return an answer that the SDK can read in bounded memory: it would read and unpack
        any amount. A stream of events is left to it, as it bounds each of those. Raises
        ValueError, and TransportError.
        """
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ValueError("it answers compressed, which it was not asked to")
        assert isinstance(response.stream, AsyncByteStream)
        stream, is_list = _Paced(response.stream), _IS_LIST.search(request.content) is not None
        if not response.headers.get("content-type", "").lower().startswith(_EVENTS):
            body = await _read(stream)
            await response.aclose()
            return self._answer(response, body, is_list=is_list)
        if is_list and response.status_code == httpx2.codes.OK:
            body = await _first_answer(stream)
            await response.aclose()
            response.headers["content-type"] = "application/json"
            return self._answer(response, body, is_list=True)
        return Response(
            response.status_code,
            headers=response.headers,
            stream=stream,
            extensions=response.extensions,
        )

    def _answer(self, response: Response, body: bytes, *, is_list: bool) -> Response:
        if is_list:
            body, names = without_deep_tools(body)
            for name in names:
                self._leave_out(name)
        headers = {
            name: value
            for name, value in response.headers.items()
            if name.lower() not in _OF_TRANSFER
        }
        return Response(
            response.status_code, headers=headers, content=body, extensions=response.extensions
        )


class _Paced(AsyncByteStream):
    """The bytes of an answer. However small its pieces are, other sessions have
    their turn between them.
    """

    def __init__(self, inner: AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        turns = Turns()
        async for piece in self._inner:
            await turns.give_way()
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class CommandAuth(httpx2.Auth):
    """Adds to each request the headers that a command prints. A request whose headers a server
    refuses with 401 goes out once more with others, as the server has done nothing.
    """

    def __init__(self, command: HeadersCommand) -> None:
        self._command = command

    async def async_auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        """Raises CommandFailed before anything was sent."""
        used = await self._command.current()
        if used is None:
            yield request
            return
        request.headers.update(used)
        response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            request.headers.update(await self._command.renewed(used))
            yield request


def failed(message: str, data: str | None = None) -> Response:
    """Return what the SDK takes for the answer of a server that could not serve a request."""
    error = {
        "code": CONNECTION_CLOSED if data != REFUSED else INTERNAL_ERROR,
        "message": message,
        "data": data,
    }
    return Response(502, json={"jsonrpc": "2.0", "id": None, "error": error})


def _pinned(request: Request, place: Destination, address: str) -> Request:
    """Return the request to an address. The URL's host stays in the Host header and in
    the certificate's check.
    """
    return Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": place.host},
    )


async def _read(stream: AsyncByteStream) -> bytes:
    """Return all bytes of an answer. Raises ValueError if there are too many."""
    body = bytearray()
    async for piece in stream:
        body += piece
        if len(body) > MAX_SERVER_MESSAGE_BYTES:
            raise ValueError(f"its answer has over {MAX_SERVER_MESSAGE_BYTES:,} bytes")
    return bytes(body)


async def _first_answer(stream: AsyncByteStream) -> bytes:
    """Return the answer in a stream of events; what a server says beside it is of no use for a
    list. Raises ValueError if none comes, or too much.
    """
    parser, received = EventParser(), 0
    async for piece in stream:
        received += len(piece)
        if received > MAX_SERVER_MESSAGE_BYTES:
            raise ValueError(f"its answer has over {MAX_SERVER_MESSAGE_BYTES:,} bytes")
        for data in parser.feed(piece):
            if _IS_ANSWER.search(data):
                return data.encode()
    raise ValueError("its stream ended without an answer")
