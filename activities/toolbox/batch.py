"""Calls of one tool that are ready together in one activity, made as one call of its batch form."""

import asyncio
from collections.abc import Coroutine, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Batched(Protocol):
    """A tool with a batch form."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def batch_size(self) -> int:
        """How many calls its batch form takes at most."""

    async def call_batch(self, calls: list[Any]) -> list[Any]:
        """Return a result, or an exception, for each call. May raise anything."""


@dataclass(slots=True)
class _Open:
    """The calls of a tool that wait for others: what each is called with, and
    where its result goes.
    """

    tool: Batched
    calls: list[tuple[Any, asyncio.Future[Any]]] = field(default_factory=list)


class Batches:
    """The batches of one activity. One is made when it is full, or when every node that has begun
    has come to a call or to its end: what is not ready by then is waited for by nobody.
    """

    def __init__(self) -> None:
        self._coming = 0
        self._open: dict[str, _Open] = {}
        self._made: dict[asyncio.Task[None], bool] = {}

    def seat(self) -> "Seat":
        """Return the place of a node that begins now."""
        self._coming += 1
        return Seat(self)

    def left(self) -> None:
        """Note that a node has come to a call, or to its end."""
        self._coming -= 1
        if not self._coming:
            for name in list(self._open):
                self._make(name)

    def add(self, tool: Batched, arguments: Any) -> asyncio.Future[Any]:
        """Return where the result of this call will be."""
        found = self._open.setdefault(tool.name, _Open(tool))
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        found.calls.append((arguments, result))
        if len(found.calls) >= tool.batch_size:
            self._make(tool.name)
        return result

    def _make(self, name: str) -> None:
        found = self._open.pop(name)
        task = asyncio.ensure_future(_call(found))
        self._made[task] = True
        task.add_done_callback(self._made.pop)
        results = [result for _, result in found.calls]

        def cancel_if_unwanted(_: asyncio.Future[Any]) -> None:
            """Cancel the call once no node waits for it any more."""
            if all(result.done() for result in results):
                task.cancel()

        for waiting in results:
            waiting.add_done_callback(cancel_if_unwanted)


async def _call(batch: _Open) -> None:
    """Make the call, and give each of those that wait its result. If all of it
    fails, each has failed so.
    """
    calls = [arguments for arguments, _ in batch.calls]
    try:
        ends: Iterable[Any] = await batch.tool.call_batch(calls)
    except Exception as error:  # noqa: BLE001  it is raised again, in each call
        ends = [error] * len(batch.calls)
    for (_, result), end in zip(batch.calls, ends, strict=True):
        if result.done():  # its node was cut off
            continue
        if isinstance(end, Exception):
            result.set_exception(end)
        else:
            result.set_result(end)


class Seat:
    """A node among those of its activity, until it calls a tool or ends."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._is_left = False

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the node's work here."""
        _seat.set(self)
        try:
            return await work
        finally:
            self.leave()

    def leave(self) -> None:
        """Let the batches of others be made: this node adds nothing to them any more."""
        if not self._is_left:
            self._is_left = True
            self._batches.left()

    async def call(self, tool: Batched, arguments: Any) -> Any:
        """Return the result of a call that is made with others. Raises what it, or
        the whole batch, raises.
        """
        result = self._batches.add(tool, arguments)
        self.leave()
        return await result


_seat: ContextVar[Seat | None] = ContextVar("seat", default=None)


def seat() -> Seat | None:
    """Return the place of the node that runs here, None for one that is alone in its activity."""
    return _seat.get()
