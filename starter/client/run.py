"""One run, seen from a client: its view, its changes, its end, and the updates and cancellation it is sent."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from starter.client.activity_details import activity_details, why_silent
from starter.client.errors import CliError, NoAnswer, Refused, Unreachable
from starter.client.outcome import RunOutcome, outcome_of_failure, outcome_of_result
from starter.client.server_errors import meaning, patiently, unless_gone
from workflows.messages.result import RunReport
from workflows.messages.updates import NOT_BUILT, UPDATES, InvalidUpdate, parse_update
from workflows.messages.views import PAGE, RunView
from workflows.plan.language.text import one_line

FAST, SLOW = 0.3, 2.0
QUERY_TIMEOUT = timedelta(seconds=10)
UPDATE_TIMEOUT = 30.0
LAST_LOOK = 1.5


class Run:
    """A run by its id. It goes on whatever becomes of this object or of the process that holds it.

    `joined` says that it was there already when it was asked for; `ui_url` is its page in the web UI, if known; `gone`
    says whether nobody runs its server any more; `began` and `closed` are seconds of the Unix clock, 0 where not known
    or not yet.
    """

    began: float = 0.0
    closed: float = 0.0

    def __init__(
        self,
        client: Client,
        name: str,
        run_id: str,
        *,
        ui_url: str | None = None,
        joined: bool = False,
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.id = name
        self.run_id = run_id
        self.ui_url = ui_url
        self.joined = joined
        self._client = client
        self._latest = client.get_workflow_handle(name)
        self._first = client.get_workflow_handle(name, run_id=run_id)
        self._gone = gone
        self._ending: RunOutcome | None = None

    async def ending(self) -> RunOutcome:
        """Wait until the run is over and return how it ended. Raises Stop when the server goes away."""
        if self._ending is None:
            self._ending = await unless_gone(patiently(self._end), self._gone)
        return self._ending

    async def result(self) -> RunReport:
        """Wait until the run is over and return its report; `status` tells done, partial, failed, cancelled.

        Raises Refused when the request or the plan was wrong, so nothing was run; Stop when the server goes away.
        """
        ending = await self.ending()
        if ending.refused:
            raise Refused(ending.report.problem or ending.refused)
        return ending.report

    async def _end(self) -> RunOutcome:
        try:
            ending = outcome_of_result(self.id, await self._first.result())
        except WorkflowFailureError as failure:
            ending = outcome_of_failure(self.id, self.run_id, failure.cause)
        report = ending.report.model_copy(update={"ui_url": self.ui_url}) if self.ui_url else ending.report
        return RunOutcome(report, ending.refused)

    async def view(self) -> RunView:
        """Return the run as it stands, every node included. Raises Silent when no worker answers, or another Stop."""
        return await activity_details(self._client, await self._rest_of(await self._page(0)))

    async def last_view(self) -> RunView | None:
        """Return the view of a run that is over, or None when no worker gives it at once."""
        try:
            async with asyncio.timeout(LAST_LOOK):
                return await self.view()
        except (TimeoutError, CliError):
            return None

    async def _rest_of(self, first: RunView) -> RunView:
        nodes, after = list(first.nodes), first.next
        while after is not None:
            page = await self._page(after)
            nodes += page.nodes
            after = page.next if page.next is None or page.next > after else None
        return first.model_copy(update={"nodes": tuple(nodes), "next": None})

    async def _page(self, start: int) -> RunView:
        asked = {"from": start, "limit": PAGE}
        try:
            return RunView.model_validate(await self._latest.query("plan", asked, rpc_timeout=QUERY_TIMEOUT))
        except WorkflowQueryFailedError as failure:
            raise NoAnswer(f"the run gives no view of itself: {one_line(failure.message)[:300]}") from None
        except RPCError as error:
            raise await self._explained(meaning(error)) from None
        except ValidationError:
            raise Refused(f"{self.id} is not a run of this Sennit: its view has another form") from None

    async def watch(
        self, *, every: bool = False, on_silence: Callable[[str], None] | None = None
    ) -> AsyncGenerator[RunView, None]:
        """Yield the run's view whenever it changed, until the run is over; with `every`, each time it was looked at.

        Looks every 0.3 s, less often up to 2 s while nothing changes. While no worker answers it calls `on_silence`
        and goes on. Raises Stop when the server stays away.
        """
        over = asyncio.ensure_future(self.ending())
        looking: asyncio.Future[RunView | None] | None = None
        last: RunView | None = None
        page: RunView | None = None
        pause = FAST
        try:
            while not over.done():
                began = asyncio.get_running_loop().time()
                looking = asyncio.ensure_future(self._glance(on_silence))
                await asyncio.wait({over, looking}, return_when=asyncio.FIRST_COMPLETED)
                if over.done():  # a run that is over needs no worker to look at it
                    break
                seen = await looking
                changed = seen is not None and seen != page
                if seen is not None and changed:
                    page, last = seen, await self._rest_of(seen)
                if last is not None and (changed or (every and seen is not None)):
                    yield await activity_details(self._client, last)
                pause = FAST if changed else min(pause * 1.25, SLOW)
                spent = asyncio.get_running_loop().time() - began
                await asyncio.wait({over}, timeout=max(pause, 2 * spent))
            await over
        finally:
            for task in (over, looking):
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    async def _glance(self, on_silence: Callable[[str], None] | None) -> RunView | None:
        try:
            return await self._page(0)
        except (NoAnswer, Unreachable) as silent:  # whether the server stays away is for `ending` to say
            if on_silence:
                on_silence(str(silent))
        return None

    async def update(self, name: str, /, **fields: Any) -> str:
        """Send an update and return the run's sentence about it. It is applied once, or refused and not at all.

        The node `sub.n1` is n1 of the sub-agent of sub: the update goes to that run.

        Raises Refused with the reason, also when the run is over; Silent when no worker took it within 30 s, and
        then it may still be applied later.
        """
        below, _, node = str(fields.get("node", "")).rpartition(".")
        run = self._client.get_workflow_handle(f"{self.id}.{below}") if below else self._latest
        request = checked_update(name, {**fields, "node": node} if below else fields)
        try:
            said = await asyncio.wait_for(run.execute_update(name, request), UPDATE_TIMEOUT)
        except WorkflowUpdateFailedError as failure:
            cause = failure.cause
            raise Refused(cause.message if isinstance(cause, ApplicationError) else str(cause)) from None
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            late = NoAnswer(f"no worker took the update within {UPDATE_TIMEOUT:.0f} s; it may still be applied")
            raise await self._explained(late) from None
        except RPCError as error:
            raise self._refusal(error) from None
        return str(said or f"{name} was applied")

    async def cancel(self) -> None:
        """Ask the run to cancel: it stops what runs and ends as cancelled. Nothing happens to one that is over."""
        try:
            await self._latest.cancel()
        except RPCError as error:
            raise self._refusal(error) from None

    async def _explained(self, stop: CliError) -> CliError:
        """Return a silence with its reason, where the server knows it."""
        why = await why_silent(self._client, self.id) if isinstance(stop, NoAnswer) else None
        return NoAnswer(why) if why else stop

    def _refusal(self, error: RPCError) -> CliError:
        if error.status is RPCStatusCode.NOT_FOUND and "completed" in error.message:
            return Refused(f"{self.id} is over, and a run that is over takes no orders; see: sennit status {self.id}")
        return meaning(error)


def checked_update(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object to send; raises Refused naming the field, the problem and an example."""
    model = next((model for model in UPDATES if model.name == name), None)
    if model is None:
        known = ", ".join(model.name for model in UPDATES)
        why = "is not built yet" if name in NOT_BUILT else "is no update"
        raise Refused(f"`{name[:60]}` {why}; there are {known}")
    try:
        return parse_update(model, fields).model_dump(mode="json", exclude_unset=True)
    except InvalidUpdate as invalid:
        raise Refused(str(invalid)) from None
