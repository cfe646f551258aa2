"""A small HTTP server for probes: /livez, /readyz and /metrics."""

import asyncio
import json
from dataclasses import dataclass, field

from workers.settings import Endpoint

_PATIENCE = 5.0  # seconds a caller has to send its request and take its answer
_AT_ONCE = 64
_HEAD_BYTES = 8192
_METRICS_BYTES = 16 * 1024 * 1024
_PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


@dataclass(slots=True)
class Readiness:
    """What /readyz answers: ready when `reason` is None, else why not. `store` is the id of the artifact store."""

    role: str
    queues: tuple[str, ...]
    store: str | None = None
    reason: str | None = "starting"


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes
    kind: str = "text/plain; charset=utf-8"


@dataclass(slots=True)
class HealthServer:
    """Answers probes until closed. Slow, malformed or excess callers are cut off; they cost no one else anything."""

    readiness: Readiness
    metrics: Endpoint | None
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, endpoint: Endpoint) -> Endpoint:
        """Listen, and return where; raises OSError when the port cannot be had."""
        self._server = await asyncio.start_server(self._serve, endpoint.host, endpoint.port, limit=_HEAD_BYTES)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Endpoint(host, port)

    def close(self) -> None:
        """Stop listening and drop open connections."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= _AT_ONCE:
            writer.transport.abort()
            return
        self._open.add(task)
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._converse(reader, writer)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._open.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        target, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            reply = _Reply(400, b"this is not HTTP/1\n")
        elif method not in (b"GET", b"HEAD"):
            reply = _Reply(405, b"only GET and HEAD\n")
        else:
            reply = await self._answer(target.partition(b"?")[0].decode("latin-1"))
        writer.write(_encode(reply, with_body=method != b"HEAD"))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _answer(self, path: str) -> _Reply:
        if path == "/livez":
            return _Reply(200, b"alive\n")
        if path == "/readyz":
            return self._ready()
        if path == "/metrics":
            return await self._metrics()
        return _Reply(404, b"there are /livez, /readyz and /metrics\n")

    def _ready(self) -> _Reply:
        now = self.readiness
        told: dict[str, object] = {"ready": now.reason is None}
        if now.reason is not None:
            told["reason"] = now.reason
        told |= {"role": now.role, "queues": now.queues, "store": now.store}
        return _Reply(200 if now.reason is None else 503, json.dumps(told).encode() + b"\n", "application/json")

    async def _metrics(self) -> _Reply:
        if self.metrics is None:
            return _Reply(404, b"no metrics: set SENNIT_METRICS_PORT to have the SDK collect them\n")
        try:
            return await _fetch(self.metrics)
        except (OSError, EOFError, ValueError) as problem:
            return _Reply(502, f"the metrics of {self.metrics} cannot be read: {problem}\n".encode())


async def _fetch(source: Endpoint) -> _Reply:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(source.host, source.host)  # noqa: S104 - compared, not bound
    reader, writer = await asyncio.open_connection(host, source.port)
    try:
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ValueError(head.partition(b"\r\n")[0].decode("latin-1"))
        body = await _all(reader)
    finally:
        writer.close()
    return _Reply(200, body, "text/plain; version=0.0.4; charset=utf-8")


async def _all(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await reader.read(65_536):
        parts.append(chunk)
        size += len(chunk)
        if size > _METRICS_BYTES:
            raise ValueError(f"more than {_METRICS_BYTES} bytes")
    return b"".join(parts)


def _encode(reply: _Reply, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {reply.status} {_PHRASES[reply.status]}\r\nContent-Type: {reply.kind}\r\n"
        f"Content-Length: {len(reply.body)}\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode("latin-1") + (reply.body if with_body else b"")
