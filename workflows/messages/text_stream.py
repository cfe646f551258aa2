"""How the text of a model reaches a client while the model writes: through a workflow
beside the run, `RunStream`.

A client that listens starts it. Workers signal it pieces of text, clients poll it by an update. The
history of the run itself has none of this.
"""

from typing import Final

from pydantic import Field

from sennit.workflows.limits import MAX_BATCH_CHARACTERS
from sennit.workflows.messages.message import Message

STREAM_TYPE: Final = "RunStream"
PIECES_SIGNAL: Final = "pieces"
POLL_UPDATE: Final = "poll"


def stream_of(run: str) -> str:
    """Return the workflow id of the stream of a run, which no sub-agent can have: ids
    of nodes have no hyphen.
    """
    return f"{run}.text-stream"


class TextPiece(Message):
    """A piece of the text that one attempt of a node writes. `offset` is how many characters of
    that text come before.

    With `discarded`, the reason, all that this attempt has written is no output; what comes
    next begins anew, at 0.
    """

    node: str
    generation: int = 1
    attempt: int = 1
    offset: int = 0
    text: str = Field(default="", max_length=MAX_BATCH_CHARACTERS)
    discarded: str = ""


class PieceBatch(Message):
    """What a worker has of one run's texts. An empty batch only asks whether anybody listens."""

    pieces: tuple[TextPiece, ...] = ()


class StreamItem(TextPiece):
    """A piece as the stream keeps it. Positions rise, also over the end of a stream and
    the start of another one.
    """

    position: int


class StreamPoll(Message):
    """Asks for the items after a position. Unless it `waits`, the answer may be empty."""

    after: int = 0
    waits: bool = True


class StreamPage(Message):
    """Items in their order, and the position from which the next poll goes on."""

    items: tuple[StreamItem, ...] = ()
    position: int


class TextState(Message):
    """How far the text of a node's latest attempt has come."""

    node: str
    generation: int
    attempt: int
    length: int


class StreamState(Message):
    """What a stream carries over when it continues as new."""

    position: int = 0
    items: tuple[StreamItem, ...] = ()
    texts: tuple[TextState, ...] = ()
