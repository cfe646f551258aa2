"""A model server for tests: real HTTP, both wire formats, answers by rules, faults on command.

By hand:

    python -m sennit.testing.models --port 8777 --rules rules.json --first-token 0.3 --rate 60
    OPENAI_BASE_URL=http://127.0.0.1:8777/v1 sennit ask "..."
    ANTHROPIC_BASE_URL=http://127.0.0.1:8777 ANTHROPIC_API_KEY=any sennit ask "..."

Without a rule that fits it says `no rule for: ` and the last message it got.
"""

import argparse
import asyncio
import json
import socket
import struct
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sennit.testing.model_formats import AnthropicFormat, BadRequest, Format, OpenAIFormat, counted
from sennit.testing.model_rules import Asked, Reply, Rule, load_rules, paced, pieces, rule

FORMATS: dict[str, Format] = {
    "/v1/chat/completions": OpenAIFormat(),
    "/v1/messages": AnthropicFormat(),
}
HUGE = 50 * 1024 * 1024
LORIS_SECONDS = 0.2


@dataclass
class ModelServer:
    """A running server. `asked` has every request in order, `billed` what each of them cost in
    full, nothing if it was refused, `streamed` how many tokens of its stream went out, `paths`
    every path; `open` are its connections, `busy` its calls now, `dropped` the connections that
    broke."""

    rules: list[Rule] = field(default_factory=list)
    models: tuple[str, ...] = ("test-model",)
    first_token: float = 0.0
    rate: float = 0.0
    key: str | None = None
    refuse: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    billed: list[tuple[int, int]] = field(default_factory=list)
    streamed: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    open: int = 0
    busy: int = 0
    most_open: int = 0
    dropped: int = 0
    connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The address without a path: what ANTHROPIC_BASE_URL wants."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """What OPENAI_BASE_URL wants."""
        return f"{self.url}/v1"

    def on(self, match: str | Callable[[Asked], bool], *replies: Any, **fields: Any) -> Rule:
        """Add a rule, and return it."""
        self.rules.append(rule(match, *replies, **fields))
        return self.rules[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it closes or a fault ends it."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while await _Exchange(self, reader, writer).run():
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.dropped += 1
        finally:
            self.open -= 1
            writer.close()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends, or the server does."""
        task = asyncio.ensure_future(self.serve(reader, writer))
        self.connections.add(task)
        await asyncio.wait([task])
        self.connections.discard(task)

    def note(self, asked: Asked) -> int:
        """Remember a request, in `asked` and as a line of JSON in the log; returns its place."""
        self.asked.append(asked)
        self.billed.append((0, 0))
        self.streamed.append(0)
        if self.log is not None:
            with self.log.open("a") as log:
                log.write(
                    json.dumps({"format": asked.format, "stream": asked.stream, "text": asked.text})
                    + "\n"
                )
        return len(self.asked) - 1

    def reply_to(self, asked: Asked) -> Reply:
        """Return the reply of the first rule that takes the request."""
        for each in self.rules:
            if each.takes(asked):
                return paced(each.reply(asked), self.first_token, self.rate)
        return paced(
            Reply(text=f"no rule for: {asked.turns[-1][1][:200]}"), self.first_token, self.rate
        )


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def run(self) -> bool:
        """Answer; whether the connection stays."""
        line = await self._reader.readline()
        if not line:
            return False
        method, path, _ = line.decode().split()
        headers = await self._headers()
        length = int(headers.get("content-length", "0"))
        body = await self._reader.readexactly(length)
        self._server.paths.append(f"{method} {path}")
        path = path.partition("?")[0]

        # An error has the form that the client reads; only Anthropic's clients send their key
        # in a header of its own.
        usual_path = "/v1/messages" if "x-api-key" in headers else "/v1/chat/completions"
        wire = FORMATS.get(path, FORMATS[usual_path])
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self._server.key is not None and key != self._server.key:
            refusal = Reply(
                text=f"Incorrect API key provided: {key}", status=401, code="authentication_error"
            )
            return await self._status(wire.error(refusal), 401)
        if method == "GET" and path == "/v1/models":
            models = [
                {"id": name, "object": "model", "type": "model"} for name in self._server.models
            ]
            return await self._status({"object": "list", "data": models, "has_more": False}, 200)
        if path not in FORMATS:
            return await self._status({"detail": "Not Found"}, 404)
        return await self._call(wire, json.loads(body), headers)

    async def _headers(self) -> dict[str, str]:
        """Read the headers of a request, up to the empty line behind them; their
        names are in small letters.
        """
        headers: dict[str, str] = {}
        while True:
            line = await self._reader.readline()
            text = line.decode().strip()
            if not text:
                return headers
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()

    async def _call(self, wire: Format, body: dict[str, Any], headers: dict[str, str]) -> bool:
        try:
            asked = wire.read(body, headers)
        except BadRequest as problem:
            return await self._status(wire.error(Reply(text=str(problem))), 400)
        place = self._server.note(asked)
        self._server.busy += 1
        try:
            return await self._answer(wire, asked, place)
        finally:
            self._server.busy -= 1

    async def _answer(self, wire: Format, asked: Asked, place: int) -> bool:
        for name in self._server.refuse:
            if name in asked.body:
                return await self._status(wire.error(Reply(text=self._server.refuse[name])), 400)
        if asked.model not in self._server.models:
            refusal = Reply(
                text=f"The model `{asked.model}` does not exist", code="not_found_error"
            )
            return await self._status(wire.error(refusal), 404)
        reply = self._server.reply_to(asked)
        if reply.body is not None:
            return await self._send(reply.status, reply.body.encode(), reply.headers)
        if reply.status != 200:
            return await self._status(wire.error(reply), reply.status, reply.headers)
        self._server.billed[place] = counted(reply, asked)
        number = len(self._server.asked)
        if reply.fault == "hang":
            await self._reader.read()
            return False
        if not asked.stream:
            await asyncio.sleep(reply.first_token)
            return await self._status(wire.whole(reply, asked, number), 200)
        return await self._stream(wire, reply, list(wire.stream(reply, asked, number)), place)

    async def _stream(
        self, wire: Format, reply: Reply, events: list[tuple[str, bool]], place: int
    ) -> bool:
        if reply.fault == "html":
            return await self._send(
                200, b"<html><title>Sign in</title></html>", {"content-type": "text/html"}
            )
        if reply.fault == "wrong type":
            event, _ = events[0]
            return await self._send(200, event.encode(), {"content-type": "text/plain"})
        head = self._head(200, {"content-type": "text/event-stream", "connection": "close"})
        if reply.fault == "bomb":
            head = self._head(
                200, {"content-type": "text/event-stream", "content-encoding": "gzip"}
            )
        if reply.fault == "slow head":
            return await self._slowly(head)
        self._writer.write(head)
        if reply.fault in ("huge", "bomb"):
            return await self._flood(reply.fault)
        await asyncio.sleep(reply.first_token)
        return await self._events(wire, reply, events, place)

    async def _events(
        self, wire: Format, reply: Reply, events: list[tuple[str, bool]], place: int
    ) -> bool:
        """Write the events of a stream, with the fault of the reply in their midst."""
        half = len(events) // 2
        clock = asyncio.get_running_loop().time
        due = clock()
        for number, (event, is_token) in enumerate(events):
            if reply.fault and number == half and await self._fault(reply.fault, wire):
                return False
            if reply.fault == "no end" and event.startswith(
                ("data: [DONE]", "event: message_stop")
            ):
                await self._reader.read()
                return False
            await self._write_event(event, reply, number)
            if not is_token:
                continue
            # A token is due by the clock of the stream, so that a late one delays no other.
            self._server.streamed[place] += 1
            if reply.rate:
                due += 1 / reply.rate
                await asyncio.sleep(max(0.0, due - clock()))
        return False

    async def _write_event(self, event: str, reply: Reply, number: int) -> None:
        is_slow = reply.fault == "slow loris"
        size = 1 if is_slow else reply.cut
        for piece in pieces(event.encode(), size, reply.seed + number):
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(LORIS_SECONDS if is_slow else 0)

    async def _fault(self, fault: str, wire: Format) -> bool:
        """Do what happens in the middle of a stream; whether it ends there."""
        if fault == "hang in stream":
            await self._reader.read()
        elif fault == "reset":
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self._writer.transport.abort()
        elif fault == "error event":
            event = wire.error_event(
                Reply(text="the engine is overloaded", code="overloaded_error")
            )
            self._writer.write(event.encode())
            await self._writer.drain()
        elif fault in ("not utf-8", "not json", "odd json"):
            data = {"not utf-8": b'"\xff\xfe"', "not json": b"{oops", "odd json": b'["a", 1]'}[
                fault
            ]
            self._writer.write(b"data: " + data + b"\n\n")
            await self._writer.drain()
            return False
        elif fault != "cut":
            return False
        return True

    async def _slowly(self, head: bytes) -> bool:
        for byte in head:
            self._writer.write(bytes([byte]))
            await self._writer.drain()
            await asyncio.sleep(LORIS_SECONDS)
        return False

    async def _flood(self, fault: str) -> bool:
        block = b": " + b"x" * 65_533 + b"\n"
        blocks = HUGE // len(block)
        if fault == "bomb":
            # Only the first block has the head of gzip; all others are packed alike.
            packer = zlib.compressobj(wbits=31)
            head = packer.compress(block)
            head += packer.flush(zlib.Z_FULL_FLUSH)
            following = packer.compress(block)
            following += packer.flush(zlib.Z_FULL_FLUSH)
            self._writer.write(head + following * blocks)
            await self._writer.drain()
            return False
        for _ in range(blocks):
            self._writer.write(block)
            await self._writer.drain()
        return False

    async def _status(self, data: Any, status: int, headers: dict[str, str] | None = None) -> bool:
        kind = {"content-type": "application/json"}
        return await self._send(status, json.dumps(data).encode(), kind | (headers or {}))

    async def _send(self, status: int, body: bytes, headers: dict[str, str]) -> bool:
        self._writer.write(self._head(status, {**headers, "content-length": str(len(body))}) + body)
        await self._writer.drain()
        return True

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {status} Said"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def model_server(*rules: Rule, port: int = 0, **fields: Any) -> AsyncIterator[ModelServer]:
    """Serve on 127.0.0.1 until the block ends."""
    found = ModelServer(rules=list(rules), **fields)
    listener = await asyncio.start_server(found.take, "127.0.0.1", port)
    found.port = listener.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        listener.close()
        for task in found.connections:
            task.cancel()
        await asyncio.gather(*found.connections, return_exceptions=True)


async def _forever(rules: Iterable[Rule], **fields: Any) -> None:
    async with model_server(*rules, **fields) as server:
        sys.stdout.write(f"OPENAI_BASE_URL={server.openai_url}  ANTHROPIC_BASE_URL={server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve until interrupted; the first line on stdout says where."""
    parser = argparse.ArgumentParser(
        prog="sennit.testing.models", description="A model server for tests."
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rules", type=Path, help="a JSON file of rules")
    parser.add_argument("--model", action="append", help="a model it has; may be repeated")
    parser.add_argument("--first-token", type=float, default=0.0, help="seconds to the first token")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="tokens a second, 0 for all at once"
    )
    parser.add_argument("--key", help="the only key it takes")
    parser.add_argument("--log", type=Path, help="a file that gets every request as a line of JSON")
    options = vars(parser.parse_args())
    path = options.pop("rules")
    rules: list[Rule] = []
    if path:
        rules = load_rules(path)
    models = tuple(options.pop("model") or ("test-model",))
    asyncio.run(_forever(rules, models=models, **options))


if __name__ == "__main__":
    main()
