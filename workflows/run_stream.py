"""RunStream: what models write for a run, on its way to those who listen,
as a Temporal workflow.
"""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sennit.workflows.limits import MAX_POLLS
    from sennit.workflows.messages.text_stream import (
        PIECES_SIGNAL,
        POLL_UPDATE,
        STREAM_TYPE,
        PieceBatch,
        StreamPage,
        StreamPoll,
        StreamState,
    )
    from sennit.workflows.views.text_log import TextLog

TICK = timedelta(seconds=20)
TICKS_WITHOUT_POLL = 3
"""After so many nobody listens any more, and the stream ends."""


@workflow.defn(name=STREAM_TYPE)
class RunStream:
    """Carries text from workers to clients. It ends about a minute after the last poll.

    What it has is lost with it: the text of an output is in the store, and this is
    only how it came about.
    """

    @workflow.init
    def __init__(self, state: StreamState) -> None:
        # Positions begin with the time, so that those of a later stream are higher.
        began = round(workflow.now().timestamp() * 1000)
        self._log = TextLog(
            state if state.position else state.model_copy(update={"position": began})
        )
        self._ticks = 0
        self._polled_at = 0
        self._polls = 0
        self._is_closing = False

    @workflow.run
    async def run(self, state: StreamState) -> None:
        """Serve until nobody listens any more."""
        del state  # the text log has it

        def is_full() -> bool:
            return self._polls >= MAX_POLLS or workflow.info().is_continue_as_new_suggested()

        while self._ticks - self._polled_at < TICKS_WITHOUT_POLL:
            try:
                await workflow.wait_condition(
                    is_full, timeout=TICK, timeout_summary="is anybody listening?"
                )
            except TimeoutError:
                self._ticks += 1
                continue
            # Polls that wait are answered first: the next run of the workflow
            # knows nothing of them.
            self._is_closing = True
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(self._log.state())
        self._is_closing = True
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.signal(name=PIECES_SIGNAL, description="A worker has text of a model")
    def take(self, batch: PieceBatch) -> None:
        """Take the pieces of a batch."""
        for piece in batch.pieces:
            self._log.take(piece)

    @workflow.update(name=POLL_UPDATE, description="A client asks for the text after a position")
    async def poll(self, call: StreamPoll) -> StreamPage:
        """Return the items after a position. With none, wait for the next one, though for
        no more than two ticks.
        """
        self._polls += 1
        self._polled_at = began = self._ticks
        if call.waits:
            await workflow.wait_condition(
                lambda: (
                    self._is_closing or self._log.position > call.after or self._ticks >= began + 2
                )
            )
        self._polled_at = self._ticks
        return self._log.after(call.after)
