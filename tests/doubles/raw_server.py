"""A model server that sends what a script says, byte for byte, with pauses in between."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Piece = bytes | float
"""Bytes that are written at once, or the seconds of a pause."""
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Script:
    """An answer: its status and type, and the pieces of its body."""

    pieces: Sequence[Piece]
    status: int = 200
    kind: str = EVENTS
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[dict[str, Any], int], Script]


@dataclass
class RawServer:
    """Answers each request by `answer`, given its body and how many there were. `asked` are the bodies, `targets` what
    the requests ask for.
    """

    answer: Answer
    asked: list[dict[str, Any]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    url: str = ""
    open: set[asyncio.Task[Any]] = field(default_factory=set)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open.add(task)
        self.writers.append(writer)
        try:
            await self._answer(reader, writer)
        finally:
            self.open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            self.targets.append(head.split(" ")[1])
            length = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
            self.asked.append(json.loads(await reader.readexactly(length)) if length else {})
            script = self.answer(self.asked[-1], len(self.asked))
            headers = {"content-type": script.kind, "connection": "close", **script.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"HTTP/1.1 {script.status} X\r\n{lines}\r\n".encode())
            for piece in script.pieces:
                if isinstance(piece, float):
                    await asyncio.sleep(piece)
                else:
                    writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def raw_server(answer: Answer | Script) -> AsyncIterator[RawServer]:
    """Run a server on a free port. A script is its answer to every request."""

    def always(_body: dict[str, Any], _count: int) -> Script:
        assert isinstance(answer, Script)
        return answer

    server = RawServer(always if isinstance(answer, Script) else answer)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in server.open:
            task.cancel()
        await asyncio.gather(*server.open, return_exceptions=True)

        # A client that has gone without reading leaves bytes behind, for which a transport that was closed would wait.
        # One that has written all of them meanwhile is closed, and asyncio cannot abort it.
        for writer in server.writers:
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()
        await asyncio.sleep(0)


def event(data: Any, name: str = "") -> bytes:
    """Return an event with this data, as JSON unless it is text."""
    written = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {written}\n\n".encode()


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> bytes:
    """Return an event of OpenAI's format."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return event({"object": "chat.completion.chunk", "choices": [choice], **more})


def said(text: str, reason: str | None = None) -> bytes:
    return chunk({"content": text}, reason)


def called(index: int, name: str = "", arguments: str = "", reason: str | None = None, **more: Any) -> bytes:
    """Return a piece of a call."""
    function = {"name": name} if name else {}
    call = {"index": index, "function": {**function, "arguments": arguments}, **more}
    return chunk({"tool_calls": [call]}, reason)


def block(kind: str, **fields: Any) -> bytes:
    """Return an event of Anthropic's format."""
    return event({"type": kind, **fields}, kind)


DONE = b"data: [DONE]\n\n"
STOP = chunk(reason="stop")
CALLED = chunk(reason="tool_calls")
