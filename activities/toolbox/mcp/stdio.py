"""A server that speaks on stdin and stdout: a transport for the SDK, whose own
keeps lines of any length.
"""

import asyncio
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, TextIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from sennit.activities.http.turns import Turns
from sennit.activities.limits import MAX_SERVER_MESSAGE_BYTES
from sennit.activities.toolbox.mcp.deep_tools import without_deep_tools

ANSWERED: Final = "answered"
"""The data of an error if the server has answered the request, and its answer cannot be read."""

_CHUNK: Final = 64 * 1024
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')
_SHOWN_BYTES: Final = 256  # of a message that is too long: its id stands near its beginning
_POLL_SECONDS: Final = 0.02
_EXIT_SECONDS: Final = 2.0  # for a server to end once its input is closed, as the protocol says
_STOP_SECONDS: Final = 5.0  # for the process above it to end it and what it has started

Received = SessionMessage | Exception


@dataclass(slots=True)
class Lines:
    """Lines of bytes in chunks of any size. A line that is longer than `most` is not kept; only its
    beginning is given, marked as too long.
    """

    most: int
    _rest: bytearray = field(default_factory=bytearray)
    _is_long: bool = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each line that this chunk completes, and whether it was too long."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            yield bytes(self._rest), self._is_long
            self._rest.clear()
            self._is_long = False
            start = end + 1
        self._keep(chunk[start:])

    def _keep(self, piece: bytes) -> None:
        if self._is_long:
            return
        self._rest += piece
        if len(self._rest) > self.most:
            del self._rest[_SHOWN_BYTES:]
            self._is_long = True


@dataclass(slots=True)
class StdioTransport:
    """Starts the command and gives the streams that the SDK reads messages from and writes them to.

    `leave_out` is told the names of tools that are nested too deep to be read. At the end the
    server's input is closed, and whatever is left of it is ended.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    errors: TextIO
    leave_out: Callable[[str], None]
    _process: Process | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _streams: list[Any] = field(default_factory=list)

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]:
        """Raises OSError if the command cannot be started."""
        process = self._process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=self.errors,
            env={**get_default_environment(), **self.env},
            cwd=self.cwd,
            start_new_session=True,
        )
        incoming, received = anyio.create_memory_object_stream[Received](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._streams = [incoming, received, sent, outgoing]
        self._tasks = [
            asyncio.create_task(self._read(process, incoming)),
            asyncio.create_task(_write(process, outgoing, incoming)),
        ]
        return received, sent

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            for stream in self._streams:
                await stream.aclose()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._process is not None:
                await _stop(self._process)

    async def _read(self, process: Process, incoming: MemoryObjectSendStream[Received]) -> None:
        """Hand on the server's messages until it closes its output; then the
        session's calls in flight fail.
        """
        assert process.stdout is not None
        lines, turns = Lines(MAX_SERVER_MESSAGE_BYTES), Turns()
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            async with incoming:
                while chunk := await process.stdout.read(_CHUNK):
                    for line, is_long in lines.feed(chunk):
                        await turns.give_way()
                        if is_long:
                            problem = f"its answer has over {MAX_SERVER_MESSAGE_BYTES:,} bytes"
                            await incoming.send(_unreadable(line, problem, ValueError(problem)))
                        elif line.strip():
                            await incoming.send(self._message(line))

    def _message(self, line: bytes) -> Received:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except (
            ValueError
        ) as error:  # what a server prints beside its messages, or a list that is nested too deep
            message, names = without_deep_tools(line)
            for name in names:
                self.leave_out(name)
            return (
                self._message(message)
                if names
                else _unreadable(line, "its answer cannot be read", error)
            )


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[Received],
) -> None:
    """Write the client's messages. A server that takes none any more has ended its session."""
    assert process.stdin is not None
    try:
        async with outgoing:
            async for message in outgoing:
                written = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(written.encode() + b"\n")
                await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        await incoming.aclose()


def _unreadable(line: bytes, problem: str, error: ValueError) -> Received:
    """Return the error of the call that a line answers; of any other line, an
    error that fails no call.
    """
    begins = line[:_SHOWN_BYTES].lstrip()
    number = _ID.search(begins)
    if number is None or not begins.startswith(b"{"):
        return error
    answer = ErrorData(code=INTERNAL_ERROR, message=problem, data=ANSWERED)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(number[1]), error=answer))


async def _stop(process: Process) -> None:
    """End the server: by its closed input, then by SIGTERM, then by SIGKILL."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    # A server that waits to write does not see its input's end.
    drained = asyncio.create_task(_drain(process.stdout))
    for end, seconds in ((process.terminate, _EXIT_SECONDS), (process.kill, _STOP_SECONDS)):
        if await _has_ended(process, seconds):
            break
        with suppress(ProcessLookupError):
            end()
    await _has_ended(process, _EXIT_SECONDS)
    await asyncio.wait([drained], timeout=_EXIT_SECONDS)
    drained.cancel()


async def _drain(output: asyncio.StreamReader) -> None:
    """Read until every process has closed its end; the pipe is closed then."""
    with suppress(ConnectionError):
        while await output.read(_CHUNK):
            pass


async def _has_ended(process: Process, seconds: float) -> bool:
    """Wait for the end of the process itself: `wait` would also wait for whoever
    else holds its output.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
    return process.returncode is not None
