"""The short calls that an advance of a program makes itself, beside each other,
instead of handing them over.

Each call leaves its marker, as in a group, so that the successor of a killed worker makes only the
rest. Which calls these are `sennit.workflows.plan.fusion.rules` says.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from sennit.activities.limits import MAX_ENDS_BYTES
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.group import reply_of
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.batch import Batches
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.fusion.rules import Timings, why_not_in_place
from sennit.workflows.plan.limits import MAX_ADVANCE_CALLS

MakeCall = Callable[[StoredPlan, str], Coroutine[Any, Any, NodeReply]]
Recorded = Callable[[StoredPlan, str], Coroutine[Any, Any, NodeReply | None]]
"""Returns how a call of a page has ended in the runs that are forked, None if
nothing is recorded of it.
"""
ADVANCE_SECONDS, BESIDE_LONG_SECONDS = 10.0, 0.5
"""After which an advance hands over; the second, while the script also waits for a
call that is an activity.
"""
GRACE_SECONDS = 1.0
"""For which an advance that hands over waits for calls in flight."""


class ProgramRunner(Protocol):
    """Advances programs."""

    async def advance(self, context: NodeContext, make: MakeCall, recorded: Recorded) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for. Short ones it may
        `make`; how others have ended in the runs that are forked is `recorded`.
        """


class AdvanceAlone(Exception):
    """An advance makes short calls itself, and so not behind another call, whose end
    would wait for theirs.
    """


class Bounds:
    """What one advance may do itself. `last` is when the last call ended: what is told later ended
    later, whatever the clocks say.
    """

    def __init__(self, call: ProgramNodeCall) -> None:
        self.timings = Timings.of(call.fuse, call.usual)
        self.follows = call.follows
        self.paid = call.left.get("nodes")
        self.began = time.monotonic()
        self.batches = Batches()
        self.last = max(call.since, *call.ends.values(), 0)
        self.calls = self.bytes = 0

    def takes(self, calls: int = 0) -> bool:
        """Whether the advance may make so many more calls, and has no more to tell than one may."""
        return self.calls + calls <= MAX_ADVANCE_CALLS and self.bytes <= MAX_ENDS_BYTES


class ShortCalls:
    """The calls of one advance: `specs` has what they are, and `ends` how they
    ended, in order, with when.
    """

    def __init__(self, make: MakeCall, queue: str, bounds: Bounds) -> None:
        self._make = make
        self._queue = queue
        self.bounds = bounds
        self._tasks: dict[str, asyncio.Task[NodeReply]] = {}
        self._began: dict[str, int] = {}
        self._done: deque[str] = deque()
        self._wake = asyncio.Event()
        self.specs: dict[str, NodeSpec] = {}
        self.ends: dict[str, NodeReply] = {}
        # Those that are told later than they ended by their markers.
        self.moved: dict[str, bool] = {}
        self.has_others = False
        """Whether the script has made a call that its advance does not make: to
        be handed over at once.
        """
        self._is_full = False
        """Whether the advance has made as many calls as it may. Nothing longer waits
        then for those in flight.
        """

    def makes(self, spec: NodeSpec) -> bool:
        """Whether the advance makes this call."""
        return not why_not_in_place(spec, self._queue) and self.bounds.timings.is_short(spec)

    def begin(self, checked: StoredPlan) -> None:
        """Begin the calls of these nodes, unless one of them is to be handed over."""
        mine = dict[str, NodeSpec]()
        for node in checked.plan.nodes:
            spec = checked.spec(node.id)
            if self.makes(spec):
                mine[spec.id] = spec
            else:
                self.has_others = True
        paid = self.bounds.paid
        if paid is not None and self.bounds.calls + len(mine) > paid:
            self.has_others = True  # whether there is budget for them the run decides
        if not self.has_others and not self.bounds.takes(len(mine)):
            self.has_others = self._is_full = True
        if self.has_others:
            return
        if self.bounds.follows and mine:
            raise AdvanceAlone
        self.bounds.calls += len(mine)
        self.specs |= mine
        for name in mine:
            self._start(checked, name)

    def _start(self, checked: StoredPlan, name: str) -> None:
        seat = self.bounds.batches.seat()

        async def work() -> NodeReply:
            # The call itself is made here, so that nothing of it is left if it is
            # cut off before it begins.
            return await seat.run(self._make(checked, name))

        def end(_: object) -> None:
            # The batches of others do not wait for a call that was cut off before it began.
            seat.leave()
            self._note(name)

        self._began[name] = millis_now()
        task = self._tasks[name] = asyncio.ensure_future(work())
        task.add_done_callback(end)

    def _note(self, name: str) -> None:
        self._done.append(name)
        self._wake.set()

    async def next(self, waits: Sequence[str]) -> list[str]:
        """Return what has ended of that for which the script `waits`, as soon as something has;
        nothing if the advance is to hand over.
        """
        is_beside = any(name not in self.specs for name in waits)
        seconds = BESIDE_LONG_SECONDS if is_beside else ADVANCE_SECONDS
        limit = self.bounds.began + seconds
        self._note_done()
        while not self.has_others:
            found = [name for name in waits if name in self.ends]
            rest = limit - time.monotonic()
            if found and rest > 0 and self.bounds.takes():
                return found
            if found or rest <= 0 or not self._tasks:
                break
            await self._note_ends(rest)
        await self.finish()
        return []

    async def _note_ends(self, seconds: float) -> None:
        """Wait until a call has ended, but no longer than that, and note what has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()
        self._note_done()

    def _note_done(self) -> None:
        """Note how those calls have ended that have."""
        done = set(self._done)
        self._done.clear()
        first = self.bounds.last + 1
        # The calls that are done leave the dict, so the loop goes over a list of them.
        for name in [name for name in self._tasks if name in done]:
            task = self._tasks.pop(name)
            if not task.cancelled():
                self._end(name, reply_of(task), first)

    def _end(self, name: str, reply: NodeReply, first: int) -> None:
        """Note the end of a call, at the time that its marker has: a fork goes by that."""
        at = max(first, reply.at or millis_now())
        if reply.at and reply.at != at:
            self.moved[name] = True
        self.bounds.last = max(self.bounds.last, at)
        times: dict[str, Any] = {"at": at}
        if reply.error is not None:
            times["span"] = (self._began[name], at)
        self.ends[name] = reply = reply.model_copy(update=times)
        self.bounds.bytes += message_bytes(reply, exclude_defaults=True)
        self.has_others |= reply.error is not None and reply.error.again
        if reply.millis:
            tool = self.specs[name].tool
            self.bounds.timings.note(tool, reply.millis)

    def give_up(self, names: Iterable[str]) -> None:
        """Cut off calls for which nobody waits any more."""
        for name in names:
            if name in self._tasks:
                self._tasks[name].cancel()

    async def finish(self) -> None:
        """Wait a little for what is in flight: what does not end by then is made again."""
        limit = time.monotonic() + GRACE_SECONDS
        if self._is_full:
            limit = max(limit, self.bounds.began + ADVANCE_SECONDS)
        while self._tasks and time.monotonic() < limit:
            await self._note_ends(limit - time.monotonic())
        await self.close()

    async def close(self) -> None:
        """Cut off what is in flight."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
