"""A small web server for the tools that fetch."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

Answer = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """What a client asked of the web server double."""

    path: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""


@dataclass
class Web:
    """A real HTTP server on the loopback that answers with whatever bytes a test wants."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    answers: dict[str, bytes | Answer] = field(default_factory=dict)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def page(self, path: str, body: bytes, kind: str = "text/html", status: str = "200 OK", extra: str = "") -> str:
        """Serve `body` at `path` and return its URL."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        self.answers[path] = head.encode() + body
        return self.url(path)

    def redirect(self, path: str, location: str, status: str = "302 Found") -> str:
        return self.page(path, b"", status=status, extra=f"Location: {location}\r\nSet-Cookie: session=secret\r\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = head[0].split(" ")
            request = Request(path, headers, method, body)
            self.requests.append(request)
            answer = self.answers.get(request.path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(request, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def web(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    """The web server double, which the guard allows."""
    site = Web()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", f"127.0.0.1:{site.port}")
    yield site
    server.close()
