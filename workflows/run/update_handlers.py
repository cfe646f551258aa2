"""The updates that people send to a run: each is refused with a sentence or carried out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_EDIT_WARNINGS
from sennit.workflows.messages.contracts import CheckResult
from sennit.workflows.messages.updates import (
    UPDATES,
    Approve,
    EditProgram,
    Finish,
    InvalidUpdate,
    RetryNode,
    RunIsOver,
    Update,
    parse_update,
)
from sennit.workflows.plan.scheduling.events import TOKEN_CHARACTERS, Answered, Event, ProgramEdited
from sennit.workflows.run.engine import Engine
from sennit.workflows.run.outcomes import plan_of
from sennit.workflows.run.setup import RunSetup
from sennit.workflows.run.update_rules import Verdict
from sennit.workflows.views.journal import Journal


class UpdateHandlers:
    """The updates of a run. Each takes one JSON object of any shape, so that a wrong form cannot block the run."""

    _engine: Engine | None
    _setup: RunSetup
    _checked: CheckResult
    _journal: Journal

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
        """Refuse an update that can never be accepted. One that only comes too early is admitted while something may
        have ended that this task has not processed yet, the start of the run included: `_apply` checks again after
        that.
        """
        rejection = self._engine.final_rejection(update) if self._engine is not None else ""
        if isinstance(update, Approve) and 0 < len(update.digest.partition("-")[0]) < TOKEN_CHARACTERS:
            rejection = f"a digest has {TOKEN_CHARACTERS} digits; read again what `{update.node}` would write"
        if rejection and self._engine is not None and self._engine.state.ended:
            raise RunIsOver(rejection)
        if rejection:
            raise InvalidUpdate(rejection)

    async def _apply(self, update: Update) -> str:
        """Apply an admitted update one task later, after everything that ended before it came.

        A replay may merge the task that admitted it with the one before. Applied at once, the update would then run
        before the ends of nodes that the earlier task processed.
        """
        await workflow.sleep(timedelta(milliseconds=1), summary=f"{update.name} after what ended before it")
        engine, outage = self._engine, self._setup.outage
        if outage.blocked and isinstance(update, RetryNode) and not update.node:
            self._journal.answered(update)
            outage.decide("retry")
            return "the run tries again to plan"
        if engine is None and outage.blocked and isinstance(update, Finish):
            self._journal.answered(update)
            outage.decide("finish")
            return "the run ends without a plan"
        if engine is None and isinstance(update, EditProgram):
            # After a reset the server gives an edit again that the run has confirmed, also to a run without a plan yet.
            # Nobody would hear that it was refused now, and the run would go on with the old script.
            await workflow.wait_condition(lambda: self._engine is not None)
            engine = self._engine
        if engine is None:
            early = f"the run is still {self._setup.phase}; try again in a moment"
            raise ApplicationError(early, type="InvalidUpdate", non_retryable=True)
        engine.updates += 1
        verdict = engine.judge(update)
        checked = await self._checked_by_worker(engine, update, verdict.event)
        if checked is not None:
            verdict = engine.judge(update)  # much may have happened meanwhile
            if isinstance(verdict.event, ProgramEdited) and isinstance(update, EditProgram) and not checked.problems:
                [spec] = plan_of(checked.execution_plan).specs
                verdict.event.page, verdict.event.script, verdict.event.quote = checked.plan, update.script, spec.quote
            if checked.problems:
                verdict = Verdict(rejection="\n".join(checked.problems))
        if verdict.event is None:
            engine.wake()  # the run may have waited for this update to continue as new
            raise ApplicationError(verdict.rejection, type="InvalidUpdate", non_retryable=True)
        self._journal.answered(update)
        engine.post(verdict.event)
        warnings = checked.warnings[:MAX_EDIT_WARNINGS] if checked is not None else ()
        is_only = sum(spec.maker < 0 for spec in engine.state.graph.specs) == 1
        if isinstance(update, EditProgram) and is_only:  # those of the script before are about none that runs
            self._checked = self._checked.model_copy(update={"warnings": warnings})
        return "\n".join([verdict.confirmation, *(f"warning: {warning}" for warning in warnings)])

    async def _checked_by_worker(self, engine: Engine, update: Update, event: Event | None) -> CheckResult | None:
        """Return the verdict on what only a worker can check: a script, and the form of a model's result."""
        if isinstance(event, ProgramEdited) and isinstance(update, EditProgram):
            return await engine.extender.edit(event.unit, update.script, repeat_writes=update.repeat_writes)
        if isinstance(event, Answered) and engine.state.kind_of(event.unit) == "llm":
            return await engine.extender.check_answer(event.unit, event.value)
        return None


def _handler(model: type[Update]) -> Any:
    """Return the handler of one update, with its validator."""

    async def handle(self: UpdateHandlers, request: Any = None, *more: Any) -> str:
        return await self._apply(parse_update(model, request, *more))

    def validate(self: UpdateHandlers, request: Any = None, *more: Any) -> None:
        self._admit(parse_update(model, request, *more))

    handle.__name__, handle.__doc__ = model.name, model.__doc__
    validate.__name__ = f"validate_{model.name}"
    policy = workflow.HandlerUnfinishedPolicy.ABANDON
    update = workflow.update(name=model.name, description=model.about, unfinished_policy=policy)(handle)
    update.validator(validate)
    return update


for _model in UPDATES:
    setattr(UpdateHandlers, _model.name, _handler(_model))
