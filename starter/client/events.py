"""Reads the events of a run: from the run itself as far as its history has recorded
them, and from the server.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from pydantic import ValidationError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.activity_details import history_back, live_details, why_silent
from sennit.starter.client.errors import NoAnswer, Refused
from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.result import RunStatus
from sennit.workflows.messages.views import EventPage, RunEvent
from sennit.workflows.plan.language.text import one_line

QUERY_TIMEOUT = timedelta(seconds=10)
_SILENT = (
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.FAILED_PRECONDITION,
)
_ENDED: dict[WorkflowExecutionStatus | None, tuple[RunStatus, str]] = {
    WorkflowExecutionStatus.CANCELED: ("cancelled", "the run was cancelled"),
    WorkflowExecutionStatus.TERMINATED: ("failed", "the run was terminated"),
    WorkflowExecutionStatus.TIMED_OUT: ("failed", "the run hit its time limit in Temporal"),
}


class EventReader:
    """Reads on, from wherever its caller is. `is_over` says, after a reading, that the
    run had ended before it.
    """

    def __init__(
        self, client: Client, name: str, last: Callable[[], Awaitable[WorkflowExecutionDescription]]
    ) -> None:
        self.is_over = False
        self._client = client
        self._name = name
        self._last = last
        self._read: tuple[str, int] | None = None
        self._path: list[str] = []  # from the chain's last run back to the one that is being read
        self._shown: dict[tuple[str, int, str], str] = {}

    async def read(self, after: int) -> list[RunEvent]:
        """Return the next events after that number; none if nothing is new.
        Raises RPCError, NoAnswer.
        """
        found = await self._last()
        self.is_over = found.status is not WorkflowExecutionStatus.RUNNING
        recorded = await self._recorded(found.run_id)
        if self._read == (found.run_id, recorded) and not self.is_over:
            return await self._live(after)
        try:
            page = await self._page(found.run_id, after, recorded)
        except RPCError as error:
            if error.status not in _SILENT:
                raise
            if not self.is_over:
                return await self._live(after)
            raise NoAnswer(
                await why_silent(self._client, self._name) or error_of(error).args[0]
            ) from None
        if not page.events:
            self._read = found.run_id, recorded
        if page.events or not self.is_over:
            return list(page.events) or await self._live(after)
        return self._end(found, page, after)

    def _end(
        self, found: WorkflowExecutionDescription, page: EventPage, after: int
    ) -> list[RunEvent]:
        """Return the end of a run that could not note it itself, because
        the server has ended it.
        """
        if found.status not in _ENDED or after >= page.following or page.ended:
            return []
        status, problem = _ENDED[found.status]
        at = 0.0
        if found.close_time:
            at = found.close_time.timestamp()
        return [RunEvent(number=page.following, at=at, kind="ended", text=problem, status=status)]

    async def _page(self, run_id: str, after: int, recorded: int) -> EventPage:
        """Return a page of this run of the chain, or of an earlier one that has
        events after that number.
        """
        if self._path[:1] != [run_id]:
            self._path = [run_id]
        is_read = False  # the run before the one that is asked
        while True:
            here = self._path[-1]
            try:
                if here != run_id:
                    recorded = await self._recorded(here)
                page = await self._ask(here, after, recorded)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND or here == run_id:
                    raise
                raise await self._forgotten(after) from None
            if page.previous and after + 1 < page.first and not is_read:
                self._path.append(page.previous)
            elif page.events or here == run_id:
                return page
            else:
                self._path.pop()
                is_read = True

    async def _forgotten(self, after: int) -> Refused:
        """Leave the run that the server has forgotten, and return how to go on
        with the one after it.
        """
        self._path.pop()
        page = await self._ask(self._path[-1], after, 0)
        way = f"go on with after={page.first - 1}"
        return Refused(f"the server has forgotten the first events of {self._name}; {way}")

    async def _ask(self, run_id: str, after: int, recorded: int) -> EventPage:
        handle = self._client.get_workflow_handle(self._name, run_id=run_id)
        request = {"after": after, "through": recorded}
        try:
            return EventPage.model_validate(
                await handle.query("events", request, rpc_timeout=QUERY_TIMEOUT)
            )
        except (WorkflowQueryFailedError, ValidationError) as failure:
            why = one_line(str(failure))[:300]
            raise Refused(
                f"{self._name} is not a run of this Sennit, which tells its events: {why}"
            ) from None

    async def _recorded(self, run_id: str) -> int:
        """Return the event with which the last workflow task was completed; 0 if none has been.

        A worker that has replayed the history up to there counts that event too, if the
        task wrote no command.
        """
        execution = WorkflowExecution(workflow_id=self._name, run_id=run_id)
        async for event in history_back(self._client, execution):
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                return event.event_id
        return 0

    async def _live(self, after: int) -> list[RunEvent]:
        """Return what the server says of running nodes and has not said to this reader before."""
        found: list[RunEvent] = []
        for detail in await live_details(self._client, self._name):
            what = detail.node, detail.generation, detail.kind
            if self._shown.get(what) != detail.text:
                self._shown[what] = detail.text
                found.append(detail.model_copy(update={"number": after}))
        return found
