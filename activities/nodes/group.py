"""Runs several nodes in one activity, with the edges among them, by the same
`step` as the workflow.

Each finished node leaves its marker, so that the successor of a killed worker runs only the rest.
Each of them has a process of its own then, and the one that killed the worker fails alone. The
activity never raises for a node: every node has its outcome, and one that may succeed later asks to
be started again, alone.

While some calls go on, the run is told at most once a second what has ended meanwhile: nobody waits
for a straggler. A failure stands in a heartbeat before it is told, because it leaves no marker: the
run may have called the node again by then, so a successor does not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

from temporalio.service import RPCError

from sennit.activities.limits import MAX_CUT_ERROR_CHARACTERS, MAX_PROGRESS_BYTES, MAX_REPLIES_BYTES
from sennit.activities.nodes.binding import parse_unit, reads_at, waits_at
from sennit.activities.nodes.error_mapping import kind_of, message_of, retryable
from sennit.activities.nodes.pace import PACE, Pace, turn
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.batch import Batches
from sennit.activities.toolbox.errors import WorkerLost
from sennit.workflows.messages.contracts import NOT_RUN, GroupProgress, NodeError, NodeReply
from sennit.workflows.messages.message import message_bytes
from sennit.workflows.messages.node_calls import GroupCall
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.conditions import moved
from sennit.workflows.plan.language.facts import facts_of
from sennit.workflows.plan.language.text import cut
from sennit.workflows.plan.limits import MAX_WAVE_MEMBERS
from sennit.workflows.plan.scheduling.events import Decision, NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import CANCELLED, SKIPPED, SUCCEEDED

Tell = Callable[..., Awaitable[None]]
RunOne = Callable[[str, dict[str, str]], Coroutine[Any, Any, NodeReply]]
TELL_SECONDS = 1.0
"""How often a run is told at most: each signal is an event of its history, and
makes a workflow task.
"""
_LATER = NodeReply(error=NodeError(type=NOT_RUN, message="not run in this group", again=True))


class GroupRun:
    """One group: `paths` in the order of the call, `refs` the outputs of the nodes
    outside. `details` are those of the last heartbeat before this attempt: failures that
    it told of do not run.
    """

    def __init__(
        self,
        checked: StoredPlan,
        paths: tuple[str, ...],
        refs: dict[str, str],
        run_one: RunOne,
        details: Sequence[Any] = (),
    ) -> None:
        self._checked = checked
        self._paths = paths
        self._refs = dict(refs)
        self._run_one = run_one
        self._batches = Batches()
        self._state = RunState(Graph(_sub_skeleton(checked, paths, refs)), window=len(paths))
        self._first = len(refs)
        for unit in range(self._first):
            self._state.set_status(unit, SUCCEEDED)
        self._replies: dict[int, NodeReply] = {}
        self._tasks: dict[asyncio.Task[NodeReply], int] = {}
        self._ended: list[asyncio.Task[NodeReply]] = []
        self._any_ended = asyncio.Event()
        self._began: dict[str, int] = {}
        self._signalled: dict[int, bool] = {}
        # The attempt before this one has told the run of these failures.
        self._failed: list[int] = []
        if len(details) > 2:
            self._failed = [place for place in range(len(paths)) if _bit(details[2], place)]
        for place in self._failed:
            self._state.set_status(self._first + place, CANCELLED)

    def progress(self) -> tuple[str, list[int], list[int]]:
        """Return how many nodes have ended, for people, and a bit a node: set when it has, and when
        the run has been or is about to be told that it has failed; packed in 32-bit numbers.
        """
        ended = [unit - self._first for unit in self._replies]
        text = f"{len(ended)} of {len(self._paths)} done"
        return text, self._bits(ended), self._bits(self._failed)

    def _bits(self, places: Iterable[int]) -> list[int]:
        bits = [0] * (len(self._paths) // 32 + 1)
        for place in places:
            bits[place // 32] |= 1 << (place % 32)
        return bits

    async def tell(self, call: GroupCall, attempt: int, record: Tell, signal: Tell) -> None:
        """Go on to signal what has ended while others go on, with a heartbeat before it that the
        server confirms if there are failures. What cannot be sent is sent a second later, or
        comes with the result.
        """
        digest = call.digest()
        while True:
            await asyncio.sleep(TELL_SECONDS)
            news = self._news()
            if not (news and self._tasks):
                continue
            has_failures = False
            for place, reply in news.items():
                if reply.error is not None and place not in self._failed:
                    self._failed.append(place)
                    has_failures = True
            progress = GroupProgress(
                call=digest, attempt=attempt, places=tuple(news), replies=tuple(news.values())
            )
            with suppress(RPCError):
                if has_failures:
                    await record(*self.progress())
                await signal(progress)
                self._signalled |= dict.fromkeys(news, True)

    def _news(self) -> dict[int, NodeReply]:
        """Return by their places the replies that the run has not been told of, as
        many as fit in one signal.
        """
        size, found = 0, dict[int, NodeReply]()
        for unit, reply in self._replies.items():
            if unit - self._first not in self._signalled:
                size += message_bytes(reply, exclude_defaults=True)
                if size > MAX_PROGRESS_BYTES:
                    break
                found[unit - self._first] = reply
        return found

    async def run(
        self, load: Callable[[str], Awaitable[Any]], wanted: dict[str, list[str]]
    ) -> None:
        """Run what can run. After a cancellation, `replies` still has everything that had ended."""
        PACE.set(Pace())
        for unit, (name, digest) in enumerate(self._refs.copy().items()):
            if wanted.get(name):
                output = await load(digest)
                self._state.units[unit].facts = facts_of(output, wanted[name])
        try:
            self._carry_out(step(self._state, RunStarted()))
            while self._tasks:
                await self._any_ended.wait()
                self._any_ended.clear()
                self._collect()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def replies(self) -> tuple[NodeReply, ...]:
        """Return one reply a node; those that did not come to an end ask to be started again. So do
        those that do not travel with the others, whose markers will be found; the message of a
        failure is cut instead.
        """
        members = range(self._first, self._first + len(self._paths))
        found = [self._reply(unit) for unit in members]
        if len(found) <= MAX_WAVE_MEMBERS:
            return tuple(found)
        size = 0
        for place, reply in enumerate(found):
            size += message_bytes(reply, exclude_unset=True)
            if size > MAX_REPLIES_BYTES:
                found[place] = _LATER
                if reply.error is not None:
                    found[place] = _cut(reply, reply.error)
        return tuple(found)

    def _reply(self, unit: int) -> NodeReply:
        if unit in self._replies:
            return self._replies[unit]
        # A node that is skipped by its own condition is skipped in the run too; behind a
        # failure the run decides.
        state = self._state
        is_skipped = state.units[unit].status == SKIPPED and unit in state.notes
        if is_skipped and not state.units[unit].inherited_failure:
            return NodeReply(skipped=True)
        return _LATER

    def _carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Start):
                for unit in decision.units:
                    self._start(unit)

    def _start(self, unit: int) -> None:
        path = self._paths[unit - self._first]
        reads = reads_at(self._checked, parse_unit(path))
        refs = {name: self._refs[name] for name in reads if name in self._refs}
        seat = self._batches.seat()
        task = asyncio.ensure_future(seat.run(self._in_turn(path, refs)))
        self._tasks[task] = unit
        task.add_done_callback(self._end)

    async def _in_turn(self, path: str, refs: dict[str, str]) -> NodeReply:
        await turn()
        self._began[path] = millis_now()
        return await self._run_one(path, refs)

    def _end(self, task: asyncio.Task[NodeReply]) -> None:
        self._ended.append(task)
        self._any_ended.set()

    def _collect(self) -> None:
        ended: list[tuple[int, asyncio.Task[NodeReply]]] = []
        for task in self._ended:
            ended.append((self._tasks.pop(task), task))
        ended.sort()
        self._ended.clear()
        for unit, task in ended:
            outcome = self._outcome(unit, task)
            self._carry_out(step(self._state, NodeEnded(unit, 1, outcome)))

    def _outcome(self, unit: int, task: asyncio.Task[NodeReply]) -> Outcome:
        reply = reply_of(task)
        self._replies[unit] = reply
        if reply.error is not None:
            path = self._paths[unit - self._first]
            began = self._began.get(path, 0)
            if began:
                self._replies[unit] = reply.model_copy(update={"span": (began, millis_now())})
            return Outcome(error=(reply.error.type, reply.error.message))
        name = self._state.graph.specs[unit].id
        self._refs[name] = reply.ref or ""
        return Outcome(reply.ref, reply.size, reply.facts, skipped=reply.skipped)


def reply_of(task: asyncio.Task[NodeReply]) -> NodeReply:
    """Return how a node has ended whose task is done; one that may succeed later asks to
    be started again, alone.
    """
    if task.cancelled():
        return failed_reply(asyncio.CancelledError("cut off"))
    error = task.exception()
    if error is not None:
        return failed_reply(error)
    return task.result()


def failed_reply(error: BaseException) -> NodeReply:
    """Return how a node has ended that has failed with this error."""
    # Else it would kill the next worker.
    again = retryable(error) and not isinstance(error, WorkerLost)
    wrong = NodeError(type=kind_of(error), message=message_of(error), again=again)
    return NodeReply(error=wrong)


def _cut(reply: NodeReply, error: NodeError) -> NodeReply:
    short = error.model_copy(update={"message": cut(error.message, MAX_CUT_ERROR_CHARACTERS)})
    return reply.model_copy(update={"error": short})


def _bit(bits: Any, place: int) -> bool:
    """Return a bit of a heartbeat, which anybody may have sent."""
    try:
        return bool(bits[place // 32] >> place % 32 & 1)
    except (LookupError, TypeError):
        return False


def _sub_skeleton(
    checked: StoredPlan, paths: tuple[str, ...], refs: dict[str, str]
) -> ExecutionPlan:
    """Return the group as a plan of its own: outside nodes first, without
    edges, then the members.
    """
    names = [path.partition("~")[0] for path in paths]
    place = {name: position for position, name in enumerate((*refs, *names))}
    specs = [NodeSpec(name, "tool") for name in refs]
    for name in names:
        specs.append(_member(checked, name, place, len(refs)))
    return ExecutionPlan(specs, [], "partial")


def _member(checked: StoredPlan, name: str, place: dict[str, int], first: int) -> NodeSpec:
    """Return a member; those are from the place `first` on."""
    needs: list[int] = []
    if "[" in name:
        source = waits_at(checked, parse_unit(name))
        if place.get(source, -1) >= first:
            needs.append(place[source])
        return NodeSpec(name, "tool", needs=needs)
    spec = checked.spec(name)
    for need in spec.needs:
        source = checked.name_at(need)
        if place.get(source, -1) >= first:
            needs.append(place[source])
    if not needs:  # it was ready, and its condition has decided that
        return NodeSpec(name, "tool")
    when = moved(spec.when, lambda node: place[checked.name_at(node)])
    return NodeSpec(name, "tool", needs=needs, when=when)
