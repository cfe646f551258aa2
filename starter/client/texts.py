"""Listens to what models write for a run, while they write: see `sennit.workflows.run_stream`."""

import asyncio
import time
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.text_stream import (
    POLL_UPDATE,
    STREAM_TYPE,
    StreamItem,
    StreamPage,
    StreamPoll,
    StreamState,
    stream_of,
)
from sennit.workflows.messages.views import RunEvent

PAUSE = 1.0
"""After a poll that the server or the stream did not answer."""
REST_SECONDS = 2.0
"""For which the end of a run waits until its last text is read."""
LONGEST_STREAM = timedelta(days=1)
"""For a stream that no worker serves; while somebody listens, another one follows."""
_NOT_ALLOWED = (
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.UNIMPLEMENTED,
)


class TextListener:
    """Polls the stream of one run from a position on, and starts it if it is not there.

    `number` is that of the run's last event, which events of texts have too. What the server does
    not give is missing: a text is only how an output comes about.
    """

    def __init__(self, client: Client, run: str, position: int) -> None:
        self.number = 0
        self._client = client
        self._run = run
        self._position = position
        self._events: asyncio.Queue[RunEvent] = asyncio.Queue()
        self._is_started = self._is_closed = False
        self._listening = asyncio.create_task(self._listen())

    async def until(self, task: "asyncio.Future[Any]") -> AsyncGenerator[RunEvent, None]:
        """Yield texts as they come, until this task is done."""
        while not task.done():
            upcoming = asyncio.ensure_future(self._events.get())
            try:
                await asyncio.wait({task, upcoming}, return_when=asyncio.FIRST_COMPLETED)
                if upcoming.done():
                    yield self._numbered(upcoming.result())
            finally:
                upcoming.cancel()

    async def rest(self) -> list[RunEvent]:
        """Return what has come and was not yielded, once the run is over. Then
        nobody listens any more.
        """
        await self.close()
        try:
            async with asyncio.timeout(REST_SECONDS):
                page = await self._poll(waits=False)
                while page.items:
                    self._take(page)
                    page = await self._poll(waits=False)
        except (
            TimeoutError,
            RPCError,
            WorkflowUpdateFailedError,
            WorkflowUpdateRPCTimeoutOrCancelledError,
        ):
            pass  # the outputs are there, and how they came about no longer matters
        found: list[RunEvent] = []
        while not self._events.empty():
            found.append(self._numbered(self._events.get_nowait()))
        return found

    async def close(self) -> None:
        """Listen no longer."""
        self._is_closed = True
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        # The SDK turns the cancellation of a poll into an error of its own.
        while not self._is_closed:
            try:
                self._take(await self._poll(waits=True))
                continue
            except RPCError as error:
                if error.status in _NOT_ALLOWED:
                    return
            except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
                pass  # the stream has ended meanwhile; the next poll starts another one
            if not self._is_closed:
                await asyncio.sleep(PAUSE)

    async def _poll(self, *, waits: bool) -> StreamPage:
        """Return the next page. Raises RPCError or an error of updates, after which the
        stream is started again.
        """
        if not self._is_started:
            return await self._first_page()
        stream = self._client.get_workflow_handle(stream_of(self._run))
        self._is_started = False
        call = StreamPoll(after=self._position, waits=waits)
        page: StreamPage = await stream.execute_update(POLL_UPDATE, call, result_type=StreamPage)
        self._is_started = True
        return page

    async def _first_page(self) -> StreamPage:
        """Start the stream if nobody has, and return what it has by now."""
        start: WithStartWorkflowOperation[Any, None] = WithStartWorkflowOperation(
            STREAM_TYPE,
            StreamState(),
            id=stream_of(self._run),
            task_queue=WORKFLOW,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            execution_timeout=LONGEST_STREAM,
            static_summary=f"what models write for {self._run}"[:200],
        )
        call = StreamPoll(after=self._position, waits=False)
        page: StreamPage = await self._client.execute_update_with_start_workflow(
            POLL_UPDATE, call, start_workflow_operation=start, result_type=StreamPage
        )
        self._is_started = True
        return page

    def _take(self, page: StreamPage) -> None:
        for item in page.items:
            self._events.put_nowait(_event(item))
        self._position = page.position

    def _numbered(self, event: RunEvent) -> RunEvent:
        return event.model_copy(update={"number": self.number})


def _event(item: StreamItem) -> RunEvent:
    """Return a piece of text, or that the text of an attempt is discarded and why, as an
    event without a number.
    """
    return RunEvent(
        number=0,
        at=time.time(),
        kind="discarded" if item.discarded else "text",
        node=item.node,
        generation=item.generation,
        attempt=item.attempt,
        offset=item.offset,
        text=item.discarded or item.text,
        position=item.position,
    )
