"""AgentRun: one run of an agent, as a Temporal workflow."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.limits import MAX_DRAWN_AT_ONCE
    from sennit.workflows.messages.contracts import CheckResult, Conclusion, PlanResult, PreparedRun
    from sennit.workflows.messages.message import message_bytes
    from sennit.workflows.messages.quota import PLACE_SIGNAL
    from sennit.workflows.messages.request import ContinuedState, RunRequest
    from sennit.workflows.messages.result import (
        WAITS_FOR,
        WRITES,
        BlockedOn,
        RunReport,
        RunStatus,
        UsageReport,
        WriteLine,
        cut_warning,
    )
    from sennit.workflows.plan.figures.figures import Figures, figures_of
    from sennit.workflows.plan.language.limits import Usage, format_duration
    from sennit.workflows.plan.limits import MAX_CARRIED_BYTES
    from sennit.workflows.plan.scheduling.events import CostCharged, PlanRejected
    from sennit.workflows.plan.scheduling.snapshot import dump
    from sennit.workflows.plan.scheduling.termination import any_unknown
    from sennit.workflows.run.engine import Engine
    from sennit.workflows.run.noting import note_run
    from sennit.workflows.run.outage import Outage
    from sennit.workflows.run.place import RunPlace
    from sennit.workflows.run.plan_drafts import PlanDrafts
    from sennit.workflows.run.queries import QueryHandlers
    from sennit.workflows.run.search_attributes import blocker
    from sennit.workflows.run.setup import (
        RunSetup,
        parse_input,
        raise_if_invalid,
        run_prefix_of,
        with_usage,
    )
    from sennit.workflows.run.start import start_engine
    from sennit.workflows.run.subagent_status import FIRST_EVENTS, SubagentStatus
    from sennit.workflows.run.task_order import last_in_this_task
    from sennit.workflows.run.timer import milliseconds
    from sennit.workflows.run.update_handlers import UpdateHandlers
    from sennit.workflows.views.board import RunEnd, board, board_without_plan, log_rows
    from sennit.workflows.views.figures import record_of
    from sennit.workflows.views.journal import Journal, Moment
    from sennit.workflows.views.metrics import RunMetrics
    from sennit.workflows.views.report import report_of
    from sennit.workflows.views.shown_run import ShownRun
    from sennit.workflows.views.warnings import run_warnings

BOARD_EVERY = timedelta(seconds=1)
HARDLY_ANY = 5
"""While fewer nodes than this run, the board is drawn at every change."""
RAREST_DRAWING = 10
"""Seconds between two drawings, at most, that the items of a map can cause."""


@workflow.defn(name="AgentRun")
class AgentRun(UpdateHandlers, QueryHandlers):
    """Plans a goal, or takes a plan, and runs it to an answer.

    Survives the death of any process: every node that ended stays ended, and what was cut off runs
    again under the same key. Input and updates are one JSON object each, of any shape at first:
    what does not fit is refused with a sentence, so that a wrong form can never wedge a run.
    """

    @workflow.init
    def __init__(self, request: Any = None, *more: Any) -> None:
        self._request, self._invalid = parse_input(request, *more)
        self._carry = None
        if self._request is not None:
            self._carry = self._request.carry
        self._setup = RunSetup(run_prefix_of(self._request), Outage(self._interrupted))
        has_place = self._carry is not None and self._carry.has_place
        self._place = RunPlace(is_held=has_place, changed=self._changed)
        self._checked = CheckResult()
        self._engine: Engine | None = None
        self._status_without_engine: RunStatus = "running"
        self._planner: asyncio.Task[Engine] | None = None
        self._signals = []
        self._takes_drafts = True  # until the whole plan is being checked
        self._drafts = PlanDrafts()
        self._answer_ref = ""  # of the whole answer, if that was cut
        self._no_answer = ""  # why there is none, though the run has got to its end
        if self._carry is not None:
            self._subagent_status = SubagentStatus(self._wake, self._carry.last_reported)
            self._journal = Journal(_moment, self._carry.events)
            self._metrics = RunMetrics("running")
        else:
            self._subagent_status = SubagentStatus(self._wake)
            self._journal = Journal(_moment, 1)
            self._metrics = RunMetrics(None)
        self._drawn_at = workflow.now() - BOARD_EVERY
        self._subagent_status.resync_after_reset()
        self._was_reset = asyncio.Event()
        workflow.register_random_seed_callback(self._reset)
        # A reset to the first task comes before the callback is registered.
        is_later = workflow.info().get_current_history_length() > FIRST_EVENTS
        self._has_forgotten = is_later or (self._carry is not None and self._carry.was_reset)

    @workflow.run
    async def run(self, request: Any = None, *more: Any) -> RunReport:
        """Run to the end. The result, or the detail of a failure, is the run's report."""
        del request, more  # read in __init__, where updates that come first can see them
        self._reset_notes = asyncio.create_task(self._note_resets())
        if self._request is None:
            self._status_without_engine = "failed"
            self._journal.ended("failed", self._invalid)
            self._publish(self._shown)
            raise ApplicationError(self._invalid, type="InvalidRequest", non_retryable=True)
        try:
            engine = await self._open_in_time(self._request)
            if not await engine.run():
                self._continue_as_new(self._request, engine)
        except BaseException as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                # Not when a worker forgets the run, which cancels its tasks too.
                await self._cancelled()
            elif isinstance(error, ApplicationError):
                self._status_without_engine = "failed"
                self._journal.ended("failed", f"{error.type}: {error.message}")
                self._draw(self._shown)
                self._publish(self._shown)
                await self._place.give_back(self._spent)
                raise with_usage(error, self._spent) from None
            raise
        try:
            report = await self._end(engine)
            if self._request.prepared is not None:
                report = report.without_defaults()
            return report
        except BaseException as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                await self._cancelled()
            raise

    async def _open_in_time(self, request: RunRequest) -> Engine:
        """Open within the time that the run has. Once there is an engine, the engine
        holds the run to its time.
        """
        limit = None
        if request.budget is not None and self._carry is None:
            limit = request.budget.time
        try:
            async with asyncio.timeout(limit) as patience:
                return await self._open(request, patience)
        except TimeoutError:
            assert self._setup.budget is not None
            late = (
                f"the run's time ({format_duration(self._setup.budget.time or 0)}) was up before "
                "it had a plan"
            )
            raise ApplicationError(late, type="BudgetExceeded", non_retryable=True) from None

    async def _open(self, request: RunRequest, patience: asyncio.Timeout) -> Engine:
        """Get the plan and build the engine, or restore both when the run has continued as new.

        A planner that streams goes on writing while the engine runs what it has written.
        """
        if self._carry is not None:
            return self._begin(request, await self._setup.load(request, self._carry))
        began = asyncio.get_running_loop().time()
        prepared = await self._setup.prepare(request)
        if prepared.budget is not None and prepared.budget.time is not None:  # the operator's bound
            patience.reschedule(began + prepared.budget.time)
        if prepared.checked is not None:
            raise_if_invalid(prepared.checked)
        if prepared.has_quota:
            await self._take_place(patience)
        if prepared.checked is not None:
            return self._begin(request, prepared.checked)
        if not prepared.streams:
            return self._begin(request, await self._setup.ask(prepared, self._check))
        planner = self._planner = asyncio.create_task(self._plan(request, prepared))
        planner.add_done_callback(self._planned)
        try:
            await workflow.wait_condition(lambda: planner.done() or self._engine is not None)
        except asyncio.CancelledError:
            planner.cancel()
            raise
        return self._engine or await planner

    async def _take_place(self, patience: asyncio.Timeout) -> None:
        """Wait until the run has its place in the quota of its namespace. The run's own time
        stands still meanwhile.
        """
        clock = asyncio.get_running_loop().time
        deadline, began = patience.when(), clock()
        patience.reschedule(None)
        self._setup.phase = "queued"
        await self._place.take(self._setup.take_place)
        if deadline is not None:
            patience.reschedule(deadline + clock() - began)

    def _begin(self, request: RunRequest, checked: CheckResult, *, more: bool = False) -> Engine:
        """Start the engine on a plan. `more` says that the plan is not the whole yet."""
        self._checked = checked
        parts = self._setup, self._subagent_status, self._changed, self._journal
        self._engine = engine = start_engine(request, checked, *parts, more=more, carry=self._carry)
        self._setup.phase = "running"
        if more or engine.state.held is not None:
            self._setup.phase = "planning"
        if self._has_forgotten:
            engine.forget_early()
            engine.read_ledger()
        return engine

    async def _plan(self, request: RunRequest, prepared: PreparedRun) -> Engine:
        """Have the plan written, and go on with it: as the end of what has
        begun, or in its place.
        """
        checked = await self._setup.ask(prepared, self._check)
        engine = self._engine
        if engine is None:
            return self._begin(request, checked)
        # Somebody has finished the run, or its time was up.
        if engine.state.ended or engine.is_frozen:
            return engine
        self._checked = checked
        self._setup.phase = "running"
        engine.post(CostCharged(self._setup.spent))
        if checked.page is not None:
            engine.append(checked.page)
        else:
            engine.replace_plan(checked)
        return engine

    def _rewrite(self, words: str) -> None:
        """Have the planner write another plan, and ask about that. Nothing of it
        starts while it is written.
        """
        assert self._engine is not None
        self._takes_drafts = False
        self._engine.post(PlanRejected())
        planner = self._planner = asyncio.create_task(self._plan_again(self._engine, words))
        planner.add_done_callback(self._planned)

    async def _plan_again(self, engine: Engine, words: str) -> Engine:
        charged = self._setup.spent
        limits: dict[str, int] = {}
        if engine.state.budget is not None:
            limits = engine.state.budget.limits
        checked = await self._setup.ask_again(words, self._check_anew, limits)
        if engine.state.ended or engine.is_frozen:
            return engine
        self._checked = checked
        engine.post(CostCharged(self._setup.spent.minus(charged)))
        engine.replace_plan(checked)
        return engine

    async def _check_anew(self, planned: PlanResult) -> CheckResult:
        return await self._setup.check(draft=planned.draft)

    def _interrupted(self) -> None:
        """An attempt to plan has failed, or the next one begins: what was sent of the plan
        may not begin that one.
        """
        self._takes_drafts = self._engine is None
        self._drafts = PlanDrafts()
        self._changed()

    def _planned(self, planner: asyncio.Task[Engine]) -> None:
        if planner.cancelled():
            return
        error = planner.exception()
        if error is not None and self._engine is not None:
            self._engine.fail(error)

    async def _check(self, planned: PlanResult) -> CheckResult:
        """Return the verdict on a planner's draft: the planner's own, unless the run has
        begun with a part of it.
        """
        self._takes_drafts = False  # the whole plan is checked as the end of what has begun by now
        if self._engine is not None:
            return await self._engine.extender.check(planned.draft)
        if planned.checked is not None:
            return planned.checked
        return await self._setup.check(draft=planned.draft)

    @workflow.signal(
        name="plan_draft", description="The beginning of a plan, from the planner that writes it"
    )
    def plan_draft(self, request: Any = None, *more: Any) -> None:
        """Start on the beginning of a plan. Ignores what is no such thing, comes late, or
        is from another attempt.
        """
        self._behind_updates(lambda: self._take_draft(request, *more))

    def _take_draft(self, request: Any = None, *more: Any) -> None:
        if (
            self._request is None
            or self._planner is None
            or self._planner.done()
            or not self._takes_drafts
        ):
            return
        page = self._drafts.take(self._setup.run_prefix, request, *more)
        if page is None:
            return
        if self._engine is None:
            self._begin(
                self._request, CheckResult(plan=page.plan, execution_plan=page.specs), more=True
            )
        elif not self._engine.state.ended:
            with suppress(ApplicationError):  # the page goes on from another beginning
                self._engine.append(page, more=True)

    @workflow.signal(
        name="group_progress",
        description="Which calls of a shared activity have ended, from that activity",
    )
    def group_progress(self, request: Any = None, *more: Any) -> None:
        """Go on behind what has ended. Ignores what is no such thing, comes late, or
        is from another attempt.
        """
        self._behind_updates(lambda: self._take_progress(request, *more))

    def _take_progress(self, request: Any = None, *more: Any) -> None:
        if self._engine is not None:
            self._engine.dispatcher.tell(request, *more)

    @workflow.signal(
        name="asked_call", description="A call that a model asks for, while its reply still comes"
    )
    def asked_call(self, request: Any = None, *more: Any) -> None:
        """Make the call early, if that may be. Ignores what is no such thing, comes late, or
        is of no tool that may.
        """
        self._behind_updates(lambda: self._take_asked_call(request, *more))

    def _take_asked_call(self, request: Any = None, *more: Any) -> None:
        if self._engine is not None:
            self._engine.hear_of_call(request, *more)

    @workflow.signal(
        name="subagent_status",
        description="What a sub-agent of this run waits for, from that sub-agent",
    )
    def subagent_status(self, request: Any = None, *more: Any) -> None:
        """Show what a sub-agent waits for. Ignores what is no such thing, comes late,
        or is from no sub-agent.
        """
        self._behind_updates(lambda: self._subagent_status.receive(request, *more))

    @workflow.signal(
        name=PLACE_SIGNAL, description="There is a place for this run in the quota of its namespace"
    )
    def place_free(self, request: Any = None, *more: Any) -> None:
        """Have a run that waits for its place ask for it again. Ignores any input."""
        del request, more
        self._behind_updates(self._place.call)

    @workflow.signal(
        name="upgrade",
        description="Move to the current version of the workers as soon as nothing runs",
    )
    def upgrade(self, request: Any = None, *more: Any) -> None:
        """Wake a run that waits: it learns with its next task that another version is
        current. Ignores any input.
        """
        del request, more
        self._behind_updates(self._wake)

    def _wake(self) -> None:
        if self._engine is not None:
            self._engine.wake()

    def _continue_as_new(self, request: RunRequest, engine: Engine) -> None:
        """Go on as a new run of the chain, with an empty history. Nothing may be in flight."""
        grown_plan = ""
        if engine.has_grown:
            grown_plan = engine.state.graph.execution_plan.pack()
        review = None
        if engine.approves_plan:
            review = self._setup.review
        carry = ContinuedState(
            run_prefix=self._setup.run_prefix,
            run_context=self._setup.run_context,
            plan=engine.dispatcher.plan,
            execution_plan=grown_plan,
            snapshot=dump(engine.state),
            usage=self._spent,
            replans=engine.dispatcher.replans,
            epoch=engine.dispatcher.epoch,
            attributes=self._setup.attributes.names,
            last_reported=self._subagent_status.last_reported or "",
            warnings=tuple(engine.warnings),
            log=engine.log.advances,
            log_cut=engine.log.cut,
            events=self._journal.next,
            was_reset=self._has_forgotten,
            review=review,
            learns=self._setup.learns,
            has_place=self._place.is_held,
            speculation=self._setup.speculation,
            speculated=engine.past_speculation,
        )
        following = request.model_copy(update={"carry": carry})
        if request.prepared is not None:  # a plan that came with the preparation is in the store
            following = following.model_copy(
                update={"prepared": {"run_context": self._setup.run_context}}
            )
        # The plan is in the store; only a copied form misses it.
        if message_bytes(following) > MAX_CARRIED_BYTES:
            following = following.model_copy(update={"plan": None, "plan_packed": None})
        workflow.continue_as_new(
            following.model_dump(mode="json", exclude_defaults=True),
            initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        )

    async def _cancelled(self) -> None:
        """Cancel what runs, and let writes in flight end. The board keeps what there is, and the
        memo what became of the writes: a run that was cancelled has no report.
        """
        self._status_without_engine = "cancelled"
        if self._planner is not None:
            self._planner.cancel()
        engine = self._engine
        if engine is not None:
            if engine.status is None:
                await engine.stop("cancelled")
            await engine.has_read_ledger()
            engine.status = "cancelled"  # also if it had ended, and only its report was to come
        self._draw(self._shown)
        self._journal.ended("cancelled")
        self._publish(self._shown)
        writes: tuple[WriteLine, ...] = ()
        all_made: tuple[WriteLine, ...] = ()
        if engine is not None:
            writes = engine.writes()
            all_made = engine.writes(all_made=True)
        if writes:
            workflow.upsert_memo({WRITES: [line.model_dump(mode="json") for line in writes]})
        await self._place.give_back(self._spent)
        if self._request is not None and self._request.depth:
            await self._subagent_status.tell_end(all_made, self._spent)

    async def _end(self, engine: Engine) -> RunReport:
        """Return the report of a run that is over, once the answer is put together and
        everybody has been told.
        """
        if engine.frozen is not None:
            return await self._end_frozen(engine)
        self._setup.phase = "concluding"
        await engine.has_read_ledger()
        if engine.status == "done" and any_unknown(engine.state):  # a write of before a reset
            engine.status = "partial"

        # The server takes the note while a worker puts the answer together.
        noting: asyncio.Task[None] | None = None
        if self._setup.learns:
            took = engine.early.took if engine.early is not None else {}
            note = note_run(
                self._setup, engine.state, engine.dispatcher.plan, engine.shown_status, took
            )
            noting = asyncio.create_task(note)
        conclusion = Conclusion()
        if engine.status in ("done", "partial"):
            conclusion = await self._conclude(engine)
        self._answer_ref = conclusion.ref or ""
        self._setup.phase = "ended"

        # The board, the lists and the metrics show the end before the report is complete.
        shown = self._shown_of(engine)
        report = report_of(shown, engine.shown_status, conclusion, self._no_answer)
        figures, no_figures = self._figures(engine)
        report = report.model_copy(update={"figures": figures})
        self._draw(shown, report)
        self._publish(shown)
        if figures is not None:
            self._metrics.publish_figures(figures)
        if noting is not None:
            await noting

        # Updates that are still being answered may add usage and warnings.
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._place.give_back(self._spent)
        info = workflow.info()
        warnings = (
            *self._checked.warnings,
            *engine.warnings,
            *run_warnings(engine.state),
            *conclusion.warnings,
        )
        if conclusion.ref:
            warnings += (cut_warning(info.workflow_id),)
        fields = {
            "id": info.workflow_id,
            "run_id": info.run_id,
            "usage": UsageReport.of(self._spent),
            "warnings": warnings + no_figures,
            "log": engine.log.lines(engine.state),
        }
        report = report.model_copy(update=fields)
        self._journal.ended(report.status, report.problem or "")
        if engine.status == "failed":
            raise ApplicationError(
                report.problem or "the run failed", report, type="RunFailed", non_retryable=True
            )
        return report

    def _figures(self, engine: Engine) -> tuple[Figures | None, tuple[str, ...]]:
        """Return the figures of a run that is over, or a warning: its answer never waits for
        what is told beside it.
        """
        try:
            return figures_of(record_of(engine.state, self._setup.spent, engine.speculated)[0]), ()
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is there
            workflow.logger.exception("the figures of a run cannot be worked out")
            return None, (
                f"the figures of this run cannot be worked out: {type(error).__name__}: {error}",
            )

    async def _end_frozen(self, engine: Engine) -> RunReport:
        """Return the report of a run that a person has ended because its scheduler could not go on.
        It has no answer: nobody knows whether its outputs are those that the plan asked for.
        """
        assert engine.frozen is not None
        self._setup.phase = "ended"
        report = RunReport(
            id=workflow.info().workflow_id,
            run_id=workflow.info().run_id,
            status=engine.shown_status,
            problem=engine.frozen.problem,
            usage=UsageReport.of(self._spent),
            writes=engine.writes(all_made=True),
            warnings=(*self._checked.warnings, *engine.warnings),
        )
        self._draw(None)
        self._publish(None)
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._place.give_back(self._spent)
        self._journal.ended(report.status, report.problem or "")
        return report

    async def _conclude(self, engine: Engine) -> Conclusion:
        """Return the answer. One that does not tell all that was asked makes the run partial.

        An answer that cannot be put together costs the answer, not the report.
        """
        try:
            conclusion = await self._setup.conclude(
                engine.state, engine.dispatcher.plan, engine.inline_answer()
            )
            if conclusion.partial:
                engine.status = "partial"
            return conclusion
        except ApplicationError as error:
            engine.status = "partial"
            self._no_answer = f"{error.type}: {error.message}"
            return Conclusion()

    # what people see

    def _reset(self, _: int) -> None:
        """Learn that the run was reset. The SDK calls this where there is neither
        a clock nor a command.
        """
        self._was_reset.set()
        if self._engine is not None:
            self._engine.forget_early()

    async def _note_resets(self) -> None:
        """Tell readers of events of each reset, in the workflow task that learns of it.

        The worker that goes on after a reset may have joined that task with the one before, and the
        next replay may not. So the note comes behind everything that this task has to tell: in both
        cases behind the same events. So does what a sub-agent reports again to the run above it.
        And the task writes a command, which makes its time, the number of the note, its own.
        """
        while True:
            await self._was_reset.wait()
            self._was_reset.clear()
            await last_in_this_task()
            self._subagent_status.report_again()
            await last_in_this_task()
            self._journal.reset()
            workflow.upsert_memo({WAITS_FOR: workflow.memo_value(WAITS_FOR, None)})
            self._has_forgotten = True
            if self._engine is not None:
                self._engine.read_ledger()

    def _changed(self) -> None:
        """Draw the board at the end of a turn, at most once a second
        unless hardly anything runs.
        """
        engine = self._engine
        if engine is not None and self._setup.phase in ("running", "draining"):
            self._setup.phase = "running"
            if engine.state.draining:
                self._setup.phase = "draining"
        shown = self._shown
        if engine is None or engine.status is None:  # the end is published once, with the answer
            self._publish(shown)
        if self._should_draw(engine):
            self._draw(shown)
        self._ask(self._waits_for(shown))
        if engine is None or self._request is None or not self._request.depth:
            return
        if shown is not None:
            self._subagent_status.report(shown, engine.shown_status)
        else:
            self._subagent_status.report_items(
                self._halted_by, is_blocked=engine.shown_status == "blocked"
            )

    def _should_draw(self, engine: Engine | None) -> bool:
        """Whether the board is due. The more nodes there are, the dearer a drawing is, and
        the rarer the drawings.
        """
        if engine is None or engine.frozen is not None or not engine.moving:
            return True

        # Items are drawn in one row, but each of them is counted.
        nodes = len(engine.state.graph.specs)
        items = len(engine.state.owner)
        units = max(nodes, min(nodes + items, RAREST_DRAWING * MAX_DRAWN_AT_ONCE))
        if engine.moving < HARDLY_ANY and units < MAX_DRAWN_AT_ONCE:
            return True
        pause = BOARD_EVERY * max(1, units // MAX_DRAWN_AT_ONCE)
        return workflow.now() - self._drawn_at >= pause

    @property
    def _shown(self) -> ShownRun | None:
        """The run as people see it, if it has begun. A frozen run is shown without its
        state, which may be wrong.
        """
        if self._engine is None or self._engine.frozen is not None:
            return None
        return self._shown_of(self._engine)

    def _shown_of(self, engine: Engine) -> ShownRun:
        return ShownRun(
            engine.state,
            workflow.info().workflow_id,
            engine.blocked_children,
            self._halted_by,
            forgotten=engine.forgotten,
        )

    @property
    def _halted_by(self) -> tuple[BlockedOn, ...]:
        """What holds back the whole run, and none of its nodes: an outage while it
        is planned, or a freeze.
        """
        engine = self._engine
        if engine is None or engine.frozen is None:
            return self._setup.outage.blocked
        if engine.status is not None:
            return ()
        return (engine.frozen.blocked_on(workflow.info().workflow_id),)

    def _ask(self, items: Sequence[BlockedOn]) -> None:
        """Tell readers of events, and lists, what the run waits for."""
        waits = blocker(items)
        if self._journal.ask(items) or waits != workflow.memo_value(WAITS_FOR, None):
            workflow.upsert_memo({WAITS_FOR: waits})

    def _waits_for(self, shown: ShownRun | None) -> Sequence[BlockedOn]:
        """Return what the run waits for now; nothing once it is over."""
        is_over = self._engine is not None and self._engine.status is not None
        if shown is None or not shown.waits or is_over:
            return self._halted_by
        return shown.blocked

    def _draw(self, shown: ShownRun | None, report: RunReport | None = None) -> None:
        self._drawn_at = workflow.now()
        title: str = self._status
        goal = ""
        if self._request is not None:
            goal = self._request.goal or self._request.title
        if goal:
            title += f": {goal}"
        if shown is None:
            note = ""
            if self._place.waits_for:
                note = f"queued: {self._place.waits_for}"
            run = workflow.info().workflow_id
            workflow.set_current_details(board_without_plan(run, title, self._halted_by, note))
            return
        notes: list[str] = []
        if self._engine is not None:
            notes += log_rows(self._engine.log.lines(shown.state))
        notes += self._setup.attributes.notes
        end = RunEnd()
        if report is not None:
            end = RunEnd(report.answer, report.problem or "", report.figures)
        workflow.set_current_details(board(shown, title=title, notes=notes, end=end))

    @property
    def _spent(self) -> Usage:
        """Return what the run has used: by its planner, and by its nodes."""
        spent = self._setup.spent
        if self._engine is not None:
            spent = spent.plus(self._engine.usage)
        return spent

    def _publish(self, shown: ShownRun | None) -> None:
        """Let lists know how the run stands."""
        setup = self._setup
        started = 0
        wake: Callable[[], None] | None = None
        if self._engine is not None:
            started = self._engine.dispatcher.started
            wake = self._engine.wake
        self._metrics.publish(self._status, shown)
        setup.attributes.publish(
            self._status,
            setup.phase,
            shown,
            self._spent,
            started=started,
            outage=self._halted_by,
            wake=wake,
        )

    @property
    def _status(self) -> RunStatus:
        """How the run stands, as people see it."""
        engine = self._engine
        status = self._status_without_engine
        if engine is not None:
            status = engine.shown_status
        is_idle = engine is None or not engine.moving
        if status == "running" and is_idle and self._setup.outage.blocked:
            return "blocked"
        return status


def _moment() -> Moment:
    return Moment(workflow.info().get_current_history_length(), milliseconds())
