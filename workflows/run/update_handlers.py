"""What people do to a run while it goes on: one update each, refused with a sentence or carried out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from workflows.messages.updates import (
    NOT_BUILT,
    UPDATES,
    Answer,
    Approve,
    Finish,
    InvalidUpdate,
    RaiseBudget,
    Reject,
    RetryNode,
    SkipNode,
    Update,
    parse_update,
)
from workflows.run.engine import Engine
from workflows.run.setup import RunSetup
from workflows.run.update_rules import confirmation, event_of

ABANDON = workflow.HandlerUnfinishedPolicy.ABANDON


class UpdateHandlers:
    """The updates of a run. Each takes one JSON object of any shape, so that a wrong form cannot wedge the run."""

    _engine: Engine | None
    _setup: RunSetup

    @workflow.update(name=RetryNode.name, description=RetryNode.about, unfinished_policy=ABANDON)
    async def retry_node(self, request: Any = None, *more: Any) -> str:
        """Run a node again."""
        return await self._take(RetryNode, request, *more)

    @retry_node.validator
    def _may_retry_node(self, request: Any = None, *more: Any) -> None:
        self._admit(RetryNode, request, *more)

    @workflow.update(name=SkipNode.name, description=SkipNode.about, unfinished_policy=ABANDON)
    async def skip_node(self, request: Any = None, *more: Any) -> str:
        """Give a node up."""
        return await self._take(SkipNode, request, *more)

    @skip_node.validator
    def _may_skip_node(self, request: Any = None, *more: Any) -> None:
        self._admit(SkipNode, request, *more)

    @workflow.update(name=Answer.name, description=Answer.about, unfinished_policy=ABANDON)
    async def answer(self, request: Any = None, *more: Any) -> str:
        """Answer a gate."""
        return await self._take(Answer, request, *more)

    @answer.validator
    def _may_answer(self, request: Any = None, *more: Any) -> None:
        self._admit(Answer, request, *more)

    @workflow.update(name=Approve.name, description=Approve.about, unfinished_policy=ABANDON)
    async def approve(self, request: Any = None, *more: Any) -> str:
        """Let a write run."""
        return await self._take(Approve, request, *more)

    @approve.validator
    def _may_approve(self, request: Any = None, *more: Any) -> None:
        self._admit(Approve, request, *more)

    @workflow.update(name=Reject.name, description=Reject.about, unfinished_policy=ABANDON)
    async def reject(self, request: Any = None, *more: Any) -> str:
        """Refuse a write."""
        return await self._take(Reject, request, *more)

    @reject.validator
    def _may_reject(self, request: Any = None, *more: Any) -> None:
        self._admit(Reject, request, *more)

    @workflow.update(name=RaiseBudget.name, description=RaiseBudget.about, unfinished_policy=ABANDON)
    async def raise_budget(self, request: Any = None, *more: Any) -> str:
        """Let the run spend more."""
        return await self._take(RaiseBudget, request, *more)

    @raise_budget.validator
    def _may_raise_budget(self, request: Any = None, *more: Any) -> None:
        self._admit(RaiseBudget, request, *more)

    @workflow.update(name=Finish.name, description=Finish.about, unfinished_policy=ABANDON)
    async def finish(self, request: Any = None, *more: Any) -> str:
        """End the run with what there is."""
        return await self._take(Finish, request, *more)

    @finish.validator
    def _may_finish(self, request: Any = None, *more: Any) -> None:
        self._admit(Finish, request, *more)

    @workflow.update(dynamic=True)
    def other(self, name: str, args: Sequence[RawValue]) -> str:
        """Never runs: its validator refuses every other name."""
        del args
        return name

    @other.validator
    def _no_other(self, name: str, args: Sequence[RawValue]) -> None:
        del args
        known = ", ".join(update.name for update in UPDATES)
        why = "is not built yet" if name in NOT_BUILT else "is no update of this run"
        raise InvalidUpdate(f"`{name}` {why}; there are {known}")

    def _admit(self, model: type[Update], request: Any, *more: Any) -> None:
        """Refuse what cannot be taken. What only comes too early is let through while something may have ended that
        this task has not come to yet, the opening of the run too: `_take` looks again when it has.
        """
        update = parse_update(model, request, *more)
        why_not = self._engine.final_rejection(update) if self._engine is not None else None
        if why_not:
            raise InvalidUpdate(why_not)

    async def _take(self, model: type[Update], request: Any, *more: Any) -> str:
        """Apply an admitted update one task later, after everything that ended before it came.

        A replay may put the task that admitted it together with the one before, and would then run this before the
        ends of nodes which the task before was about.
        """
        update = parse_update(model, request, *more)
        await workflow.sleep(timedelta(milliseconds=1), summary=f"{model.name} after what ended before it")
        engine = self._engine
        if engine is None:
            early = f"the run is still {self._setup.phase}; try again in a moment"
            raise ApplicationError(early, type="InvalidUpdate", non_retryable=True)
        engine.updates += 1
        why_not = engine.rejection(update)
        if why_not:
            engine.wake()  # the run may have waited for this update to continue as new
            raise ApplicationError(why_not, type="InvalidUpdate", non_retryable=True)
        told, event = confirmation(engine.state, update), event_of(engine.state, update)
        engine.post(event)
        return told
