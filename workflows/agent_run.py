"""AgentRun: one run of an agent, as a Temporal workflow."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workflows.messages.contracts import CheckResult, Conclusion, PreparedRun, parse_draft
    from workflows.messages.request import ContinuedState, InvalidRequest, RunRequest, has_plan, has_work, parse_request
    from workflows.messages.result import RunReport, RunStatus, UsageReport
    from workflows.messages.views import RunView
    from workflows.plan.compile.graph import ExecutionPlan, Graph, parse_execution_plan
    from workflows.plan.language.limits import NO_USAGE, Usage
    from workflows.plan.scheduling.events import RunStarted, StopRequested, TimeAdvanced
    from workflows.plan.scheduling.rates import Rate
    from workflows.plan.scheduling.snapshot import dump, load
    from workflows.plan.scheduling.state import RunState
    from workflows.run.engine import Engine
    from workflows.run.queries import HELP, cost_view, node_view, run_view
    from workflows.run.setup import RunSetup, conclude, raise_if_invalid, with_usage
    from workflows.run.subagent import inherited
    from workflows.run.subagent_status import SubagentStatus
    from workflows.run.update_handlers import UpdateHandlers
    from workflows.views.board import board
    from workflows.views.report import report_of

BOARD_EVERY = timedelta(seconds=1)
CARRIED_BYTES = 1_500_000


@workflow.defn(name="AgentRun")
class AgentRun(UpdateHandlers):
    """Plans a goal, or takes a plan, and runs it to an answer.

    Survives the death of any process: every node that ended stays ended, and what was cut off runs again under the
    same key. Input and updates are one JSON object each, of any shape at first: what does not fit is refused with a
    sentence, so that a wrong form can never wedge a run.
    """

    @workflow.init
    def __init__(self, request: Any = None, *more: Any) -> None:
        self._request: RunRequest | None = None
        self._wrong = ""
        try:
            self._request = parse_request(request, *more)
        except InvalidRequest as error:
            self._wrong = str(error)
        info = workflow.info()
        carry = self._request.carry if self._request else None
        self._carry: ContinuedState | None = (
            carry if carry and carry.run_prefix == info.first_execution_run_id else None
        )
        if carry and not self._carry and self._request and not has_work(self._request):
            self._request, self._wrong = None, "this input carries on another run; start with a goal or a plan"
        self._setup = RunSetup(info.first_execution_run_id)
        self._checked = CheckResult()
        self._engine: Engine | None = None
        self._status_before_start: RunStatus = (
            "running"  # the status while there is no engine: what becomes of the opening
        )
        self._planner: asyncio.Task[Engine] | None = None
        self._drafting: int | None = 0  # the attempt whose beginnings are taken: 0 the first to come, None no more
        self._unanswered = ""
        self._subagent_status = SubagentStatus(self._wake, self._carry.last_reported if self._carry else "")
        self._drawn_at = workflow.now() - BOARD_EVERY
        self._subagent_status.resync_after_reset()

    @workflow.run
    async def run(self, request: Any = None, *more: Any) -> RunReport:
        """Run to the end. The result, or the detail of a failure, is the run's report."""
        del request, more  # read in __init__, where updates that come first can see them
        if self._request is None:
            self._status_before_start = "failed"
            raise ApplicationError(self._wrong, type="InvalidRequest", non_retryable=True)
        try:
            engine = await self._open(self._request)
            if not await engine.run():
                self._continue_as_new(self._request, engine)
        except BaseException as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                self._cancelled()  # not when a worker forgets the run, which cancels its tasks too
            elif isinstance(error, ApplicationError):
                self._status_before_start = "failed"
                self._publish()
                raise with_usage(error, self._spent()) from None
            raise
        return await self._end(engine)

    async def _open(self, request: RunRequest) -> Engine:
        """Get the plan and build the engine, as it was when the run continued as new, or afresh.

        A planner that streams goes on writing while the engine runs what it has written.
        """
        if self._carry is not None:
            return self._begin(request, await self._setup.load(self._carry), self._carry)
        prepared = await self._setup.prepare(request)
        if prepared.checked is not None:
            return self._begin(request, raise_if_invalid(prepared.checked))
        if not prepared.streams:
            return self._begin(request, await self._setup.ask(prepared, self._setup.check))
        planner = self._planner = asyncio.create_task(self._plan(request, prepared))
        planner.add_done_callback(self._planned)
        try:
            await workflow.wait_condition(lambda: planner.done() or self._engine is not None)
        except asyncio.CancelledError:
            planner.cancel()
            raise
        return self._engine or await planner

    def _begin(
        self, request: RunRequest, checked: CheckResult, carry: ContinuedState | None = None, *, more: bool = False
    ) -> Engine:
        self._checked = checked
        graph = Graph(ExecutionPlan.unpack(checked.execution_plan))
        if carry is not None:
            state = load(graph, carry.snapshot)
        else:
            state = RunState(graph, window=request.window, park_for=round(request.park_for * 1000))
            state.on_failure = request.on_failure or state.on_failure
            state.approve_above = request.approve_replans_above
            state.streaming = more
            state.rates = {queue: Rate(limit) for queue, limit in self._setup.rates.items()}
        engine = Engine(
            state, self._setup, self._subagent_status, checked.plan, self._changed, epoch=carry.epoch if carry else 1
        )
        engine.allow_replans(carry.replans if carry else request.max_replans if not has_plan(request) else 0)
        engine.set_child_defaults(inherited(request))
        if request.budget is not None and carry is None:
            engine.limit(request.budget)
            engine.charge(self._setup.spent)
        engine.post(TimeAdvanced() if carry else RunStarted())
        self._setup.phase = "running" if not more else "planning"
        self._engine = engine
        return engine

    async def _plan(self, request: RunRequest, prepared: PreparedRun) -> Engine:
        """Have the plan written, and go on with it: as the end of what has begun, or in its place."""
        checked = await self._setup.ask(prepared, self._check)
        engine = self._engine
        if engine is None:
            return self._begin(request, checked)
        if engine.status is not None:  # somebody has finished the run, or its time was up
            return engine
        self._checked = checked
        self._setup.phase = "running"
        engine.charge(self._setup.spent)
        if checked.continues:
            engine.grow(checked)
        else:
            engine.replace_plan(checked)
        return engine

    def _planned(self, planner: asyncio.Task[Engine]) -> None:
        error = None if planner.cancelled() else planner.exception()
        if error is not None and self._engine is not None:
            self._engine.fail(error)

    async def _check(self, draft: str) -> CheckResult:
        self._drafting = None  # the whole plan is checked as the end of what has begun by now
        return await (self._engine.extender.check(draft) if self._engine is not None else self._setup.check(draft))

    @workflow.signal(name="drafted", description="The beginning of a plan, from the planner that writes it")
    def drafted(self, request: Any = None, *more: Any) -> None:
        """Start on the beginning of a plan. Ignores what is no such thing, comes late, or is from another attempt."""
        if self._request is None or self._planner is None or self._planner.done() or self._drafting is None:
            return
        draft = parse_draft(request, *more)
        found = parse_execution_plan(draft.execution_plan) if draft is not None else None
        if draft is None or found is None:
            return
        checked = CheckResult(plan=draft.plan, execution_plan=draft.execution_plan)
        if self._engine is None and self._drafting == 0:
            self._drafting = draft.attempt
            self._begin(self._request, checked, more=True)
        elif self._engine is not None and draft.attempt == self._drafting and self._engine.begins(found):
            self._engine.grow(checked, more=True)

    @workflow.signal(name="subagent", description="What a sub-agent of this run waits for, from that sub-agent")
    def subagent(self, request: Any = None, *more: Any) -> None:
        """Show what a sub-agent waits for. Ignores what is no such thing, comes late, or is from no sub-agent."""
        self._subagent_status.receive(request, *more)

    def _wake(self) -> None:
        if self._engine is not None:
            self._engine.wake()

    def _continue_as_new(self, request: RunRequest, engine: Engine) -> None:
        opening = self._setup
        carry = ContinuedState(
            run_prefix=opening.run_prefix,
            charter=opening.charter,
            plan=engine.plan,
            snapshot=dump(engine.state),
            usage=self._spent(),
            replans=engine.replans,
            epoch=engine.epoch,
            attributes=opening.attributes.names,
            last_reported=self._subagent_status.last_reported or "",
        )
        following = request.model_copy(update={"carry": carry})
        if len(following.model_dump_json()) > CARRIED_BYTES:  # the plan is in the store; only a copied form misses it
            following = following.model_copy(update={"plan": None, "plan_packed": None})
        workflow.continue_as_new(following.model_dump(mode="json", exclude_defaults=True))

    def _cancelled(self) -> None:
        """Cancel what runs; the board keeps what there is."""
        self._status_before_start = "cancelled"
        if self._engine is not None and self._engine.status is None:
            self._engine.post(StopRequested("cancelled"))
            self._draw(self._engine)
        self._publish()

    async def _end(self, engine: Engine) -> RunReport:
        self._setup.phase = "concluding"
        found = Conclusion()
        if engine.status in ("done", "partial"):
            found = await self._conclude(engine)
        self._setup.phase = "ended"
        self._draw(engine)
        self._publish()
        await workflow.wait_condition(workflow.all_handlers_finished)
        info = workflow.info()
        told = report_of(engine.state, engine.shown_status, found, self._unanswered)
        ids = {"id": info.workflow_id, "run_id": info.run_id}
        update = {**ids, "usage": UsageReport.of(self._spent()), "warnings": self._checked.warnings}
        report = told.model_copy(update=update)
        if engine.status == "failed":
            raise ApplicationError(report.problem or "the run failed", report, type="RunFailed", non_retryable=True)
        return report

    async def _conclude(self, engine: Engine) -> Conclusion:
        """Return the answer. One that does not tell all that was asked makes the run partial.

        An answer that cannot be put together costs the answer, not the report.
        """
        try:
            found = await conclude(engine.state, self._setup.run_prefix, engine.plan, engine.inline_answer())
            if found.partial:
                engine.status = "partial"
            return found
        except ApplicationError as error:
            engine.status = "partial"
            self._unanswered = f"{error.type}: {error.message}"
            return Conclusion()

    # what people see

    def _changed(self) -> None:
        """Draw the board at the end of a turn, at most once a second unless hardly anything runs."""
        engine = self._engine
        if engine is not None and engine.status is None:  # the end is published once, with the answer
            self._publish()
        if engine is not None and (engine.moving < 5 or workflow.now() - self._drawn_at >= BOARD_EVERY):
            self._draw(engine)
        if engine is not None and self._request is not None and self._request.depth:
            self._subagent_status.report(engine.state, engine.shown_status)

    def _draw(self, engine: Engine) -> None:
        self._drawn_at = workflow.now()
        goal = self._request.goal if self._request else ""
        title = f"{self._status()}: {goal}" if goal else self._status()
        drawn = board(
            engine.state, run=workflow.info().workflow_id, title=title, blocked_children=engine.blocked_children
        )
        workflow.set_current_details(drawn + self._setup.attributes.open_deps)

    def _spent(self) -> Usage:
        """Return what the run has used: by its planner, and by its nodes."""
        return self._setup.spent.plus(self._engine.usage if self._engine else NO_USAGE)

    def _publish(self) -> None:
        """Let lists know how the run stands."""
        engine = self._engine
        state, started, below = (engine.state, engine.started, engine.blocked_children) if engine else (None, 0, {})
        self._setup.attributes.publish(self._status(), self._setup.phase, state, self._spent(), started, below)

    def _status(self) -> RunStatus:
        return self._engine.shown_status if self._engine is not None else self._status_before_start

    @workflow.query(name="plan", description='The run, a page of nodes at a time: {} or {"from": 500, "limit": 500}')
    def query_plan(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of the run as `RunView`."""
        del more
        view = RunView(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=self._status(),
            phase=self._setup.phase,
            goal=self._request.goal[:2000] if self._request else "",
            usage=UsageReport.of(self._spent()),
            warnings=self._checked.warnings,
        )
        return run_view(view, self._engine, request)

    @workflow.query(name="node", description='One node: {"node": "n7"}')
    def query_node(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return one node as `NodeView`, or `{"problem": ...}`."""
        del more
        return node_view(self._engine, workflow.info().workflow_id, request)

    @workflow.query(name="costs", description="What the run and each of its nodes have used, beside its budget")
    def query_costs(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the ledger, and tokens, calls and dollars by node."""
        del request, more
        return cost_view(self._engine, self._setup.spent)

    @workflow.query(name="help", description="What can be asked of this run and done to it")
    def query_help(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the queries and updates with an example each."""
        del request, more
        return HELP
