"""Adds nodes to a running plan: while a planner streams, when a joiner asks for more work, when a model calls tools.

A joiner's request for many nodes may have to wait for a person. It is checked before the person sees it, and again
after approval. Every addition is a whole new plan that begins with the old one, and an activity checks it like any
plan. Additions come one after the other.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.messages.contracts import CheckResult, NodeReply, PlanPage
from workflows.plan.compile.graph import ExecutionPlan
from workflows.plan.scheduling.events import Event, ExpansionRequest, NodeEnded, Outcome
from workflows.plan.scheduling.extension import needs_approval, request_of
from workflows.plan.scheduling.state import RUNNING, SUCCEEDED, RunState
from workflows.run.outcomes import outcome_of
from workflows.run.setup import Addition, RunSetup


class ExtensibleRun(Protocol):
    """The run whose plan grows."""

    state: RunState
    plan: str

    @property
    def replans(self) -> int:
        """How often the model whose output is the answer may still ask for more nodes."""

    def allow_replans(self, times: int) -> None:
        """Let it ask so many times."""

    def expects(self, event: NodeEnded) -> bool:
        """Whether this unit's end is still open."""

    @property
    def is_paged(self) -> bool:
        """Whether a program has added nodes to the plan."""

    def append(self, page: PlanPage, ended: NodeEnded) -> Callable[[int], int]:
        """Take over added nodes with the end of the node that has asked for them."""

    def grow(self, checked: CheckResult, *, more: bool = False) -> None:
        """Go on with a longer plan."""

    def post(self, event: Event) -> None:
        """Take an event."""

    def wake(self) -> None:
        """Have the run check again what it can do."""

    def fail(self, error: BaseException) -> None:
        """End the run with this error."""


class PlanExtender:
    """The pending additions to one engine's plan."""

    def __init__(self, engine: ExtensibleRun, setup: RunSetup) -> None:
        self._engine = engine
        self._setup = setup
        self._turn = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def busy(self) -> bool:
        """Whether nodes are about to be added."""
        return bool(self._tasks)

    def take(self, event: NodeEnded, reply: NodeReply) -> None:
        """Add the nodes that a model asked for, and only then let its own node end."""
        task = asyncio.create_task(self._extend(event, reply))
        self._tasks[task] = None
        task.add_done_callback(self._done)

    def resume(self, unit: int) -> None:
        """Add the nodes that a person has approved. The call that asked for them is counted already."""
        state = self._engine.state
        reply = NodeReply(ref=state.expansion_requests[unit].digest, size=state.size[unit], more="replan", attempt=0)
        self.take(NodeEnded(unit, state.generation[unit], Outcome()), reply)

    def _done(self, task: asyncio.Task[None]) -> None:
        """Fail the run on an unexpected error: otherwise a node would wait for ever."""
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._engine.fail(error)

    async def check(self, draft: str, adds: Addition = "", unit: int = -1) -> CheckResult:
        """Check a plan that continues this one, or what `unit` adds to it, until every fact that it asks for is known.

        What has ended is read here, and what starts later is asked; what runs was not, so its end is waited for. An
        addition has its turn before and after, but not while it waits.
        """
        engine, state = self._engine, self._engine.state
        while True:
            refs = self._outputs(draft, unit) if adds != "calls" else {}  # calls test nothing
            node = state.address(unit) if adds else ""
            base = (state.graph.specs[unit].page if unit >= 0 else "") or engine.plan
            paged = adds == "calls" and engine.is_paged
            checked = await self._setup.check(draft, base, adds=adds, node=node, refs=refs, paged=paged)
            asked = [state.graph.by_id[name] for name in checked.awaits]
            overtaken = await self._ends(asked, lets_on=unit >= 0)
            if not overtaken and not any(state.status[node] in (RUNNING, SUCCEEDED) for node in asked):
                return checked

    async def edit(self, unit: int, script: str) -> CheckResult:
        """Check another script for a program. Who edits at the same time comes after this has been taken over."""
        async with self._turn:
            spec = self._engine.state.graph.specs[unit]
            return await self._setup.check_script(script, spec.page or self._engine.plan, spec.id)

    async def check_answer(self, unit: int, answer: JsonValue) -> CheckResult:
        """Check what a person gives as the result of a call."""
        state = self._engine.state
        return await self._setup.check_answer(answer, state.spec_of(unit).page or self._engine.plan, state.path(unit))

    async def _ends(self, nodes: list[int], *, lets_on: bool) -> bool:
        """Wait until none of the nodes runs; return whether other additions may have come meanwhile."""
        ended = partial(self._none_run, nodes)
        if not lets_on or ended():
            await workflow.wait_condition(ended)
            return False
        self._turn.release()
        try:
            await workflow.wait_condition(ended)
        finally:
            await self._turn.acquire()
        return True

    def _outputs(self, draft: str, unit: int) -> dict[str, str]:
        """Return the outputs of the nodes that have ended; for `unit`, the output is its request."""
        state = self._engine.state
        ended = [node for node in range(len(state.graph.specs)) if state.status[node] == SUCCEEDED]
        refs = {state.path(node): state.digest[node] or "" for node in ended}
        return {**refs, state.path(unit): draft} if unit >= 0 else refs

    def _none_run(self, nodes: list[int]) -> bool:
        return all(self._engine.state.status[node] != RUNNING for node in nodes)

    async def _extend(self, event: NodeEnded, reply: NodeReply) -> None:
        """Add the nodes that a model asked for. The model's own node ends with its next turn, or with its request for a
        replan.

        Nothing is added for a node that was cancelled meanwhile.
        """
        outcome = outcome_of(reply)
        engine = self._engine
        async with self._turn:
            checked = await self._extended(event.unit, reply)
            if not engine.expects(event):
                return
            if reply.more == "replan" and event.unit not in engine.state.expansion_requests:
                engine.allow_replans(max(0, engine.replans - 1))
            if checked.problems and reply.more == "calls":
                outcome = Outcome(error=("ToolLoopFailed", checked.problems[0][:500]), usage=outcome.usage)
            elif checked.problems:
                outcome = replace(outcome, digest=None, again=True, objections=checked.problems)
            elif request := self._to_approve(event.unit, reply, checked):
                outcome = replace(outcome, expansion_request=request)
            elif checked.page is not None:
                engine.append(checked.page, replace(event, outcome=outcome))
                engine.wake()
                return
            else:
                engine.grow(checked, more=engine.state.streaming)
                outcome = replace(outcome, delegated=reply.more == "calls")
            engine.post(replace(event, outcome=outcome))

    def _to_approve(self, unit: int, reply: NodeReply, checked: CheckResult) -> ExpansionRequest | None:
        """Return the request that a person must approve before its nodes are added, or None."""
        state = self._engine.state
        if reply.more != "replan":
            return None
        added = ExecutionPlan.unpack(checked.execution_plan).specs[len(state.graph.specs) :]
        request = request_of(reply.ref or "", added, checked.why, checked.tokens)
        return request if needs_approval(state, unit, request) else None

    async def _extended(self, unit: int, reply: NodeReply) -> CheckResult:
        if reply.more == "replan" and self._engine.is_paged:
            return CheckResult(problems=("a program has added nodes to this plan, so no others can be added",))
        try:
            adds: Addition = "replan" if reply.more == "replan" else "calls"
            return await self.check(reply.ref or "", adds, unit)
        except ApplicationError as error:
            return CheckResult(problems=(f"{error.type}: {error.message}",))
