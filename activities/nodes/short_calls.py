"""The short calls that a step of a program makes itself, beside each other, instead of handing them over; and the tasks
that it begins itself, with theirs.

Each call leaves its marker, as in a group, so that the successor of a killed worker makes only the rest. Which calls
these are `sennit.workflows.plan.fusion.rules` says.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
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
from sennit.workflows.plan.language.nodes import JoinNode
from sennit.workflows.plan.limits import MAX_STEP_CALLS
from sennit.workflows.plan.scheduling.joins import JoinInput, manifest_of

MakeCall = Callable[[StoredPlan, str], Coroutine[Any, Any, NodeReply]]
Recorded = Callable[[StoredPlan, str], Coroutine[Any, Any, NodeReply | None]]
"""Returns how a call of a page has ended in the runs that are forked, None if nothing is recorded of it."""
BeginTask = Callable[[StoredPlan, str, "ShortCalls"], Coroutine[Any, Any, NodeReply]]
"""Carries a task on until it ends, or waits for something else than short calls: then it asks for more nodes."""
STEP_SECONDS, BESIDE_LONG_SECONDS = 10.0, 0.5
"""After which a step hands over; the second, while the script also waits for a call that is an activity."""
GRACE_SECONDS = 1.0
"""For which a step that hands over waits for calls in flight, and then once more for tasks that hand over."""


class ProgramRunner(Protocol):
    """Advances programs."""

    async def advance(self, context: NodeContext, make: MakeCall, recorded: Recorded) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for. Short ones it may `make`; how others
        have ended in the runs that are forked is `recorded`.
        """


class StepAlone(Exception):
    """A step makes short calls itself, and so not behind another call, whose end would wait for theirs."""


class Bounds:
    """What one step may do itself, in all of the sessions that it carries on. `last` is when the last call ended: what
    is told later ended later, whatever the clocks say.
    """

    def __init__(self, call: ProgramNodeCall) -> None:
        self.timings = Timings.of(call.fuse, call.usual)
        self.follows = call.follows
        self.paid = call.left.get("nodes")
        self.began = time.monotonic()
        self.batches = Batches()
        self.last = max(call.since, *call.ends.values(), 0)
        self.nodes = self.calls = self.bytes = 0

    def takes(self, calls: int = 0) -> bool:
        """Whether the step may make so many more calls, and has no more to tell than one may."""
        return self.calls + calls <= MAX_STEP_CALLS and self.bytes <= MAX_ENDS_BYTES

    def takes_log(self, log: Sequence[str]) -> bool:
        """Count what a task has logged, if the step may tell that too."""
        size = sum(map(len, log))
        is_taken = self.bytes + size <= MAX_ENDS_BYTES
        self.bytes += size * is_taken
        return is_taken


class ShortCalls:
    """The calls of one session in one step: `specs` has what they are, and `ends` how they ended, in order, with when.
    Those of joins are worked out here too. A task among them has a session with calls of its own.
    """

    def __init__(self, make: MakeCall, begin_task: BeginTask, queue: str, bounds: Bounds) -> None:
        self._make = make
        self._begin_task = begin_task
        self._queue = queue
        self.bounds = bounds
        self._tasks: dict[str, asyncio.Task[NodeReply]] = {}
        self._began: dict[str, int] = {}
        self._inner: dict[str, ShortCalls] = {}
        self._done: deque[str] = deque()
        self._wake = asyncio.Event()
        self.specs: dict[str, NodeSpec] = {}
        self._joins: dict[str, JoinNode] = {}
        self._joined_by: dict[str, list[str]] = {}
        self._missing: dict[str, int] = {}
        self.ends: dict[str, NodeReply] = {}
        self.moved: dict[str, bool] = {}  # those that are told later than they ended by their markers
        self.has_others = False
        """Whether the script has made a call that its step does not make: to be handed over at once."""
        self._has_waited = False
        self._last_read = bounds.last  # when the last end was of those that the script knows

    def makes(self, spec: NodeSpec) -> bool:
        """Whether the step makes this call, or begins this task."""
        if spec.kind == "program":
            return not spec.expires
        return not why_not_in_place(spec, self._queue) and self.bounds.timings.is_short(spec)

    def begin(self, checked: StoredPlan) -> None:
        """Begin the calls of these nodes, unless one of them is to be handed over, or a join of them has limits."""
        mine = dict[str, NodeSpec]()
        for node in checked.plan.nodes:
            spec = checked.spec(node.id)
            if self.makes(spec):
                mine[spec.id] = spec
            elif isinstance(node, JoinNode) and not (spec.width or spec.expires) and self._joins_mine(node, mine):
                self._open(node)
            else:
                self.has_others = True
        tasks = [name for name, spec in mine.items() if spec.kind == "program"]
        nodes = len(mine) + len(tasks)  # each task ends with a step
        if self.bounds.paid is not None and self.bounds.nodes + nodes > self.bounds.paid:
            self.has_others = True  # whether there is budget for them the run decides
        if not self.bounds.takes(len(mine) - len(tasks)):
            self.has_others = True
        if self.has_others:
            return
        if self.bounds.follows and mine:
            raise StepAlone
        self.bounds.nodes += nodes
        self.bounds.calls += len(mine) - len(tasks)
        self.specs |= mine
        for name in mine:
            self._start(checked, name, is_task=name in tasks)

    def _start(self, checked: StoredPlan, name: str, *, is_task: bool) -> None:
        if is_task:
            inner = self._inner[name] = type(self)(self._make, self._begin_task, self._queue, self.bounds)
            inner._last_read = self._last_read
            work = self._begin_task(checked, name, inner)
        else:
            self._began[name] = millis_now()
            work = self.bounds.batches.seat().run(self._make(checked, name))
        task = self._tasks[name] = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._note(name))

    def _joins_mine(self, node: JoinNode, mine: Mapping[str, NodeSpec]) -> bool:
        """Whether a join closes when calls of this step have ended, whichever is the first."""
        is_known = all(name in mine or name in self.specs for name in node.inputs)
        return node.policy in ("all", "settled") and node.deadline is None and is_known

    def _open(self, node: JoinNode) -> None:
        """Have a join close when the last of its inputs ends."""
        self._joins[node.id] = node
        waits = [name for name in node.inputs if name not in self.ends]
        for name in waits:
            self._joined_by.setdefault(name, []).append(node.id)
        self._missing[node.id] = len(waits)
        if any(self.ends[name].ref is None for name in node.inputs if name in self.ends):
            self.has_others = True
        elif not waits:
            self._close(node)

    def _note(self, name: str) -> None:
        self._done.append(name)
        self._wake.set()

    async def next(self, waits: Sequence[str]) -> list[str]:
        """Return what has ended of that for which the script `waits`, as soon as something has; nothing if the step is
        to hand over.
        """
        self._has_waited = True
        is_beside = any(name not in self.specs and name not in self._joins for name in waits)
        limit = self.bounds.began + (BESIDE_LONG_SECONDS if is_beside else STEP_SECONDS)
        self._note_done()
        while not self.has_others:
            found = [name for name in waits if name in self.ends]
            rest = limit - time.monotonic()
            if found and rest > 0 and self.bounds.takes():
                self._last_read = max(self._last_read, *(self.ends[name].at for name in found))
                return found
            if found or rest <= 0 or not self._tasks:
                break
            await self._note_ends(rest)
        await self._finish()
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
        done = {self._done.popleft(): True for _ in range(len(self._done))}
        first = self.bounds.last + 1
        for name in [name for name in self._tasks if name in done]:
            task = self._tasks.pop(name)
            if not task.cancelled():
                self._end(name, reply_of(task), first)

    def _end(self, name: str, reply: NodeReply, first: int) -> None:
        """Note the end of a call, at the time that its marker has: a fork goes by that. A task, which an edit runs
        again, ends when its script has ended, but later than what the script that waits for it knows.
        """
        if reply.more:  # a task that waits for something else
            self.has_others = True
            return
        earliest = self._last_read + 1 if name in self._inner else first
        at = max(earliest, reply.at or millis_now())
        if reply.at and reply.at != at:
            self.moved[name] = True
        self.bounds.last = max(self.bounds.last, at)
        times: dict[str, Any] = {"at": at}
        if reply.error is not None and name in self._began:
            times["span"] = (self._began[name], at)
        self.ends[name] = reply = reply.model_copy(update=times)
        self.bounds.bytes += message_bytes(reply, exclude_defaults=True)
        self.has_others |= reply.error is not None and reply.error.again
        if reply.millis:
            self.bounds.timings.note(self.specs[name].tool, reply.millis)
        for join in self._joined_by.pop(name, ()):
            self._missing[join] -= 1
            if reply.ref is None:
                self.has_others = True  # whether it closes without this value the run decides
            elif not self._missing[join]:
                self._close(self._joins[join])

    def _close(self, join: JoinNode) -> None:
        """Give a join the value that the run gives it."""
        ends = [self.ends[name] for name in join.inputs]
        inputs = [
            JoinInput(name, end.ref or "", is_data=self.specs[name].kind != "program")
            for name, end in zip(join.inputs, ends, strict=True)
        ]
        reference = manifest_of(str(join.policy), inputs)
        at = max((end.at for end in ends), default=self.bounds.last)
        size = sum(end.size for end in ends)
        self.ends[join.id] = NodeReply(ref=reference, size=size, attempt=0, at=at)

    def give_up(self, names: Iterable[str]) -> None:
        """Cut off calls for which nobody waits any more."""
        for name in names:
            if name in self._tasks:
                self._tasks[name].cancel()

    async def _finish(self) -> None:
        """Wait a little for what is in flight, and for tasks to hand over: what does not end by then is made again."""
        self._hand_over()
        limit = time.monotonic() + GRACE_SECONDS
        await self._wait(self._tasks, limit)
        for name in self._tasks:
            if name not in self._inner:
                self._tasks[name].cancel()
        await self._wait(self._inner, limit + GRACE_SECONDS)
        await self.close()

    def _hand_over(self) -> None:
        """Have the tasks end here that wait for calls, and cut off those that have not come so far."""
        for name, inner in self._inner.items():
            if name in self._tasks and not inner._has_waited:
                self._tasks[name].cancel()
            inner.has_others = True
            inner._wake.set()

    async def _wait(self, names: Collection[str], limit: float) -> None:
        while any(name in self._tasks for name in names) and time.monotonic() < limit:
            await self._note_ends(limit - time.monotonic())

    async def close(self) -> None:
        """Cut off what is in flight."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
