"""One run, seen from a client: its view, its changes, its outcome, and the updates that a client sends it."""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from starter.client.activity_details import activity_details, why_silent
from starter.client.errors import CliError, NoAnswer, Refused, Unreachable
from starter.client.outcome import RunOutcome, outcome_of_failure, outcome_of_result
from starter.client.server_errors import cli_error, retry_outages, unless_stopped
from workflows.messages.result import RunReport
from workflows.messages.updates import NOT_BUILT, UPDATES, InvalidUpdate, parse_update
from workflows.messages.views import PAGE, RunView, ScriptView
from workflows.plan.language.text import one_line

FAST, SLOW = 0.3, 2.0
QUERY_TIMEOUT = timedelta(seconds=10)
UPDATE_TIMEOUT = 30.0
LAST_VIEW_TIMEOUT = 1.5


class Run:
    """A run by its id. It goes on whatever becomes of this object or of the process that holds it.

    `joined` says that it was there already when it was asked for; `ui_url` is its page in the web UI, if known;
    `stopped` returns whether its local server was stopped; `began` and `closed` are seconds of the Unix clock, 0 if
    not known or not yet.
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
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.id = name
        self.run_id = run_id
        self.ui_url = ui_url
        self.joined = joined
        self._client = client
        self._latest = client.get_workflow_handle(name)
        self._first = client.get_workflow_handle(name, run_id=run_id)
        self._stopped = stopped
        self._outcome: RunOutcome | None = None

    async def outcome(self) -> RunOutcome:
        """Wait until the run is over, also after resets, and return how it ended.

        Raises CliError if the server goes away.
        """
        if self._outcome is None:
            self._outcome = await unless_stopped(retry_outages(self._wait_for_end), self._stopped)
        return self._outcome

    async def result(self) -> RunReport:
        """Wait until the run is over and return its report; `status` is done, partial, failed or cancelled.

        Raises Refused if the request or the plan was wrong, so that nothing was run; CliError if the server goes away.
        """
        outcome = await self.outcome()
        if outcome.refused:
            raise Refused(outcome.report.problem or outcome.refused)
        return outcome.report

    async def _wait_for_end(self) -> RunOutcome:
        run = self._first
        while True:
            try:
                outcome = outcome_of_result(self.id, await run.result())
            except WorkflowFailureError as failure:
                successor = await self._successor() if isinstance(failure.cause, TerminatedError) else None
                if successor is not None:
                    run = successor
                    continue
                outcome = outcome_of_failure(self.id, self.run_id, failure.cause)
            report = outcome.report.model_copy(update={"ui_url": self.ui_url}) if self.ui_url else outcome.report
            return RunOutcome(report, outcome.refused)

    async def _successor(self) -> WorkflowHandle[Any, Any] | None:
        """Return the run that goes on after a reset, which terminates the one before; None after any other end."""
        was, now = await self._first.describe(), await self._latest.describe()
        is_same = _first_run_of(now) == _first_run_of(was)
        if not is_same or now.status is WorkflowExecutionStatus.TERMINATED:
            return None
        return self._client.get_workflow_handle(self.id, run_id=now.run_id)

    async def view(self) -> RunView:
        """Return the run as it stands, with every node. Raises NoAnswer if no worker answers, or another CliError."""
        return await activity_details(self._client, await self._with_all_pages(await self._page(0)))

    async def last_view(self) -> RunView | None:
        """Return the view of a run that is over, or None if no worker gives it at once."""
        try:
            async with asyncio.timeout(LAST_VIEW_TIMEOUT):
                return await self.view()
        except (TimeoutError, CliError):
            return None

    async def script(self, node: str = "") -> ScriptView:
        """Return a program of the run, with what each line has called. Raises Refused, or another CliError."""
        try:
            found = await self._latest.query("script", {"node": node}, rpc_timeout=QUERY_TIMEOUT)
            if "problem" in found:
                raise Refused(f"{self.id}: {one_line(found['problem'])}")
            return ScriptView.model_validate(found)
        except ValidationError:
            raise Refused(f"{self.id} is not a run of this Sennit: its script has another form") from None
        except WorkflowQueryFailedError as failure:
            raise NoAnswer(f"the run shows no script: {one_line(failure.message)[:300]}") from None
        except RPCError as error:
            raise await self._explained(cli_error(error)) from None

    async def _with_all_pages(self, first: RunView) -> RunView:
        nodes, after = list(first.nodes), first.next
        while after is not None:
            page = await self._page(after)
            nodes += page.nodes
            after = page.next if page.next is None or page.next > after else None
        return first.model_copy(update={"nodes": tuple(nodes), "next": None})

    async def _page(self, start: int) -> RunView:
        page = {"from": start, "limit": PAGE}
        try:
            return RunView.model_validate(await self._latest.query("plan", page, rpc_timeout=QUERY_TIMEOUT))
        except WorkflowQueryFailedError as failure:
            raise NoAnswer(f"the run gives no view of itself: {one_line(failure.message)[:300]}") from None
        except RPCError as error:
            raise await self._explained(cli_error(error)) from None
        except ValidationError:
            raise Refused(f"{self.id} is not a run of this Sennit: its view has another form") from None

    async def watch(
        self, *, every: bool = False, on_silence: Callable[[str], None] | None = None
    ) -> AsyncGenerator[RunView, None]:
        """Yield the run's view whenever it changed, until the run is over; with `every`, after each query.

        Queries every 0.3 s, less often up to 2 s while nothing changes. While no worker answers it calls `on_silence`
        and goes on. Raises CliError if the server stays away.
        """
        over = asyncio.ensure_future(self.outcome())
        query: asyncio.Future[tuple[RunView | None, RunView | None]] | None = None
        view: RunView | None = None
        last_page: RunView | None = None
        pause = FAST
        try:
            while not over.done():
                began = asyncio.get_running_loop().time()
                query = asyncio.ensure_future(self._changed_view(last_page, view, on_silence))
                await asyncio.wait({over, query}, return_when=asyncio.FIRST_COMPLETED)
                if over.done():  # a run that is over needs no worker to look at it
                    break
                page, view = await query
                changed = page is not None and page != last_page
                last_page = page or last_page
                if view is not None and (changed or (every and page is not None)):
                    yield await activity_details(self._client, view)
                pause = FAST if changed else min(pause * 1.25, SLOW)
                took = asyncio.get_running_loop().time() - began
                await asyncio.wait({over}, timeout=max(pause, 2 * took))
            await over
        finally:
            for task in (over, query):
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    async def _changed_view(
        self, last_page: RunView | None, view: RunView | None, on_silence: Callable[[str], None] | None
    ) -> tuple[RunView | None, RunView | None]:
        """Return the first page and the whole view, read again if that page has changed; no page if nobody answers."""
        try:
            page = await self._page(0)
            return page, view if page == last_page else await self._with_all_pages(page)
        except (NoAnswer, Unreachable) as error:  # whether the server stays away is for `outcome` to say
            if on_silence:
                on_silence(str(error))
        return None, view

    async def update(self, name: str, /, **fields: Any) -> str:
        """Send an update and return the run's sentence about it. It is applied once, or refused and not at all.

        An update of the node `sub.n1` goes to node n1 of the sub-agent `sub`. Raises Refused with the reason, also if
        the run is over; NoAnswer if no worker took it within 30 s, and then it may still be applied later.
        """
        subagent, _, node = str(fields.get("node", "")).rpartition(".")
        run = self._client.get_workflow_handle(f"{self.id}.{subagent}") if subagent else self._latest
        if "by" in _fields_of(name):
            fields = {"by": self._client.identity[:100], **fields}
        request = checked_update(name, {**fields, "node": node} if subagent else fields)
        try:
            message = await asyncio.wait_for(run.execute_update(name, request), UPDATE_TIMEOUT)
        except WorkflowUpdateFailedError as failure:
            cause = failure.cause
            raise Refused(cause.message if isinstance(cause, ApplicationError) else str(cause)) from None
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            late = NoAnswer(f"no worker took the update within {UPDATE_TIMEOUT:.0f} s; it may still be applied")
            raise await self._explained(late) from None
        except RPCError as error:
            raise self._call_error(error) from None
        return str(message or f"{name} was applied")

    async def cancel(self) -> None:
        """Ask the run to cancel: it stops running nodes and ends as cancelled. A run that is over stays as it is."""
        try:
            await self._latest.cancel()
        except RPCError as error:
            raise self._call_error(error) from None

    async def _explained(self, error: CliError) -> CliError:
        """Return a NoAnswer with its reason, if the server knows it."""
        why = await why_silent(self._client, self.id) if isinstance(error, NoAnswer) else None
        return NoAnswer(why) if why else error

    def _call_error(self, error: RPCError) -> CliError:
        if error.status is RPCStatusCode.NOT_FOUND and "completed" in error.message:
            return Refused(f"{self.id} is over and takes no updates; see: {shlex.join(['sennit', 'status', self.id])}")
        return cli_error(error)


def _first_run_of(found: WorkflowExecutionDescription) -> str:
    return found.raw_description.workflow_execution_info.first_run_id


def _fields_of(name: str) -> Sequence[str]:
    return next((list(model.model_fields) for model in UPDATES if model.name == name), ())


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
