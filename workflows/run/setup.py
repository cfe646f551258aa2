"""The activities of the run itself: preparing, planning, checking, loading, concluding."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from sennit.workflows.limits import MAX_REPAIRS
from sennit.workflows.messages.activity_ids import RUN
from sennit.workflows.messages.activity_options import service_options
from sennit.workflows.messages.contracts import (
    CHECK_PLAN,
    CONCLUDE,
    LEDGER,
    LOAD_PLAN,
    PLAN,
    PREPARE,
    Call,
    CheckCall,
    CheckResult,
    ConcludeCall,
    Conclusion,
    LedgerCall,
    LedgerLine,
    LoadCall,
    PlanCall,
    PlanResult,
    PrepareCall,
    PreparedRun,
    conclusion_of,
)
from sennit.workflows.messages.queues import TOOLS
from sennit.workflows.messages.quota import TAKE_PLACE, PlaceCall
from sennit.workflows.messages.request import (
    ContinuedState,
    InvalidRequest,
    PlanReview,
    RunRequest,
    has_work,
    parse_request,
)
from sennit.workflows.messages.result import UsageReport
from sennit.workflows.plan.language.limits import NO_USAGE, Limits, Usage
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.quota import PlaceReply
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.speculation.follower import Speculation
from sennit.workflows.run.outage import Outage
from sennit.workflows.run.outcomes import failed_outcome, invalid_result, result_of, used_by
from sennit.workflows.run.search_attributes import SearchAttributes
from sennit.workflows.run.task_order import behind_the_run
from sennit.workflows.run.unit_calls import PAID, outputs_of

_SCHEDULE = SearchAttributeKey.for_keyword("TemporalScheduledById")
"""What the server itself writes on a run that one of its schedules starts."""
BETTER_PLANS = (
    "What may help: another model as the planner, or SENNIT_PLAN_FORMAT=program for the workers."
)
In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)


@dataclass(slots=True)
class RunSetup:
    """Gets a run its plan, and later additions to it. `phase` and `spent` may be read meanwhile."""

    run_prefix: str
    outage: Outage
    phase: str = "preparing"
    run_context: str = ""
    spent: Usage = NO_USAGE
    attributes: SearchAttributes = field(default_factory=SearchAttributes)
    rates: dict[str, int] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    timings: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    budget: Limits | None = None
    bounds: tuple[str, ...] = ()
    ceilings: Limits | None = None
    review: PlanReview | None = None
    """The past of the plan for its planner, which may be asked for another one."""
    tenant: str = ""
    learns: bool = False
    speculation: Speculation | None = None
    """Which calls it may make early, if it may make any."""
    _checks: bool = False
    """Whether the planner checks its own plan, which saves an activity."""

    async def load(self, request: RunRequest, carry: ContinuedState) -> CheckResult:
        """Return the plan that the previous run of the chain worked on."""
        self.outage.allow(request)
        self.attributes.of_subagent = request.prepared is not None
        self.attributes.names = carry.attributes
        self.run_context = carry.run_context
        self.spent = carry.usage
        self.budget = request.budget
        self.review = carry.review
        self.tenant = request.tenant
        self.learns = carry.learns
        self.speculation = carry.speculation
        if carry.execution_plan:
            return CheckResult(plan=carry.plan, execution_plan=carry.execution_plan)
        call = LoadCall(run=self.run_prefix, plan=carry.plan)
        return await self._do(LOAD_PLAN, call, "load the plan", waits=True)

    async def prepare(self, request: RunRequest) -> PreparedRun:
        """Open the run; the request's own plan comes back checked. Raises ApplicationError."""
        info = workflow.info()
        self.attributes.tenant = request.tenant
        self.tenant = request.tenant
        self.origins = request.origins
        self.budget = request.budget
        self.outage.allow(request)
        for name in request.fields_of_subagents():
            if info.parent is None:
                raise ApplicationError(
                    f"{name}: only a sub-agent has it", type="InvalidRequest", non_retryable=True
                )

        # The run above a sub-agent has prepared it already.
        if request.prepared is not None:
            prepared = _opened_above(request.prepared)
            self.attributes.of_subagent = True
            self._checks = True
        else:
            call = PrepareCall(
                run=self.run_prefix, first_run=info.first_execution_run_id, request=request
            )
            if info.typed_search_attributes.get(_SCHEDULE):
                call = call.model_copy(update={"scheduled": True})
            prepared = await self._do(PREPARE, call, "prepare the run", waits=True)
        if prepared.checked is None and not prepared.planner:
            raise invalid_result()

        self.run_context = prepared.run_context
        self.attributes.names = prepared.attributes
        self.rates = prepared.rates
        self.workers = prepared.workers
        self.timings = prepared.timings
        self.learns = prepared.learns
        if prepared.budget is not None:
            self.budget = prepared.budget
            self.bounds = prepared.bounds
        self.ceilings = prepared.ceilings
        self.speculation = prepared.speculation
        return prepared

    async def ask(
        self, prepared: PreparedRun, check: Callable[[PlanResult], Awaitable[CheckResult]]
    ) -> CheckResult:
        """Return a planner's plan, checked: `check` gives the verdict on what it has written. Its
        problems go back to the planner at most twice, unless it writes no text that it could
        correct, or repeats the same plan with the same problems.

        Raises ApplicationError of type PlannerFailed.
        """
        self.phase = "planning"
        self.attributes.publish("running", self.phase, None, self.spent)
        facts = self._facts()
        fields: dict[str, Any] = {}
        if prepared.streams:
            fields["stream"] = True
        if self.origins:
            fields["origins"] = self.origins
        if self._checks:
            fields["checks"] = True
        call = self._plan_call(facts, **fields)
        review = PlanReview(planner=prepared.planner)
        limits: dict[str, int] = {}
        if self.budget is not None:
            limits = self.budget.amounts()
        return await self._planned(call, facts, review, check, limits)

    async def ask_again(
        self,
        words: str,
        check: Callable[[PlanResult], Awaitable[CheckResult]],
        limits: Mapping[str, int],
    ) -> CheckResult:
        """Return another plan of the planner whose last one a person has rejected with
        these words, as `ask` does. `limits` are those of the budget by now.
        """
        self.phase = "planning"
        assert self.review is not None
        rejections = (*self.review.rejections, words)
        review = self.review.model_copy(update={"rejections": rejections})
        facts = self._facts() | {"rejections": rejections}
        call = self._plan_call(facts, draft=review.draft, text=review.text)
        return await self._planned(call, facts, review, check, limits)

    def _facts(self) -> dict[str, Any]:
        """Return what a planner is told of the run."""
        today = workflow.info().start_time.date()
        facts: dict[str, Any] = {"today": today.isoformat()}
        if self.budget is not None:
            facts["budget"] = self.budget
        if self.tenant:
            facts["tenant"] = self.tenant
        return facts

    def _plan_call(self, facts: dict[str, Any], **fields: Any) -> PlanCall:
        """Return a call of the planner, which is told the `facts` of the run
        beside the other `fields`.
        """
        return PlanCall(run=self.run_prefix, run_context=self.run_context, **facts, **fields)

    async def _planned(
        self,
        call: PlanCall,
        facts: dict[str, Any],
        review: PlanReview,
        check: Callable[[PlanResult], Awaitable[CheckResult]],
        limits: Mapping[str, int],
    ) -> CheckResult:
        """Return the plan that a planner gives to a call, or to those by which it is told
        what is wrong with it. It is told as long as none of the `limits` is reached.
        """
        reached: list[str] = []
        for _ in range(1 + MAX_REPAIRS):
            planned = await self._do(PLAN, call, "plan the goal", queue=review.planner, waits=True)
            self.spent = self.spent.plus(planned.usage)
            if planned.problems:
                checked = CheckResult(problems=planned.problems)
            else:
                checked = await check(planned)
            is_repeated = planned.draft == call.draft and checked.problems == call.problems
            if not checked.problems or not planned.text or is_repeated:
                break
            reached = self._reached(limits)
            if reached:
                break
            call = self._plan_call(
                facts, problems=checked.problems, draft=planned.draft, text=planned.text
            )
        if planned.warnings:
            warnings = dict.fromkeys((*planned.warnings, *checked.warnings))
            checked = checked.model_copy(update={"warnings": tuple(warnings)})
        self.review = review.model_copy(update={"draft": planned.draft, "text": planned.text})
        hint = ""
        if reached:
            hint = f"\nThe budget has no {format_names(reached)} left for a correction."
        if planned.beginning:
            hint += f'\nIt wrote: "{planned.beginning}"\n{BETTER_PLANS}'
        return raise_if_invalid(
            checked, "PlannerFailed", "the planner wrote no plan that can run: ", hint
        )

    def _reached(self, limits: Mapping[str, int]) -> list[str]:
        """Return the names of the limits that the calls of the planner have used up."""
        reached: list[str] = []
        for name, limit in limits.items():
            if name in PAID and getattr(self.spent, name) >= limit:
                reached.append(name)
        return reached

    async def check(
        self,
        call: Call[CheckCall, CheckResult] = CHECK_PLAN,
        summary: str = "check the plan",
        *,
        waits: bool = True,
        **fields: Any,
    ) -> CheckResult:
        """Return the verdict on a draft, on a part of one, or on a person's plan. `fields`
        are those of the call.
        """
        sent = call.takes(run=self.run_prefix, run_context=self.run_context, **fields)
        return await self._do(call, sent, summary, waits=waits)

    async def take_place(self) -> PlaceReply:
        """Ask for the run's place in the quota of its namespace."""
        info = workflow.info()
        call = PlaceCall(
            run=info.workflow_id, first_run=info.first_execution_run_id, budget=self.budget
        )
        return await self._do(TAKE_PLACE, call, "ask for a place in the quota of the namespace")

    async def ledger(self) -> tuple[LedgerLine, ...]:
        """Return what the ledger of effects has of this run."""
        return (
            await self._do(LEDGER, LedgerCall(run=self.run_prefix), "read what was written")
        ).lines

    async def conclude(
        self, state: RunState, plan: str, inline: tuple[Any, str] | None
    ) -> Conclusion:
        """Return the answer: the last node's reply if that is the whole answer,
        else bound from the store.

        `inline` is the (value, digest) of the answering node that this run remembers.
        """
        refs = outputs_of(state, state.graph.execution_plan.answer)
        if not refs:
            return Conclusion()
        if inline is not None and state.graph.execution_plan.direct:
            value, digest = inline
            if digest in refs.values():
                return conclusion_of(value)
        call = ConcludeCall(run=self.run_prefix, plan=plan, refs=refs)
        conclusion = await self._do(CONCLUDE, call, "conclude")
        if "answer" not in conclusion.model_fields_set:
            raise invalid_result()
        return conclusion

    async def _do(
        self,
        call: Call[In, Out],
        sent: In,
        summary: str,
        *,
        queue: str = TOOLS,
        waits: bool = False,
    ) -> Out:
        """Run one activity of the run itself. Its failure fails the run, with the same type and
        message; one that `waits` is tried again after an outage.
        """
        while True:
            is_patient = waits and self.outage.is_waited_for
            try:
                return await self._try(call, sent, summary, queue=queue, waits=is_patient)
            except ApplicationError as error:
                self.spent = self.spent.plus(used_by(error))
                if not waits:
                    raise
                await self.outage.wait(error)

    async def _try(
        self, call: Call[In, Out], sent: In, summary: str, *, queue: str, waits: bool
    ) -> Out:
        times = self.calls.get(call.name, 0) + 1
        self.calls[call.name] = times
        name = f"{RUN}{call.name}"
        if times > 1:
            name += f"~{times}"
        options = service_options(summary, queue=queue, waits=waits)
        try:
            result = await workflow.execute_activity(
                call.name, sent, result_type=call.gives, activity_id=name, **options
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            await behind_the_run()
            kind, message = failed_outcome(error).error or ("Failed", "")
            details: tuple[Any, ...] = ()
            used = used_by(error)
            if any(used):
                details = (1, list(used))
            raise ApplicationError(message, *details, type=kind, non_retryable=True) from None
        await behind_the_run()
        return result_of(call, result)


def _opened_above(fields: dict[str, Any]) -> PreparedRun:
    """Return what the run above a sub-agent has prepared. Raises ApplicationError
    of type InvalidRequest.
    """
    try:
        return PreparedRun.model_validate(fields)
    except ValidationError:
        wrong = "prepared: the run above it has prepared something else than a run"
        raise ApplicationError(wrong, type="InvalidRequest", non_retryable=True) from None


def parse_input(request: Any, *more: Any) -> tuple[RunRequest | None, str]:
    """Return the request in a run's input, or why it is not one. The state of another
    chain of runs is dropped.

    What another version of the workers has handed over must not be lost because this one
    cannot read it: the error that is raised then fails the task, which is tried again until a
    version that can is current.
    """
    try:
        parsed = parse_request(request, *more)
    except InvalidRequest as error:
        if workflow.info().continued_run_id:
            raise RuntimeError(
                f"another version of the workers has written what this one cannot read: {error}"
            ) from None
        return None, str(error)
    if parsed.carry is None or parsed.carry.run_prefix == run_prefix_of(parsed):
        return parsed, ""
    if not has_work(parsed):
        return None, "this input carries on another run; start with a goal or a plan"
    return parsed.model_copy(update={"carry": None}), ""


def run_prefix_of(request: RunRequest | None) -> str:
    """Return the name of a run's artifacts: its first run id or, for a sub-agent, what
    the run above it says.
    """
    info = workflow.info()
    if request is not None and request.run_prefix and info.parent is not None:
        return request.run_prefix
    return info.first_execution_run_id


def raise_if_invalid(
    checked: CheckResult, otherwise: str = "InvalidPlan", prefix: str = "", suffix: str = ""
) -> CheckResult:
    """Return a plan without problems. Raises ApplicationError of type `otherwise`, with its
    problems between `prefix` and `suffix`.
    """
    if checked.problems:
        problems = list(checked.problems)
        message = prefix + "\n".join(problems) + suffix
        raise ApplicationError(message, problems, type=otherwise, non_retryable=True)
    return checked


def with_usage(error: ApplicationError, spent: Usage) -> ApplicationError:
    """Return a run's failure with the run's usage, which is charged to a parent run."""
    details = list(error.details)
    if any(spent):
        details.append({"usage": UsageReport.of(spent).model_dump()})
    return ApplicationError(
        error.message, *details, type=error.type, non_retryable=error.non_retryable
    )
