"""The texts of a run as its stream keeps them: the newest pieces in order, each once."""

from collections import deque
from dataclasses import dataclass

from sennit.workflows.limits import MAX_BATCH_CHARACTERS, MAX_LOG_CHARACTERS, MAX_STREAMED_TEXTS
from sennit.workflows.messages.text_stream import (
    StreamItem,
    StreamPage,
    StreamState,
    TextPiece,
    TextState,
)

PIECE_CHARACTERS = 100
"""What a piece counts beside its text."""


@dataclass(slots=True)
class _Text:
    """The text of a node's latest attempt."""

    generation: int
    attempt: int
    length: int = 0

    @property
    def rank(self) -> tuple[int, int]:
        """A later attempt has a higher one."""
        return self.generation, self.attempt


class TextLog:
    """Takes pieces from workers, and gives them to whoever polls.

    A worker that is not sure sends a piece again, and the text has it once. When a later attempt
    begins, the text of the one before is discarded: its worker was lost, or somebody has started
    the node again. Pieces that a lost worker sends after that are left out.
    """

    def __init__(self, state: StreamState) -> None:
        self.position = state.position
        self._items: deque[StreamItem] = deque()
        self._characters = 0
        self._texts: dict[str, _Text] = {}
        for item in state.items:
            self._keep(item)
        for text in state.texts:
            self._texts[text.node] = _Text(text.generation, text.attempt, text.length)

    def take(self, piece: TextPiece) -> None:
        """Add what is new in a piece."""
        text = self._texts.get(piece.node)
        rank = (piece.generation, piece.attempt)
        if text is not None and rank < text.rank:
            return
        if text is None or rank > text.rank:
            text = self._begin(piece, text)
        if piece.discarded:
            self._discard(piece.node, text, piece.discarded)
            return

        # A piece that was sent twice overlaps with what is there.
        known = max(0, text.length - piece.offset)
        new = piece.text[known:]
        if new:
            offset = piece.offset + known
            text.length = offset + len(new)
            self._append(piece.model_copy(update={"text": new, "offset": offset}))

    def after(self, position: int) -> StreamPage:
        """Return the next items after a position, as many as fit into a page."""
        found: list[StreamItem] = []
        room = MAX_BATCH_CHARACTERS
        for item in self._items:
            if item.position <= position:
                continue
            room -= _size(item)
            if found and room < 0:
                break
            found.append(item)
        if not found:
            return StreamPage(position=self.position)
        return StreamPage(items=tuple(found), position=found[-1].position)

    def state(self) -> StreamState:
        """Return what the next run of the stream begins with."""
        texts = []
        for node, text in self._texts.items():
            begun = TextState(
                node=node, generation=text.generation, attempt=text.attempt, length=text.length
            )
            texts.append(begun)
        return StreamState(position=self.position, items=tuple(self._items), texts=tuple(texts))

    def _begin(self, piece: TextPiece, before: _Text | None) -> _Text:
        """Begin the text of a later attempt, and discard the one before."""
        if before is not None:
            why = "the node was started again"
            if before.generation == piece.generation:
                why = f"attempt {piece.attempt} begins anew"
            self._discard(piece.node, before, why)
        # A text that begins stands behind all others, so that the oldest are forgotten first.
        self._texts.pop(piece.node, None)
        text = self._texts[piece.node] = _Text(piece.generation, piece.attempt)
        if len(self._texts) > MAX_STREAMED_TEXTS:
            del self._texts[next(iter(self._texts))]
        return text

    def _discard(self, node: str, text: _Text, why: str) -> None:
        if not text.length:
            return
        text.length = 0
        self._append(
            TextPiece(node=node, generation=text.generation, attempt=text.attempt, discarded=why)
        )

    def _append(self, piece: TextPiece) -> None:
        self.position += 1
        self._keep(StreamItem(**piece.model_dump(), position=self.position))

    def _keep(self, item: StreamItem) -> None:
        """Keep an item in the place of the oldest ones."""
        self._items.append(item)
        self._characters += _size(item)
        while self._characters > MAX_LOG_CHARACTERS:
            self._characters -= _size(self._items.popleft())


def _size(item: StreamItem) -> int:
    return len(item.text) + PIECE_CHARACTERS
