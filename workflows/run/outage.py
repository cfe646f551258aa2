"""Waits out an outage of what a run is planned with: it is blocked, and tries again
by itself or on demand.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_OUTAGE_CHARACTERS
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.plan.scheduling.termination import OUTAGES as OF_MODELS
from sennit.workflows.plan.scheduling.termination import pause_after
from sennit.workflows.run.outcomes import used_by
from sennit.workflows.run.timer import milliseconds
from sennit.workflows.views.questions import tried_again_at

OUTAGES = (
    *OF_MODELS,
    "McpUnavailable",
    "ModelTimeout",
    "ReplyCut",
    "StoreUnavailable",
    "WorkerLost",
)
"""Errors that may be over later, though nobody changes anything."""
Decision = Literal["retry", "finish"]


class Outage:
    """The outage that a run waits for now, if any. `changed` is called when one begins.

    After each failed try it waits twice as long as before; a try that cost tokens is
    repeated only on demand. A run waits only where it would park after the failure of a
    node, and at most as long in all.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.blocked: tuple[BlockedOn, ...] = ()
        self._changed = changed
        self._park_for = 0
        self._until = 0
        self._pause = 0
        self._decision: Decision | None = None

    def allow(self, request: RunRequest) -> None:
        """Let a run wait as its request says."""
        self._park_for = 0
        if request.on_failure in (None, "park"):
            self._park_for = round(request.park_for * 1000)

    @property
    def is_waited_for(self) -> bool:
        """Whether this run waits for the end of an outage."""
        return self._park_for > 0

    def decide(self, decision: Decision) -> None:
        self._decision = decision

    async def wait(self, error: ApplicationError) -> None:
        """Return when it is time to try again. Raises `error` if that is of no
        use, or a person gives up.
        """
        now = milliseconds()
        self._until = self._until or now + self._park_for
        left = self._until - now
        if error.type not in OUTAGES or left <= 0:
            raise error
        self._pause = pause_after(self._pause)
        pause = min(self._pause, left)
        self._decision = None

        # An attempt that has cost tokens is repeated only if a person says so.
        patience = pause
        otherwise: Decision = "retry"
        hint = f"; {tried_again_at(now + pause)}"
        if used_by(error).tokens:
            patience = left
            otherwise = "finish"
            hint = ""
        self.blocked = (_blocked_on(error, hint),)
        self._changed()
        try:
            decision = await self._decided(patience) or otherwise
        finally:
            self.blocked = ()
        if decision == "finish":
            raise error
        self._changed()

    async def _decided(self, pause: int) -> Decision | None:
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._decision is not None,
                timeout=timedelta(milliseconds=pause),
                timeout_summary="the next attempt to plan",
            )
        return self._decision


def _blocked_on(error: ApplicationError, then: str) -> BlockedOn:
    return BlockedOn(
        node="",
        why="planning",
        question=f"{error.type}: {error.message[:MAX_OUTAGE_CHARACTERS]}{then}",
        update="retry_node",
        example={},
        command=shlex.join(["sennit", "retry", workflow.info().workflow_id]),
    )
