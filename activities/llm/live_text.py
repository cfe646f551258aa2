"""Sends what a model writes to those who listen to its run, while it writes.

Each run has a channel in each worker process. It asks every two seconds whether anybody
listens, and less often where many runs write at once; only then are pieces read, masked and
sent, every 100 ms. Without listeners a piece costs an append to a list.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.llm.visible_text import VisibleText
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import message_of
from sennit.activities.providers.model import ProviderError
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.limits import MAX_BATCH_CHARACTERS
from sennit.workflows.messages.text_stream import PIECES_SIGNAL, PieceBatch, TextPiece, stream_of
from sennit.workflows.plan.language.text import one_line

log = logging.getLogger("llm")

BATCH_SECONDS = 0.1
ASK_SECONDS = 2.0
"""Between two questions whether anybody listens to a run, at least."""
ASKS_A_SECOND = 20
"""How many runs a worker asks about again and again: hundreds of sub-agents at once would
otherwise keep the server busy with questions.
"""
FLUSH_SECONDS = 2.0
"""For which a call that has ended waits until its last text is sent."""
SEND_SECONDS = 5.0


class LiveText:
    """The text of one model call. `answer_only` is for a joiner: of its JSON
    only the answer is text.
    """

    def __init__(self, channel: "Channel | None", place: TextPiece, *, answer_only: bool) -> None:
        self.is_closed = False
        self.is_ended = False
        self._channel = channel
        self._place = place
        self._answer_only = answer_only
        self._pieces: list[str] = []
        self._visible = VisibleText(answer_only=answer_only)
        self._shown = ""
        self._sent = 0
        self._on_its_way = 0  # characters that a signal, which may have arrived by now, has sent
        self._has_begun = False
        self._discarded = ""
        # How often the text began anew: a signal under way may have been of the one before.
        self._version = 0

    def add(self, piece: str) -> None:
        """Take a piece of the reply. Never blocks."""
        if self._channel is not None:
            self._pieces.append(piece)
            self._channel.wake()

    def discard(self, reason: str) -> None:
        """Say that what was written is no output."""
        self._pieces.clear()
        self._visible = VisibleText(answer_only=self._answer_only)
        self._shown = ""
        self._begin_anew(reason)

    def end(self, output: NodeOutput) -> None:
        """The reply was read. A text that differs from what was made of it is discarded, and the
        output stands in its place.
        """
        self.is_ended = True
        if output.more == "replan":
            self.discard("the joiner asks for more nodes")
            return
        if output.more:
            self.discard("the model calls tools")
            return
        text = output.output
        if self._answer_only and isinstance(text, dict):
            text = text.get("answer")
        self._read(is_whole=True)
        if isinstance(text, str) and text.strip() != self._shown.strip():
            self.discard("the reply was read otherwise")
            self._shown = text

    def next_pieces(self, room: int) -> tuple[list[TextPiece], "Sent"]:
        """Return what to send next, `room` characters at most, and what `was_sent` is
        told once it has arrived.
        """
        self._read(is_whole=False)
        found: list[TextPiece] = []
        sent = self._sent
        if self._discarded:
            found.append(self._place.model_copy(update={"discarded": self._discarded}))
            sent = 0
        text = self._shown[sent : sent + room]
        begins_again = self._place.attempt > 1 and not self._has_begun
        if text or begins_again:
            found.append(self._place.model_copy(update={"offset": sent, "text": text}))
        self._on_its_way = sent + len(text)
        return found, Sent(self._version, sent + len(text))

    def was_sent(self, sent: "Sent") -> None:
        """These pieces have arrived."""
        self._has_begun = True
        if sent.version == self._version:
            self._sent = sent.characters
            self._discarded = ""

    def send_again(self) -> None:
        """Nobody has any of this text: it is sent from its beginning."""
        self._sent = self._on_its_way = 0
        self._has_begun = False
        self._discarded = ""
        self._version += 1

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing more to send by now."""
        return not (self._pieces or self._discarded or self._sent < len(self._shown))

    def _read(self, *, is_whole: bool) -> None:
        """Make text of the pieces that have come."""
        if not self._pieces and not is_whole:
            return
        new = "".join(self._pieces)
        self._pieces.clear()
        before = self._shown[: max(self._sent, self._on_its_way)]
        self._shown = self._visible.take(new, is_whole=is_whole)
        if not self._shown.startswith(before):
            self._begin_anew("its beginning was no part of the reply")

    def _begin_anew(self, reason: str) -> None:
        if self._sent or self._on_its_way:
            self._discarded = one_line(redact(reason), 300)
        self._sent = self._on_its_way = 0
        self._version += 1


@dataclass(frozen=True, slots=True)
class Sent:
    """How much of a text has arrived with a signal, and of which version of it."""

    version: int
    characters: int


class Channel:
    """What this worker sends to the stream of one run. `ask_seconds` says how long it waits
    between two questions whether anybody listens.
    """

    def __init__(self, client: Client, run: str, ask_seconds: Callable[[], float]) -> None:
        self.asked_at = float("-inf")
        self._ask_seconds = ask_seconds
        self._stream = client.get_workflow_handle(stream_of(run))
        self._texts: list[LiveText] = []
        self._is_heard = False
        self._sent_at = float("-inf")
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._sender: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There is something to send."""
        if not self._wake.is_set():
            self._wake.set()

    @property
    def is_open(self) -> bool:
        """Whether it has texts."""
        return bool(self._texts)

    def open(self, text: LiveText) -> None:
        """Send this text from now on."""
        self._texts.append(text)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all())
        self.wake()

    async def close(self, text: LiveText) -> None:
        """Send what is left of a text that has come to its end, and forget it. Raises
        nothing of the server's.
        """
        text.is_closed = True
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                while not text.is_sent and await self._send():
                    pass
        except TimeoutError:
            log.warning("the end of a text is not shown: the server does not take it")
        finally:
            self._texts.remove(text)
            self.wake()  # the sender ends with the last text

    async def _send_all(self) -> None:
        """Send pieces as long as there are texts: the first at once, the others in batches."""
        now = asyncio.get_running_loop().time
        while self._texts:
            await self._wake.wait()
            if not self._texts:
                return
            due = self.asked_at + self._ask_seconds()
            if self._is_heard:
                due = self._sent_at + BATCH_SECONDS
            if due > now():
                await asyncio.sleep(due - now())
            self._wake.clear()
            if self._texts:
                await self._send()

    async def _send(self) -> bool:
        """Send one batch, if anybody listens as far as is known; return whether somebody does."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if not self._is_heard:
                if now < self.asked_at + self._ask_seconds():
                    return False
                self.asked_at = now
                self._is_heard = await self._signal([])
                if not self._is_heard:
                    return False
            batch = list[TextPiece]()
            parts = list[tuple[LiveText, Sent]]()
            room = MAX_BATCH_CHARACTERS
            for text in self._texts:
                pieces, sent = text.next_pieces(room)
                for piece in pieces:
                    room -= len(piece.text)
                if pieces:
                    batch += pieces
                    parts.append((text, sent))
            if not batch:
                return True

            self._sent_at = now
            self._is_heard = await self._signal(batch)
            if not self._is_heard:
                # Whoever listens next finds a new stream, which has nothing of these texts.
                self.asked_at = now
                for text in self._texts:
                    text.send_again()
                return False
            for text, sent in parts:
                text.was_sent(sent)
            if not all(text.is_sent for text in self._texts):
                self.wake()
            return True

    async def _signal(self, pieces: list[TextPiece]) -> bool:
        """Send pieces to the stream; return whether there is one that has taken them."""
        batch = PieceBatch(pieces=tuple(pieces))
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._stream.signal(PIECES_SIGNAL, batch)
            return True
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                log.warning("the text of a model is not shown while it comes: %s", error.message)
        except TimeoutError:
            log.warning(
                "the text of a model is not shown while it comes: the server does not answer"
            )
        return False


class LiveTexts:
    """The channels of this worker process, by run."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}

    @asynccontextmanager
    async def writing(self, context: NodeContext, *, answer_only: bool) -> AsyncIterator[LiveText]:
        """Give the text of a model call that this activity makes. It is sent when the block ends,
        and discarded if that fails.
        """
        unit = context.unit
        place = TextPiece(
            node=unit.path, generation=unit.generation, attempt=max(1, context.attempts.number)
        )
        channel = self._channel()
        text = LiveText(channel, place, answer_only=answer_only)
        if channel is None:
            yield text
            return
        channel.open(text)
        try:
            yield text
        except ProviderError as error:
            text.discard(f"the reply cannot be used: {message_of(error)}")
            raise
        finally:
            if not text.is_ended:
                text.discard("the call has failed")
            await channel.close(text)

    def ask_seconds(self) -> float:
        """Return how long the channel of a run waits until it asks again whether anybody listens.
        A run that begins to write asks at once.
        """
        return max(ASK_SECONDS, len(self._channels) / ASKS_A_SECOND)

    def _channel(self) -> Channel | None:
        """Return the channel of the run of this activity; None outside of one."""
        if not activity.in_activity():
            return None
        run = activity.info().workflow_id or ""
        channel = self._channels.get(run)
        if channel is None:
            # A channel remembers when it has asked whether anybody listens; after that
            # time it may be forgotten.
            now = asyncio.get_running_loop().time()
            for name, old in list(self._channels.items()):
                if not old.is_open and now > old.asked_at + ASK_SECONDS:
                    del self._channels[name]
            channel = self._channels[run] = Channel(activity.client(), run, self.ask_seconds)
        return channel
