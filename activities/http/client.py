"""The one HTTP client, of model providers and of tools: every wait and every byte
of an answer is bounded.
"""

import asyncio
import math
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final, Literal

import httpx

from sennit.activities.http.addresses import Destination
from sennit.activities.http.cookies import no_cookies
from sennit.activities.http.pools import Pools
from sennit.activities.http.turns import Turns
from sennit.activities.limits import (
    MAX_ANSWER_BYTES,
    MAX_GZIP_MEMBERS,
    MAX_PIECE_BYTES,
    MAX_WAIT_SECONDS,
)
from sennit.activities.toolbox.configuration import Secrets
from sennit.activities.toolbox.errors import ToolSetupError

CONNECT_SECONDS: Final = 10.0


_OVERHEAD: Final = 64 * 1024
_MAGIC: Final = b"\x1f"

Cause = Literal["unreachable", "certificate", "proxy", "timeout", "cut", "encoding", "size"]


class HttpError(Exception):
    """A request that brought no usable answer. `sent` says whether the server may have received it.

    Causes: no connection, none with a trusted certificate, or none by the proxy that the
    environment names; no bytes in time; a connection that ended before the answer did; an encoding
    that cannot be read; more bytes than are allowed.
    """

    def __init__(self, cause: Cause, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.cause = cause
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. With a `destination` only its checked addresses are asked, for a
    certificate of its host.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    destination: Destination | None = None


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ValueError if a header cannot be sent, so that it is found before the first request."""
    _ = httpx.Headers(headers).raw


def declared_headers(secrets: Secrets, texts: Mapping[str, str], where: str) -> dict[str, str]:
    """Return headers that are declared at `where`, with the secrets that they name.

    Raises ToolSetupError for a variable that is not set, and for headers that cannot be sent.
    """
    headers = secrets.filled(texts, where)
    try:
        check_headers(headers)
    except ValueError:
        raise ToolSetupError(f"{where}: a value is no plain text") from None
    return headers


class Answer:
    """An answer whose head has arrived. Deadlines are in the event loop's
    time; None waits for ever.
    """

    def __init__(self, response: httpx.Response, limit: int) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: Mapping[str, str] = response.headers
        self.kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._limit = limit
        self._size = 0
        self._chunks = response.aiter_raw()
        self._encoding = response.headers.get("content-encoding", "")
        self._received = 0
        self._raw = b""  # what has come and is not given out yet
        self._unzip: _Gunzip | None = None
        self._turns = Turns()

    async def chunk(
        self, deadline: float | None = None, late: str = "the answer does not end"
    ) -> bytes:
        """Return the next decoded bytes, nothing at the end. Raises HttpError, for lateness with
        the words in `late`, and before more than the limit is in memory, whatever the compression.
        """
        piece = await self._next(deadline, late, self._limit - self._size + 1)
        if self._size > self._limit:
            raise HttpError("size", f"sent over {self._limit:,} bytes")
        return piece

    async def read(self, deadline: float | None = None, most: int | None = None) -> bytes:
        """Return the rest of the body; with `most`, no more than that of it. Raises HttpError."""
        body = bytearray()
        if most is None:
            while piece := await self.chunk(deadline):
                body += piece
            return bytes(body)
        while len(body) < most:
            piece = await self._next(deadline, "the answer does not end", most - len(body))
            if not piece:
                break
            body += piece
        return bytes(body[:most])

    async def _next(self, deadline: float | None, late: str, room: int) -> bytes:
        """Return a piece of the body, nothing at its end. Pieces are short, and others have
        their turn between them.
        """
        room = min(room, MAX_PIECE_BYTES)
        while True:
            await self._turns.give_way()
            piece = self._unpacked(room)
            if piece:
                self._size += len(piece)
                return piece
            if not self._raw and not await self._receive(deadline, late):
                return b""

    async def _receive(self, deadline: float | None, late: str) -> bool:
        """Wait for what comes next; False if the body has ended."""
        try:
            async with asyncio.timeout_at(deadline):
                self._raw = await anext(self._chunks, b"")
        except TimeoutError:
            raise HttpError("timeout", late) from None
        except httpx.TransportError as error:
            raise http_error(error) from None

        # Only now: status and headers count even where the body cannot be read.
        if self._raw and self._encoding:
            self._unzip, self._encoding = _unzip_of(self._encoding), ""
        if self._unzip is None:
            return bool(self._raw)

        # What unpacks to nothing has an end too, and an end that comes early is a loss.
        self._received += len(self._raw)
        if self._received > self._limit + _OVERHEAD:
            raise HttpError("size", f"sent over {self._limit:,} bytes")
        if not self._raw and self._size and not self._unzip.complete:
            raise HttpError("cut", "the compressed answer ended early")
        return bool(self._raw)

    def _unpacked(self, room: int) -> bytes:
        """Return what is next of the bytes that have come, and keep the rest of them."""
        if self._unzip is None:
            piece, self._raw = self._raw[:room], self._raw[room:]
            return piece
        try:
            piece, self._raw = self._unzip.unpack(self._raw, room)
        except zlib.error:
            raise HttpError("encoding", "the answer says gzip and is not") from None
        return piece


class HttpClient:
    """Sends requests with these headers. Connections are kept until `close`, and no cookies;
    redirects are never followed.
    """

    def __init__(
        self, headers: Mapping[str, str], *, proxies: bool, connect: float = CONNECT_SECONDS
    ) -> None:
        """`proxies` says whether those of the environment are used."""
        self._headers = {"user-agent": "sennit", **headers}
        self._proxies = proxies
        self._connect = connect
        self._pools = Pools(self._new_client)

    @asynccontextmanager
    async def send(
        self, request: Request, *, limit: int = MAX_ANSWER_BYTES, deadline: float | None = None
    ) -> AsyncIterator[Answer]:
        """Send a request, and give the answer once its head is there. Raises HttpError.

        The connection is closed at the end of the block unless the answer was read to its end.
        """
        try:
            pool = self._pools.take()
        except (ImportError, ValueError, httpx.InvalidURL) as error:  # a new client reads proxies
            why = f"the environment names a proxy that cannot be used: {error}"
            raise HttpError("proxy", why, sent=False) from None
        try:
            response = await self._head(pool.client, request, deadline)
            try:
                yield Answer(response, limit)
            finally:
                await response.aclose()
        finally:
            self._pools.give_back(pool)

    async def close(self) -> None:
        await self._pools.close()

    def _new_client(self, limits: httpx.Limits) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            cookies=no_cookies(),
            verify=certificates(),
            trust_env=self._proxies,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=self._connect),
            limits=limits,
        )

    async def _head(
        self, client: httpx.AsyncClient, request: Request, deadline: float | None
    ) -> httpx.Response:
        """Send a request, and return the answer whose body is still to come. Raises HttpError."""
        try:
            async with asyncio.timeout_at(deadline):
                return await _dialled(client, request)
        except TimeoutError:
            raise HttpError("timeout", "no answer in time") from None
        except httpx.TransportError as error:
            raise http_error(error) from None


async def _dialled(client: httpx.AsyncClient, request: Request) -> httpx.Response:
    """Ask the checked addresses, one after the other until one takes the connection; without
    any, the host that the URL names.
    """
    *others, last = request.destination.addresses if request.destination else ("",)
    for address in others:
        try:
            return await client.send(_built(client, request, address), stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await client.send(_built(client, request, last), stream=True)


def _built(client: httpx.AsyncClient, request: Request, address: str) -> httpx.Request:
    """Return the request. Of a checked destination `address` is asked for what the URL names: its
    host stays in the Host header and in the certificate's check.
    """
    place = request.destination
    if place is None:
        return client.build_request(
            request.method, request.url, headers=request.headers, content=request.body
        )
    return client.build_request(
        request.method,
        place.url.copy_with(host=address),
        headers={"Host": place.url.netloc.decode("ascii"), **request.headers},
        content=request.body,
        extensions={"sni_hostname": place.host},
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, at most 60; None when it says
    nothing that can be read.
    """
    milliseconds = number_in(headers.get("retry-after-ms"))
    text = headers.get("retry-after", "")
    seconds = number_in(text)
    if milliseconds is not None:
        seconds = milliseconds / 1000
    if seconds is None and text:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        if not date.tzinfo:
            date = date.replace(tzinfo=UTC)
        seconds = date.timestamp() - time.time()
    if seconds is None:
        return None
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS)


def number_in(text: str | None) -> float | None:
    """Return the number that a header says, None if it says none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def http_error(error: httpx.TransportError) -> HttpError:
    """Return why a request brought no usable answer."""
    text = str(error)
    if isinstance(
        error,
        httpx.ConnectTimeout | httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol,
    ):
        cause: Cause = "certificate" if "CERTIFICATE_VERIFY_FAILED" in text else "unreachable"
        return HttpError(cause, text or "no connection in time", sent=False)
    return HttpError("cut", text or type(error).__name__)


class _Gunzip:
    """Unpacks gzip, which may have many members; what is none behind the last one is left out."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._members = 1
        self._ended = False

    @property
    def complete(self) -> bool:
        """Whether a member has just ended."""
        return self._ended or self._member.eof

    def unpack(self, raw: bytes, most: int) -> tuple[bytes, bytes]:
        """Return at most `most` bytes of what is packed in `raw`, and what of `raw` comes after
        them; more is never in memory. Raises zlib.error.
        """
        unpacked = bytearray()
        if self._ended:
            return b"", b""
        while raw and len(unpacked) < most:
            if not self._member.eof:
                unpacked += self._member.decompress(raw, most - len(unpacked))
                # One of both is empty.
                raw = self._member.unconsumed_tail or self._member.unused_data
            elif raw := raw.lstrip(b"\0"):
                if not raw.startswith(_MAGIC):
                    self._ended = True
                    return bytes(unpacked), b""
                self._member = zlib.decompressobj(wbits=31)
                self._members += 1
                if self._members > MAX_GZIP_MEMBERS:
                    raise zlib.error("too many members")
        return bytes(unpacked), raw


def _unzip_of(encoding: str) -> _Gunzip | None:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip"):
        raise HttpError(
            "encoding", f"the answer is encoded as {encoding[:40]!r}; only gzip is read"
        )
    return _Gunzip()


@cache
def certificates() -> ssl.SSLContext:
    """Load the trusted certificates once; SSL_CERT_FILE and SSL_CERT_DIR are honoured."""
    return httpx.create_ssl_context()
