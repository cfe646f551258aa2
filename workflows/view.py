"""What the query `plan` answers: the run as it stands, a page of nodes at a time."""

from pydantic import Field, JsonValue

from workflows.contracts import Message
from workflows.result import NodeLine, RunStatus, Usage

PAGE = 500


class NodeView(NodeLine):
    """A node with what it needs and the start of its output."""

    needs: tuple[str, ...] = ()
    preview: str = ""
    ref: str | None = Field(default=None, description="digest of the stored output")


class BlockedOn(Message):
    """Something a person must decide: the node, why, and the update to send with an example of its input."""

    node: str
    why: str
    question: str = ""
    update: str
    example: dict[str, JsonValue]
    command: str


class RunView(Message):
    """One page of a run. `counts` has every status with at least one node; `next` is where the next page starts."""

    id: str
    run_id: str
    status: RunStatus
    phase: str
    goal: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    blocked: tuple[BlockedOn, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    next: int | None = None
    usage: Usage = Usage()
    budget: dict[str, dict[str, int | float | None]] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
