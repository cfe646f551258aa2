"""Runs several nodes in one activity, with the edges among them, by the same `step` as the workflow.

Each finished node leaves its marker, so that the successor of a killed worker runs only the rest. Each of them has a
process of its own then, and the one that killed the worker fails alone. The activity never raises for a node: every
node has its outcome, and one that may succeed later asks to be started again, alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sennit.activities.nodes.binding import parse_address, waits_at
from sennit.activities.nodes.error_mapping import kind_of, message_of, retryable
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.batch import Batches
from sennit.activities.toolbox.errors import WorkerLost
from sennit.workflows.messages.contracts import NOT_RUN, NodeError, NodeReply
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.facts import facts_of
from sennit.workflows.plan.scheduling.events import Decision, NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.state import SKIPPED, SUCCEEDED, RunState
from sennit.workflows.plan.scheduling.step import step

RunOne = Callable[[str, dict[str, str]], Coroutine[Any, Any, NodeReply]]
_LATER = NodeReply(error=NodeError(type=NOT_RUN, message="not run in this group", again=True))


class GroupRun:
    """One group: `paths` in the order of the call, `refs` the outputs of the nodes outside."""

    def __init__(self, checked: StoredPlan, paths: tuple[str, ...], refs: dict[str, str], run_one: RunOne) -> None:
        self._paths = paths
        self._refs = dict(refs)
        self._run_one = run_one
        self._batches = Batches()
        self._state = RunState(Graph(_sub_skeleton(checked, paths, refs)), window=len(paths))
        self._first = len(refs)
        self._state.status |= dict.fromkeys(range(self._first), SUCCEEDED)
        self._replies: dict[int, NodeReply] = {}
        self._tasks: dict[asyncio.Task[NodeReply], int] = {}

    def progress(self) -> tuple[str, list[int]]:
        """Return how many nodes have ended, for people, and a bit a node, set when it has; packed in 32-bit numbers."""
        bits = [0] * (len(self._paths) // 32 + 1)
        for unit in self._replies:
            position = unit - self._first
            bits[position // 32] |= 1 << (position % 32)
        return f"{len(self._replies)} of {len(self._paths)} done", bits

    async def run(self, load: Callable[[str], Awaitable[Any]], wanted: dict[str, list[str]]) -> None:
        """Run what can run. After a cancellation, `replies` still has everything that had ended."""
        for unit, (name, digest) in enumerate(self._refs.copy().items()):
            if wanted.get(name):
                self._state.facts[unit] = facts_of(await load(digest), wanted[name])
        try:
            self._carry_out(step(self._state, RunStarted()))
            while self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                self._collect()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def replies(self) -> tuple[NodeReply, ...]:
        """Return one reply a node; those that did not come to an end ask to be started again."""
        return tuple(self._reply(self._first + position) for position in range(len(self._paths)))

    def _reply(self, unit: int) -> NodeReply:
        if unit in self._replies:
            return self._replies[unit]
        if (
            self._state.status[unit] == SKIPPED
            and unit not in self._state.inherited_failure
            and unit in self._state.notes
        ):
            return NodeReply(skipped=True)
        return _LATER

    def _carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Start):
                for unit in decision.units:
                    self._start(unit)

    def _start(self, unit: int) -> None:
        path = self._paths[unit - self._first]
        task = asyncio.ensure_future(self._batches.seat().run(self._run_one(path, dict(self._refs))))
        self._tasks[task] = unit

    def _collect(self) -> None:
        ended = sorted((unit, task) for task, unit in self._tasks.items() if task.done())
        for unit, task in ended:
            del self._tasks[task]
            outcome = self._outcome(unit, task)
            self._carry_out(step(self._state, NodeEnded(unit, 1, outcome)))

    def _outcome(self, unit: int, task: asyncio.Task[NodeReply]) -> Outcome:
        reply = self._replies[unit] = reply_of(task)
        if reply.error is not None:
            return Outcome(error=(reply.error.type, reply.error.message))
        self._refs[self._state.graph.specs[unit].id] = reply.ref or ""
        return Outcome(reply.ref, reply.size, reply.facts, skipped=reply.skipped)


def reply_of(task: asyncio.Task[NodeReply]) -> NodeReply:
    """Return how a node has ended whose task is done; one that may succeed later asks to be started again, alone."""
    error = asyncio.CancelledError("cut off") if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    again = retryable(error) and not isinstance(error, WorkerLost)  # else it would kill the next worker
    return NodeReply(error=NodeError(type=kind_of(error), message=message_of(error), again=again))


def _sub_skeleton(checked: StoredPlan, paths: tuple[str, ...], refs: dict[str, str]) -> ExecutionPlan:
    """Return the group as a plan of its own: outside nodes first, without edges, then the members."""
    names = [path.partition("~")[0] for path in paths]
    place = {name: position for position, name in enumerate((*refs, *names))}
    members = [_member(checked, name, names, place) for name in names]
    return ExecutionPlan([*(NodeSpec(name, "tool") for name in refs), *members], [], "partial")


def _member(checked: StoredPlan, name: str, names: list[str], place: dict[str, int]) -> NodeSpec:
    spec = checked.spec(name.partition("[")[0])
    if "[" in name:
        before = waits_at(checked, parse_address(name))
        return NodeSpec(name, "tool", needs=[place[before]] if before in names else [])
    needs = [place[need] for need in map(checked.name_at, spec.needs) if need in names]
    when = _moved(spec.when, checked, place) if spec.when and needs else None  # else it was ready, and that decided
    return NodeSpec(name, "tool", needs=needs, when=when)


def _moved(condition: Any, checked: StoredPlan, place: dict[str, int]) -> Any:
    """Return a condition with its places of facts pointing into the group's own plan."""
    if isinstance(condition, list):
        return [_moved(part, checked, place) for part in condition]
    if not isinstance(condition, dict):
        return condition
    if "at" in condition:
        node, name = condition["at"]
        return {**condition, "at": [place[checked.name_at(node)], name]}
    return {key: _moved(part, checked, place) for key, part in condition.items()}
