"""One provider's HTTP: every wait and every byte of a reply is bounded, and whatever goes wrong is a typed error."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from activities.providers.errors import (
    BadReply,
    ModelTimeout,
    ReplyCut,
    ReplyTooLarge,
    ServerUnreachable,
    quoted,
)
from activities.providers.model import ProviderError
from activities.providers.settings import Server


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect, to the first event (half the call's own time if that is more) and between events; the
    bytes of a reply after decompression.
    """

    connect: float = 10.0
    first: float = 60.0
    idle: float = 30.0
    bytes: int = 4 * 1024 * 1024


class Incoming:
    """A reply whose head has arrived."""

    def __init__(self, response: httpx.Response, server: Server, most: int) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._server = server
        self._most = most
        self._read = 0
        self._chunks = response.aiter_raw()
        self._unzip = _unzip(response.headers.get("content-encoding", ""), server)

    async def next(self, deadline: float, why: str) -> bytes:
        """Return the next decoded bytes, nothing at the end; `deadline` is in the event loop's time.

        Raises ModelTimeout with `why`, ReplyCut, ReplyTooLarge or BadReply.
        """
        where = f"{self._server.provider} at {self._server.shown}"
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    raw = await anext(self._chunks, b"")
            except TimeoutError:
                raise ModelTimeout(f"{where}: {why}", retryable=True) from None
            except httpx.TransportError as error:
                raise _broken(error, self._server) from None
            piece = self._decoded(raw)
            self._read += len(piece)
            if self._read > self._most:
                raise ReplyTooLarge(f"{where} sent over {self._most:,} bytes")
            if not raw and self._unzip and self._read and not self._unzip.eof:
                raise ReplyCut(f"{where} ended the reply early", retryable=True)
            if piece or not raw:
                return piece

    def _decoded(self, raw: bytes) -> bytes:
        if self._unzip is None:
            return raw
        try:
            return bytes(self._unzip.decompress(raw, self._most - self._read + 1))
        except zlib.error:
            raise BadReply(f"{self._server.provider} at {self._server.shown}: says gzip and is not") from None

    async def whole(self, deadline: float, most: int | None = None) -> bytes:
        """Return the rest; with `most`, no more than that of it."""
        body = bytearray()
        while piece := await self.next(deadline, "the reply does not end"):
            body += piece
            if most is not None and len(body) >= most:
                return bytes(body[:most])
        return bytes(body)


class Transport:
    """Requests to one server over connections that are kept. `headers` hold the key."""

    def __init__(self, server: Server, headers: Mapping[str, str], limits: Limits | None = None) -> None:
        self.server = server
        self.limits = limits or Limits()
        self._headers = {**headers, "accept-encoding": "identity", "user-agent": "sennit"}
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def sent(
        self, method: str, path: str, body: Any = None, *, deadline: float, most: int = 0
    ) -> AsyncIterator[Incoming]:
        """Send a request, and give the reply once its head is there.

        The connection is closed at the end of the block unless the reply was read to its end.
        """
        client = self._connected()
        request = client.build_request(method, f"{self.server.url}{path}", json=body)
        try:
            async with asyncio.timeout_at(deadline):
                response = await client.send(request, stream=True)
        except TimeoutError:
            raise ModelTimeout(f"{self.server.provider} at {self.server.shown}: no answer", retryable=True) from None
        except httpx.TransportError as error:
            raise _broken(error, self.server) from None
        try:
            yield Incoming(response, self.server, most or self.limits.bytes)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                headers=self._headers,
                verify=_certificates(),
                trust_env=not _local(self.server.url),
                follow_redirects=False,
                timeout=httpx.Timeout(None, connect=self.limits.connect),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=15.0),
            )
        return self._client


def _broken(error: httpx.TransportError, server: Server) -> ProviderError:
    where = f"{server.provider} at {server.shown}"
    if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        why = quoted(str(error), server) or "no connection in time"
        final = "CERTIFICATE_VERIFY_FAILED" in str(error)
        return ServerUnreachable(f"{where} cannot be reached: {why}; check {server.url_variable}", retryable=not final)
    return ReplyCut(f"{where} ended the reply early ({type(error).__name__})", retryable=True)


def _unzip(encoding: str, server: Server) -> Any:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip"):
        raise BadReply(f"{server.provider} at {server.shown} answers in the encoding {encoding[:40]!r}")
    return zlib.decompressobj(wbits=31)


def _local(url: str) -> bool:
    """Whether a server is on this machine, where no proxy belongs in between."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@cache
def _certificates() -> ssl.SSLContext:
    """Load the trusted certificates once; SSL_CERT_FILE and SSL_CERT_DIR are honoured."""
    return httpx.create_ssl_context()
