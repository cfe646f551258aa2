"""A small HTTP server for probes: /livez, /readyz and /metrics."""

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus

from sennit.workers.settings import ListenAddress

_REQUEST_SECONDS = 5.0  # a client has to send its request and take its answer in this time
_MOST_CLIENTS = 64
_HEAD_BYTES = 8192
_TEXT = "text/plain; charset=utf-8"


@dataclass(slots=True)
class Readiness:
    """What /readyz answers: ready when `reason` is None, else why not. `store` is the id of the
    artifact store, `note` what is missing that work can do without.
    """

    role: str
    queues: tuple[str, ...]
    store: str | None = None
    reason: str | None = "starting"
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: HTTPStatus
    body: bytes
    content_type: str = _TEXT


@dataclass(slots=True)
class HealthServer:
    """Answers probes until closed. Slow, malformed and excess connections are dropped
    without affecting others.
    """

    readiness: Readiness
    metrics: ListenAddress | None
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, endpoint: ListenAddress) -> ListenAddress:
        """Listen, and return where; raises OSError when the port cannot be had."""
        self._server = await asyncio.start_server(
            self._serve, endpoint.host, endpoint.port, limit=_HEAD_BYTES
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return ListenAddress(host, port)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._connections):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= _MOST_CLIENTS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                await self._answer(reader, writer)
        except (
            OSError,
            EOFError,
            ValueError,
            TimeoutError,
            asyncio.LimitOverrunError,
            asyncio.CancelledError,
        ):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        target, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            reply = _Reply(HTTPStatus.BAD_REQUEST, b"this is not HTTP/1\n")
        elif method not in (b"GET", b"HEAD"):
            reply = _Reply(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n")
        else:
            reply = await self._reply(target.partition(b"?")[0].decode("latin-1"))
        writer.write(
            f"HTTP/1.1 {reply.status} {reply.status.phrase}\r\nContent-Type: "
            f"{reply.content_type}\r\n"
            f"Content-Length: {len(reply.body)}\r\nConnection: close\r\nCache-Control: "
            "no-store\r\n\r\n".encode()
        )
        if method != b"HEAD":
            writer.write(reply.body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _reply(self, path: str) -> _Reply:
        if path == "/livez":
            return _Reply(HTTPStatus.OK, b"alive\n")
        if path == "/readyz":
            return self._ready()
        if path != "/metrics":
            return _Reply(HTTPStatus.NOT_FOUND, b"there are /livez, /readyz and /metrics\n")
        if self.metrics is None:
            message = b"no metrics: set SENNIT_METRICS_PORT to have the SDK collect them\n"
            return _Reply(HTTPStatus.NOT_FOUND, message)
        try:
            return _Reply(
                HTTPStatus.OK,
                await _fetch(self.metrics),
                "text/plain; version=0.0.4; charset=utf-8",
            )
        except (OSError, EOFError, ValueError) as problem:
            message = f"the metrics of {self.metrics} cannot be read: {problem}\n".encode()
            return _Reply(HTTPStatus.BAD_GATEWAY, message)

    def _ready(self) -> _Reply:
        now = self.readiness
        status = HTTPStatus.OK
        answer: dict[str, object] = {"ready": True}
        if now.reason is not None:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            answer = {"ready": False, "reason": now.reason}
        if now.note:
            answer["note"] = now.note
        answer |= {"role": now.role, "queues": now.queues, "store": now.store}
        return _Reply(status, json.dumps(answer).encode() + b"\n", "application/json")


async def _fetch(source: ListenAddress) -> bytes:
    """Return what the SDK serves on its own port."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(source.host, source.host)  # noqa: S104 - compared, not bound
    reader, writer = await asyncio.open_connection(host, source.port)
    try:
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        status = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0]
        if b" 200 " not in status:
            raise ValueError(status.decode("latin-1"))
        return await reader.read()
    finally:
        writer.close()
