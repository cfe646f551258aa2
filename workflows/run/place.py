"""The place of a run in the quota of its namespace: it waits for the place, and gives
it back when it is over.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from sennit.workflows.messages.quota import GIVE_BACK_SIGNAL, QUOTA_ID, PlaceEnd
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.quota import PlaceReply, Spending

ASK_AGAIN = timedelta(minutes=10)
"""A run that waits asks again after this, though it has not heard of a place."""
LAST_ANSWER = timedelta(seconds=15)
"""How long a run that is cancelled waits for the answer to its question. Longer than an
attempt to ask may take.
"""


class RunPlace:
    """The place of this run, if its namespace has a quota. `changed` is
    called when the wait begins.
    """

    def __init__(self, *, is_held: bool, changed: Callable[[], None]) -> None:
        self.is_held = is_held
        """Whether the quota may count this run, in the line too."""
        self.waits_for = ""
        """Why the run waits in line, if it does."""
        self._changed = changed
        self._is_called = False

    async def take(self, ask: Callable[[], Coroutine[Any, Any, PlaceReply]]) -> None:
        """Return when the run has its place. It asks as often as it is told that there is one.

        Raises ApplicationError of type QuotaExceeded if it can get none today.
        """
        self.is_held = True
        try:
            await self._take(ask)
        finally:
            self.waits_for = ""  # it may have been cancelled

    async def _take(self, ask: Callable[[], Coroutine[Any, Any, PlaceReply]]) -> None:
        while True:
            self._is_called = False
            reply = await _answered(asyncio.create_task(ask()))
            if reply.granted:
                return
            if not reply.can_wait:
                raise ApplicationError(reply.reason, type="QuotaExceeded", non_retryable=True)
            self.waits_for = reply.reason
            self._changed()
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._is_called,
                    timeout=ASK_AGAIN,
                    timeout_summary="a place in the quota of the namespace",
                )

    def call(self) -> None:
        """Have the run ask again at once."""
        self._is_called = True

    async def give_back(self, used: Usage) -> None:
        """Tell the quota that this run is over, and what it has used. A run
        without a place tells nobody.

        If the quota cannot be told, it learns of the end by itself, within ten minutes.
        """
        if not self.is_held:
            return
        self.is_held = False
        end = PlaceEnd(
            first_run=workflow.info().first_execution_run_id,
            used=Spending(tokens=used.tokens, cost=used.cost),
        )
        try:
            await workflow.get_external_workflow_handle(QUOTA_ID).signal(GIVE_BACK_SIGNAL, end)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("the place of this run could not be given back: %s", error)


async def _answered(asking: asyncio.Task[PlaceReply]) -> PlaceReply:
    """Return the answer. A run that is cancelled waits for it all the same: if it gave its place
    back before it had got it, the quota would count the place of a run that is over.
    """
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        if workflow.cancellation_reason() is not None:  # and not because a worker forgets the run
            with suppress(TimeoutError):
                await workflow.wait_condition(asking.done, timeout=LAST_ANSWER)
        asking.cancel()
        raise
