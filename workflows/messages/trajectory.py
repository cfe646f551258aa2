"""What a run that is over tells of its calls, for those who learn from runs."""

from typing import Literal

from pydantic import Field

from sennit.workflows.messages.contracts import Call
from sennit.workflows.messages.message import Digest, Message, NodePath
from sennit.workflows.plan.learning.limits import MAX_NOTED_CALLS

NOTE_RUN_TYPE = "NoteRun"
"""The workflow that has a run noted, when the run itself is over."""


RunEnd = Literal["done", "partial", "failed"]
"""How a run ends that is noted: one that was cancelled is not."""


class CallEnded(Message):
    """One call of a tool or a model, as the run knows it."""

    node: NodePath
    plan: Digest = ""
    """Where the node is written, if it is not in the run's own plan."""
    began: int
    """In milliseconds by the server's time."""
    millis: int = 0
    took: int = 0
    """How long the early call took whose output this one has taken over; 0 without one."""
    attempts: int = 1
    tokens: int = 0
    error: str = ""
    """The type of its own failure."""
    ref: Digest = ""
    """The reference to its output."""
    is_made: bool = False
    """Whether a model or a script has made the call while it ran: its arguments are values
    then, and no references.
    """


class NoteCall(Message):
    """Asks to note what a run has called, beside the artifacts and for all
    later runs of its tenant.
    """

    run: str
    """What its artifacts lie below."""
    run_context: Digest
    plan: Digest
    tenant: str = ""
    status: RunEnd
    ended: int
    """In milliseconds by the server's time."""
    calls: tuple[CallEnded, ...] = Field(max_length=MAX_NOTED_CALLS)
    left_out: int = 0
    """Calls beyond the most that are noted."""


class Noted(Message):
    """How many calls were noted; none if nobody learns, or the artifacts are gone."""

    calls: int = 0


NOTE_RUN = Call("note_run", NoteCall, Noted)
