"""Adds nodes to a running plan: while a planner streams, when a joiner asks for more work,
when a model calls tools.

An activity checks every addition, and gives it as a page. Additions come one after the other.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_FACT_REFERENCES_BYTES
from sennit.workflows.messages.contracts import (
    CHECK_ANSWER,
    CHECK_PLAN,
    CHECK_REPLAN,
    CHECK_SCRIPT,
    CHECK_TOOL_CALLS,
    Call,
    CheckCall,
    CheckResult,
    DraftCall,
    NodeReply,
    PlanPage,
)
from sennit.workflows.plan.scheduling.events import Event, NodeEnded, Outcome
from sennit.workflows.plan.scheduling.joins import is_manifest
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import RUNNING, SUCCEEDED
from sennit.workflows.run.dispatcher import Dispatcher
from sennit.workflows.run.outcomes import invalid_result, outcome_of, places_of, plan_of
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.unit_calls import outputs_of


class ExtensibleRun(Protocol):
    """The run whose plan grows."""

    state: RunState
    dispatcher: Dispatcher

    def expects(self, event: NodeEnded) -> bool:
        """Whether this unit's end is still open."""

    def append(self, page: PlanPage, ended: NodeEnded, reply: NodeReply) -> None:
        """Take over added nodes with the end of the node that has asked for them.
        Raises ApplicationError.
        """

    def post(self, event: Event) -> None:
        """Take an event."""

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

    def _done(self, task: asyncio.Task[None]) -> None:
        """Fail the run on an unexpected error: otherwise a node would wait for ever."""
        del self._tasks[task]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._engine.fail(error)

    async def check(
        self, draft: str, call: Call[DraftCall, CheckResult] = CHECK_PLAN, unit: int = -1
    ) -> CheckResult:
        """Check a plan that continues this one, or a replan of `unit`, until every fact
        that it asks for is known.

        The verdict names the nodes whose facts it lacks. Of those that have ended, the outputs are
        given the next time; the end of those that run is waited for; what starts later is asked by
        itself. A replan has its turn before and after, but not while it waits.
        """
        state = self._engine.state
        asked: list[int] = []
        # It goes on with what has begun while it was written: little, and its
        # facts are known at once.
        if unit < 0:
            for node, spec in enumerate(state.graph.specs):
                if not spec.page and not is_manifest(state.units[node].digest or ""):
                    asked.append(node)
        while True:
            refs = self._outputs(draft, unit, asked)
            if sum(map(len, refs.values())) > MAX_FACT_REFERENCES_BYTES:
                return CheckResult(
                    problems=(f"it tests the outputs of too many nodes at once: {len(refs):,}",)
                )
            base = self._engine.dispatcher.plan
            checked = await self._setup.check(call, draft=draft, base=base, refs=refs)
            awaited = places_of(state.graph, checked.awaits)
            asked += [node for node in awaited if node not in asked]
            overtaken = await self._ends(awaited, lets_on=unit >= 0)
            if not overtaken and not _gains_facts(state, awaited):
                return checked

    async def edit(self, unit: int, script: str, *, repeat_writes: bool) -> CheckResult:
        """Check another script for a program. Who edits at the same time comes after
        this has been taken over.
        """
        async with self._turn:
            node = self._engine.state.path(unit)
            fields: dict[str, Any] = {"node": node, "script": script}
            if repeat_writes:
                fields["repeat_writes"] = True
            return await self._check_at(CHECK_SCRIPT, unit, "check the script", **fields)

    async def check_answer(self, unit: int, answer: JsonValue) -> CheckResult:
        """Check what a person gives as the result of a call."""
        node = self._engine.state.path(unit)
        summary = f"check the answer for {node}"
        return await self._check_at(CHECK_ANSWER, unit, summary, node=node, answer=answer)

    async def _check_at(
        self,
        call: Call[CheckCall, CheckResult],
        unit: int,
        summary: str = "check the plan",
        **fields: Any,
    ) -> CheckResult:
        """Check something about a unit by the plan that it lies in. What a person waits for
        is not tried for long.
        """
        page = self._engine.state.spec_of(unit).page
        base = page or self._engine.dispatcher.plan
        waits = call is CHECK_TOOL_CALLS
        return await self._setup.check(call, summary, waits=waits, base=base, **fields)

    async def _ends(self, nodes: list[int], *, lets_on: bool) -> bool:
        """Wait until none of the nodes runs; return whether other additions
        may have come meanwhile.
        """
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

    def _outputs(self, draft: str, unit: int, nodes: list[int]) -> dict[str, str]:
        """Return the outputs of these nodes that have ended; for `unit`, the
        output is its request.
        """
        state = self._engine.state
        refs = outputs_of(state, nodes)
        if unit >= 0:
            refs[state.path(unit)] = draft
        return refs

    def _none_run(self, nodes: list[int]) -> bool:
        units = self._engine.state.units
        return all(units[node].status != RUNNING for node in nodes)

    async def _extend(self, event: NodeEnded, reply: NodeReply) -> None:
        """Add the nodes that a model asked for. The model's own node ends with its next turn, or
        with its request for a replan.

        Nothing is added for a node that was cancelled meanwhile.
        """
        engine = self._engine
        is_replan = reply.more == "replan"
        async with self._turn:
            checked = await self._extended(event.unit, reply)
            if not engine.expects(event):
                used = outcome_of(reply).usage  # what it was granted is free again
                given_up = Outcome(error=("Cancelled", "it was given up"), usage=used)
                engine.post(replace(event, outcome=given_up))
                return

            # The model's node ends with the problems, or goes on with what it has asked for.
            if is_replan:
                engine.dispatcher.replans = max(0, engine.dispatcher.replans - 1)
            outcome = outcome_of(reply)
            if checked.problems and is_replan:
                ended: Outcome | None = replace(
                    outcome, digest=None, again=True, objections=checked.problems
                )
            elif checked.problems:
                problem = checked.problems[0][:500]
                ended = Outcome(error=("ToolLoopFailed", problem), usage=outcome.usage)
            else:
                ended = self._grown(event, reply, checked, outcome)
            if ended is not None:
                engine.post(replace(event, outcome=ended))

    def _grown(
        self, event: NodeEnded, reply: NodeReply, checked: CheckResult, outcome: Outcome
    ) -> Outcome | None:
        """Go on with the nodes, and with the end of the one that asked for them. If they do not
        fit, return how that one ends instead.
        """
        state, page = self._engine.state, checked.page
        try:
            if page is None:
                raise invalid_result()
            if reply.more == "replan":
                for spec in plan_of(page.specs).specs:
                    node = state.graph.by_id.get(spec.id, event.unit)
                    if state.graph.specs[node].page:
                        taken = f"`{spec.id}` is a call of a program already; use another id"
                        return replace(outcome, digest=None, again=True, objections=(taken,))
            delegated = replace(outcome, delegated=reply.more == "calls")
            self._engine.append(page, replace(event, outcome=delegated), reply)
        except ApplicationError as error:
            return Outcome(error=(error.type or "", error.message), usage=outcome.usage)
        return None

    async def _extended(self, unit: int, reply: NodeReply) -> CheckResult:
        try:
            if reply.more == "replan":
                return await self.check(reply.ref or "", CHECK_REPLAN, unit)
            node = self._engine.state.full_path(unit)
            return await self._check_at(CHECK_TOOL_CALLS, unit, node=node, draft=reply.ref or "")
        except ApplicationError as error:
            return CheckResult(problems=(f"{error.type}: {error.message}",))


def _gains_facts(state: RunState, awaited: Sequence[int]) -> bool:
    """Whether the verdict on a draft, which lacks the facts of the `awaited` nodes, gets some if it
    is asked for again: a node has succeeded, or has started meanwhile.
    """
    return any(state.units[node].status in (RUNNING, SUCCEEDED) for node in awaited)
