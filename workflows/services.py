"""The activities of the run itself: preparing, planning, checking, loading, concluding."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from workflows.contracts import (
    CHECK_PLAN,
    CONCLUDE,
    LOAD_PLAN,
    PLAN,
    PREPARE,
    Call,
    CheckCall,
    Checked,
    ConcludeCall,
    Conclusion,
    LoadCall,
    PlanCall,
    PrepareCall,
)
from workflows.evidence import split_evidence
from workflows.failures import failed_outcome
from workflows.plan.state import SUCCEEDED, RunState
from workflows.policies import as_keywords, service_options
from workflows.queues import TOOLS
from workflows.request import Carry, RunRequest

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)


@dataclass(slots=True)
class Opening:
    """How a run gets its plan. `phase` and `spent` may be read while it goes on."""

    home: str
    phase: str = "preparing"
    charter: str = ""
    spent: tuple[int, int, int, int] = (0, 0, 0, 0)

    async def load(self, carry: Carry) -> Checked:
        """Return the plan that the last run of the chain worked on."""
        self.charter, self.spent = carry.charter, carry.usage
        return await do(LOAD_PLAN, LoadCall(run=self.home, plan=carry.plan), "load the plan")

    async def plan(self, request: RunRequest) -> Checked:
        """Return the request's plan, or a planner's, checked. Raises ApplicationError of type InvalidPlan."""
        call = PrepareCall(run=self.home, **_given(request))
        prepared = await do(PREPARE, call, "prepare the run")
        self.charter = prepared.charter
        checked = prepared.checked or await self._ask(prepared.planner)
        if checked.problems:
            problems = list(checked.problems)
            raise ApplicationError("\n".join(problems), problems, type="InvalidPlan", non_retryable=True)
        return checked

    async def _ask(self, planner: str) -> Checked:
        self.phase = "planning"
        asked = PlanCall(run=self.home, charter=self.charter)
        planned = await do(PLAN, asked, "plan the goal", queue=planner, beats=True)
        self.spent = (*planned.usage, 1)
        draft = CheckCall(run=self.home, charter=self.charter, draft=planned.draft)
        return await do(CHECK_PLAN, draft, "check the plan")


async def conclude(state: RunState, home: str, plan: str, inline: tuple[Any, str] | None) -> Conclusion:
    """Return the answer: from the last node's own reply when that is all of it, else bound from the store.

    `inline` is (value, digest) of the answering node as this run remembers it.
    """
    nodes = state.graph.skeleton.answer
    refs = {state.path(node): state.digest[node] or "" for node in nodes if state.status[node] == SUCCEEDED}
    if not refs:
        return Conclusion()
    if inline is not None and state.graph.skeleton.direct and inline[1] in refs.values():
        answer, evidence = split_evidence(inline[0])
        return Conclusion(answer=answer, evidence=evidence)
    return await do(CONCLUDE, ConcludeCall(run=home, plan=plan, refs=refs), "conclude")


async def do(call: Call[In, Out], given: In, summary: str, *, queue: str = TOOLS, beats: bool = False) -> Out:
    """Run one of the run's own activities; its failure is the run's, with the same type and sentence."""
    options = service_options(summary, queue=queue, beats=beats)
    try:
        found: Out = await workflow.execute_activity(
            call.name, given, result_type=call.gives, activity_id=f"run:{call.name}", **as_keywords(options)
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        kind, message = failed_outcome(error).error or ("Failed", "")
        raise ApplicationError(message, type=kind, non_retryable=True) from None
    return found


def _given(request: RunRequest) -> dict[str, Any]:
    """Return what `prepare` needs of a request; unset fields are not sent."""
    names = ("goal", "plan", "plan_packed", "inputs", "docs", "tools", "approval")
    return {name: getattr(request, name) for name in names if name in request.model_fields_set}
