"""AgentRun: one run of an agent, as a Temporal workflow."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workflows.board import board
    from workflows.contracts import Checked, Conclusion
    from workflows.engine import Engine
    from workflows.inbox import Inbox
    from workflows.plan.decisions import Begun, Stopped, Ticked
    from workflows.plan.graph import Graph, Skeleton
    from workflows.plan.snapshot import dump, load
    from workflows.plan.state import RunState
    from workflows.queries import HELP, node_view, run_view
    from workflows.reporting import report_of, usage_of
    from workflows.request import Carry, InvalidRequest, RunRequest, has_work, parse_request
    from workflows.result import RunReport, RunStatus
    from workflows.services import Opening, conclude
    from workflows.view import RunView

BOARD_EVERY = timedelta(seconds=1)
CARRIED_BYTES = 1_500_000


@workflow.defn(name="AgentRun")
class AgentRun(Inbox):
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
        self._carry: Carry | None = carry if carry and carry.home == info.first_execution_run_id else None
        if carry and not self._carry and self._request and not has_work(self._request):
            self._request, self._wrong = None, "this input carries on another run; start with a goal or a plan"
        self._opening = Opening(info.first_execution_run_id)
        self._checked = Checked()
        self._engine: Engine | None = None
        self._stillborn: RunStatus = "running"  # the status while there is no engine: what becomes of the opening
        self._unanswered = ""
        self._drawn_at = workflow.now() - BOARD_EVERY

    @workflow.run
    async def run(self, request: Any = None, *more: Any) -> RunReport:
        """Run to the end. The result, or the detail of a failure, is the run's report."""
        del request, more  # read in __init__, where updates that come first can see them
        if self._request is None:
            self._stillborn = "failed"
            raise ApplicationError(self._wrong, type="InvalidRequest", non_retryable=True)
        try:
            engine = await self._open(self._request)
            if not await engine.run():
                self._continue_as_new(self._request, engine)
        except BaseException as error:
            if is_cancelled_exception(error):
                self._cancelled()
            elif isinstance(error, ApplicationError):
                self._stillborn = "failed"
            raise
        return await self._end(engine)

    async def _open(self, request: RunRequest) -> Engine:
        """Get the plan and build the engine, as it was when the run continued as new, or afresh."""
        carry, opening = self._carry, self._opening
        self._checked = await (opening.load(carry) if carry else opening.plan(request))
        graph = Graph(Skeleton.unpack(self._checked.skeleton))
        if carry is not None:
            state = load(graph, carry.snapshot)
        else:
            state = RunState(graph, window=request.window, park_for=round(request.park_for * 1000))
            state.on_failure = request.on_failure or state.on_failure
        engine = Engine(state, opening.home, self._checked.plan, self._changed)
        engine.usage = list(opening.spent)
        engine.post(Ticked() if carry else Begun())
        opening.phase = "running"
        self._engine = engine
        return engine

    def _continue_as_new(self, request: RunRequest, engine: Engine) -> None:
        spent, opening = engine.usage, self._opening
        carry = Carry(
            home=opening.home,
            charter=opening.charter,
            plan=engine.plan,
            snapshot=dump(engine.state),
            usage=(spent[0], spent[1], spent[2], spent[3]),
            runs=(self._carry.runs if self._carry else 1) + 1,
        )
        following = request.model_copy(update={"carry": carry})
        if len(following.model_dump_json()) > CARRIED_BYTES:  # the plan is in the store; only a copied form misses it
            following = following.model_copy(update={"plan": None, "plan_packed": None})
        workflow.continue_as_new(following.model_dump(mode="json", exclude_defaults=True))

    def _cancelled(self) -> None:
        """Cancel what runs; the board keeps what there is."""
        self._stillborn = "cancelled"
        if self._engine is not None and self._engine.status is None:
            self._engine.post(Stopped("cancelled"))
            self._draw(self._engine)

    async def _end(self, engine: Engine) -> RunReport:
        self._opening.phase = "concluding"
        found = Conclusion()
        if engine.status in ("done", "partial"):
            found = await self._conclude(engine)
        self._opening.phase = "ended"
        self._draw(engine)
        await workflow.wait_condition(workflow.all_handlers_finished)
        info = workflow.info()
        report = report_of(engine.state, engine.shown_status, found, self._unanswered).model_copy(
            update={
                "id": info.workflow_id,
                "run_id": info.run_id,
                "usage": usage_of(engine.usage),
                "warnings": self._checked.warnings,
            }
        )
        if engine.status == "failed":
            raise ApplicationError(report.problem or "the run failed", report, type="RunFailed", non_retryable=True)
        return report

    async def _conclude(self, engine: Engine) -> Conclusion:
        """Return the answer. An answer that cannot be put together costs the answer, not the report."""
        try:
            return await conclude(engine.state, self._opening.home, engine.plan, engine.inline_answer())
        except ApplicationError as error:
            engine.status = "partial"
            self._unanswered = f"{error.type}: {error.message}"
            return Conclusion()

    # what people see

    def _changed(self) -> None:
        """Draw the board at the end of a turn, at most once a second unless hardly anything runs."""
        engine = self._engine
        if engine is not None and (engine.state.running < 5 or workflow.now() - self._drawn_at >= BOARD_EVERY):
            self._draw(engine)

    def _draw(self, engine: Engine) -> None:
        self._drawn_at = workflow.now()
        goal = self._request.goal if self._request else ""
        title = f"{self._status()}: {goal}" if goal else self._status()
        workflow.set_current_details(board(engine.state, run=workflow.info().workflow_id, title=title))

    def _status(self) -> RunStatus:
        return self._engine.shown_status if self._engine is not None else self._stillborn

    @workflow.query(name="plan", description='The run, a page of nodes at a time: {} or {"from": 500, "limit": 500}')
    def query_plan(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return a page of the run as `RunView`."""
        del more
        view = RunView(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=self._status(),
            phase=self._opening.phase,
            goal=self._request.goal[:2000] if self._request else "",
            usage=usage_of(self._engine.usage if self._engine else self._opening.spent),
            warnings=self._checked.warnings,
        )
        return run_view(view, self._engine, request)

    @workflow.query(name="node", description='One node: {"node": "n7"}')
    def query_node(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return one node as `NodeView`, or `{"problem": ...}`."""
        del more
        return node_view(self._engine, request)

    @workflow.query(name="help", description="What can be asked of this run and done to it")
    def query_help(self, request: Any = None, *more: Any) -> dict[str, Any]:
        """Return the queries and updates with an example each."""
        del request, more
        return HELP
