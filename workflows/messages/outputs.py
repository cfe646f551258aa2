"""How a client reads what a run has stored: it asks a worker, and the worker asks the run
where each output lies.
"""

from typing import Annotated, Final

from pydantic import Field

from sennit.workflows.limits import MAX_OUTPUTS
from sennit.workflows.messages.contracts import Call, NodeError
from sennit.workflows.messages.message import Digest, Message
from sennit.workflows.plan.digests import REFERENCE

NO_SUCH_NODE, NO_SUCH_PATH, NOT_ENDED, NO_OUTPUT, GONE = (
    "NoSuchNode",
    "NoSuchPath",
    "NotEnded",
    "NoOutput",
    "Gone",
)
"""Why there is no output to read."""
PLAN: Final = "$plan"
"""What stands in the place of a node for the plan that the run works on, as it is stored."""
CheckedReference = Annotated[Digest, Field(pattern=rf"^({REFERENCE}|[\[{{].*)?$")]
"""A reference that any workflow may have answered: one of another form could be a path out of the
store. Whoever reads a manifest looks at each reference in it.
"""


class OutputsCall(Message):
    """Asks for outputs of the run with the id `workflow`, by the paths of their nodes; ""
    is its answer, if that was cut, and `PLAN` its plan. Without a `run_id` it is the
    latest run of that id. `path` leads into each output. Of the first, what stands before
    the byte `start` is left out.
    """

    workflow: str
    run_id: str = ""
    nodes: tuple[str, ...] = Field(max_length=MAX_OUTPUTS)
    path: str = ""
    start: int = Field(default=0, ge=0)


class OutputPart(Message):
    """A piece of an output, or why there is none. `body` is JSON from some byte on, packed by
    zlib, in base64; the whole has `size` bytes. Another `digest` than before is another output, or
    one in which another worker masks other secrets. `is_masked` says that the worker has masked a
    secret that was stored.
    """

    digest: Digest = ""
    size: int = 0
    body: str = ""
    is_masked: bool = False
    error: NodeError | None = None


class OutputsReply(Message):
    """As many outputs as fit, in the order of the call; at least a piece of the first.
    Only the last may be cut.
    """

    parts: tuple[OutputPart, ...] = ()


class OutputPlace(Message):
    """Where the output of a node lies."""

    ref: CheckedReference = ""
    error: NodeError | None = None


class OutputPlaces(Message):
    """What the query `outputs` answers: a place for each node, in the run's
    own part of the store.
    """

    places: tuple[OutputPlace, ...]


OUTPUTS: Final = Call("outputs", OutputsCall, OutputsReply)
