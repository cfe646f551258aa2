"""The updates that people send to a run: each is refused with a sentence or carried out."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_EDIT_WARNINGS, MAX_REJECTED_PLANS
from sennit.workflows.messages.contracts import CheckResult
from sennit.workflows.messages.updates import (
    UPDATES,
    Approve,
    EditPlan,
    EditProgram,
    Finish,
    InvalidUpdate,
    Reject,
    RetryNode,
    RunIsOver,
    Update,
    parse_update,
)
from sennit.workflows.plan.scheduling.events import (
    TOKEN_CHARACTERS,
    Answered,
    Event,
    PlanRejected,
    ProgramEdited,
    RunStarted,
)
from sennit.workflows.run.engine import Engine
from sennit.workflows.run.outcomes import plan_of
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.update_rules import Verdict, is_about_plan
from sennit.workflows.views.journal import Journal

_UNPAID = (
    "the budget is spent, and another plan of the planner costs more: raise the budget first, edit "
    "the plan, or reject it without a reason, which ends the run"
)


class UpdateHandlers:
    """The updates of a run. Each takes one JSON object of any shape, so that a wrong
    form cannot block the run.
    """

    _engine: Engine | None
    _setup: RunSetup
    _checked: CheckResult
    _journal: Journal
    _edits_plan = False
    """Whether a worker checks a plan that is to take the place of the one that waits."""
    _updates_due = 0
    """How many updates wait for the task in which they are applied."""
    _signals: list[Callable[[], None]]
    """What signals have brought meanwhile."""

    @abstractmethod
    def _rewrite(self, words: str) -> None: ...

    def _behind_updates(self, take: Callable[[], None]) -> None:
        """Take a signal: now, or as late as the updates that have come before it.

        After a reset the server gives an update again, and then the signals that came later. The
        worker may have joined their task with the one before, and the SDK has signals heard before
        anything that ended there.
        """
        self._signals.append(take)
        self._take_signals()

    def _take_signals(self) -> None:
        if self._updates_due:
            return
        signals, self._signals = self._signals, []
        for take in signals:
            take()

    @workflow.update(dynamic=True)
    def other(self, name: str, args: Sequence[RawValue]) -> str:
        """Never runs: its validator refuses every other name."""
        del args
        return name

    @other.validator
    def _no_other(self, name: str, args: Sequence[RawValue]) -> None:
        del args
        known = ", ".join(update.name for update in UPDATES)
        raise InvalidUpdate(f"`{name}` is no update of this run; there are {known}")

    def _admit(self, update: Update) -> None:
        """Refuse an update that can never be accepted. One that only comes too early is admitted
        while something may have ended that this task has not processed yet, the start of the run
        included: `_apply` checks again after that.
        """
        rejection = ""
        if self._engine is not None:
            rejection = self._engine.final_rejection(update)
        if isinstance(update, Approve) and _is_cut(update.digest):
            subject = "the plan"
            if update.node:
                subject = f"what `{update.node}` would write"
            rejection = f"a digest has {TOKEN_CHARACTERS} digits; read again {subject}"
        if rejection and self._engine is not None and self._engine.state.ended:
            raise RunIsOver(rejection)
        if rejection:
            raise InvalidUpdate(rejection)

    async def _apply(self, update: Update) -> str:
        """Apply an admitted update one task later, after everything that ended before it came.

        A replay may merge the task that admitted it with the one before. Applied at once, the
        update would then run before the ends of nodes that the earlier task processed.
        """
        self._updates_due += 1
        await workflow.sleep(
            timedelta(milliseconds=1), summary=f"{update.name} after what ended before it"
        )
        self._updates_due -= 1
        self._take_signals()
        confirmation = self._decide_on_outage(update)
        if confirmation:
            return confirmation

        # The update may be about a plan, or a script, that a worker checks first.
        await self._wait_for_plan(update)
        engine = self._engine
        if engine is None:
            early = f"the run is still {self._setup.phase}; try again in a moment"
            raise ApplicationError(early, type="InvalidUpdate", non_retryable=True)
        engine.updates += 1
        verdict = engine.judge(update)
        if isinstance(update, EditPlan) and not verdict.rejection:
            return await self._edit_plan(engine, update)
        checked = await self._checked_by_worker(engine, update, verdict.event)
        if checked is not None:
            verdict = engine.judge(update)  # much may have happened meanwhile
            if (
                isinstance(verdict.event, ProgramEdited)
                and isinstance(update, EditProgram)
                and not checked.problems
            ):
                [spec] = plan_of(checked.execution_plan).specs
                verdict.event.page = checked.plan
                verdict.event.script = update.script
                verdict.event.quote = spec.quote
            if checked.problems:
                verdict = Verdict(rejection="\n".join(checked.problems))
        if verdict.event is None:
            engine.wake()  # the run may have waited for this update to continue as new
            raise ApplicationError(verdict.rejection, type="InvalidUpdate", non_retryable=True)
        if isinstance(update, Reject) and self._rejects_plan(engine, update.reason, verdict.event):
            return self._reject_plan(engine, update)

        # The scheduler takes the event, and the person hears what it does.
        self._journal.answered(update)
        engine.post(verdict.event)
        if isinstance(verdict.event, RunStarted):
            self._setup.phase = "running"
        warnings: tuple[str, ...] = ()
        if checked is not None:
            warnings = checked.warnings[:MAX_EDIT_WARNINGS]
        planned = [spec for spec in engine.state.graph.specs if spec.maker < 0]
        if isinstance(update, EditProgram) and len(planned) == 1:
            # The warnings about the script before are about none that runs.
            self._checked = self._checked.model_copy(update={"warnings": warnings})
        lines = [verdict.confirmation]
        lines += [f"warning: {warning}" for warning in warnings]
        return "\n".join(lines)

    def _decide_on_outage(self, update: Update) -> str:
        """Have a run whose planner is out of reach try again, or end; return the confirmation.
        Return "" for any other update, and for a run without an outage.
        """
        outage = self._setup.outage
        if not outage.blocked:
            return ""
        if isinstance(update, RetryNode) and not update.node:
            self._journal.answered(update)
            outage.decide("retry")
            return "the run tries again to plan"
        if isinstance(update, Finish) and self._engine is None:
            self._journal.answered(update)
            outage.decide("finish")
            return "the run ends without a plan"
        return ""

    async def _wait_for_plan(self, update: Update) -> None:
        """Wait until the run has the plan that an update may be about.

        After a reset the server gives updates again that the run has confirmed, also to a run
        without a plan yet. Nobody would hear that an edit was refused then, and the run would go on
        with the old script. A word on a plan may come again before the planner has written that
        one, or before a worker has checked what takes its place.
        """
        if isinstance(update, EditProgram):
            await workflow.wait_condition(lambda: self._engine is not None)
        # An update that has waited before this one may have rejected the plan, or
        # be about to replace it.
        while is_about_plan(update) and not self._has_plan:
            await workflow.wait_condition(lambda: self._has_plan)

    @property
    def _has_plan(self) -> bool:
        """Whether there is a whole plan that people may be asked about, or
        none will come any more.
        """
        engine = self._engine
        if engine is None:
            return False
        if engine.state.ended or engine.is_frozen:
            return True
        return not (engine.state.streaming or self._edits_plan)

    async def _edit_plan(self, engine: Engine, update: EditPlan) -> str:
        """Put a plan that a person has sent in the place of the one that waits, once a
        worker has checked it.
        """
        self._edits_plan = True
        try:
            checked = await self._setup.check(
                summary="check the edited plan", waits=False, plan=update.plan
            )
        finally:
            self._edits_plan = False
        # Much may have happened meanwhile.
        rejection = engine.judge(update).rejection or "\n".join(checked.problems)
        if rejection:
            engine.wake()
            raise ApplicationError(rejection, type="InvalidUpdate", non_retryable=True)
        self._journal.answered(update)
        self._checked = checked
        engine.replace_plan(checked)
        held = engine.state.held
        again = "its program asks by itself"
        if held is not None:
            again = f"approve it with the digest {held.token()}"
        return f"the plan is replaced, and nothing of it has started: {again}"

    def _rejects_plan(self, engine: Engine, words: str, event: Event) -> bool:
        """Whether a rejection is about the whole plan: that which waits or, with words for its
        planner, the only program that it is, of which nothing has run and which nobody has edited.
        """
        if isinstance(event, PlanRejected):
            return True
        if not engine.approves_plan or self._setup.review is None or not words.strip():
            return False
        specs = engine.state.graph.specs
        return len(specs) == 1 and specs[0].is_program and not specs[0].page

    def _is_unpaid(self, engine: Engine, words: str) -> bool:
        """Whether the planner would write another plan, and the run's budget has
        nothing left for that.
        """
        review, budget = self._setup.review, engine.state.budget
        if review is None or not review.text or not words or budget is None:
            return False
        return bool(budget.short())

    def _reject_plan(self, engine: Engine, update: Reject) -> str:
        """Have the planner write another plan by a person's words, or end the run if it
        cannot, and confirm that.
        """
        review = self._setup.review
        words = update.reason.strip()
        if self._is_unpaid(engine, words):
            raise ApplicationError(_UNPAID, type="InvalidUpdate", non_retryable=True)
        self._journal.answered(update)
        times = 1
        if review is not None:
            times += len(review.rejections)
        if review is not None and review.text and words and times < MAX_REJECTED_PLANS:
            self._rewrite(words)
            return "the plan is rejected, and its planner writes another one"
        if review is not None and not review.text and words:
            way = (
                "its planner can write no other one; give the run a model, or send a plan of "
                "yours with edit_plan"
            )
        elif times >= MAX_REJECTED_PLANS:
            way = (
                f"{times} plans were rejected; start again with another goal, or with a plan of "
                "yours"
            )
        elif review is not None:
            way = "no reason was given, by which its planner could write another one"
        else:
            way = "it was given with the run"
        rejection = "a person has rejected the plan"
        if words:
            rejection += f': "{words}"'
        problem = f"{rejection}; {way}"
        engine.fail(ApplicationError(problem, type="PlanRejected", non_retryable=True))
        return "the plan is rejected, and the run ends"

    async def _checked_by_worker(
        self, engine: Engine, update: Update, event: Event | None
    ) -> CheckResult | None:
        """Return the verdict on what only a worker can check: a script, and the
        form of a model's result.
        """
        if isinstance(event, ProgramEdited) and isinstance(update, EditProgram):
            return await engine.extender.edit(
                event.unit, update.script, repeat_writes=update.repeat_writes
            )
        if isinstance(event, Answered) and engine.state.kind_of(event.unit) == "llm":
            return await engine.extender.check_answer(event.unit, event.value)
        return None


def _is_cut(digest: str) -> bool:
    """Whether somebody has left out digits of a digest."""
    digits = digest.partition("-")[0]
    return 0 < len(digits) < TOKEN_CHARACTERS


def _handler(model: type[Update]) -> Any:
    """Return the handler of one update, with its validator."""

    async def handle(self: UpdateHandlers, request: Any = None, *more: Any) -> str:
        return await self._apply(parse_update(model, request, *more))

    def validate(self: UpdateHandlers, request: Any = None, *more: Any) -> None:
        self._admit(parse_update(model, request, *more))

    handle.__name__, handle.__doc__ = model.name, model.__doc__
    validate.__name__ = f"validate_{model.name}"
    policy = workflow.HandlerUnfinishedPolicy.ABANDON
    update = workflow.update(name=model.name, description=model.about, unfinished_policy=policy)(
        handle
    )
    update.validator(validate)
    return update


for _model in UPDATES:
    setattr(UpdateHandlers, _model.name, _handler(_model))
