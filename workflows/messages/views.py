"""What the query `plan` answers: the run as it stands, a page of nodes at a time."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from sennit.workflows.limits import MAX_PASSED_ON
from sennit.workflows.messages.message import Message
from sennit.workflows.messages.result import BlockedOn, NodeLine, RunStatus, UsageReport, WriteLine
from sennit.workflows.plan.language.limits import NO_USAGE, Usage

ENDED_STATUSES = ("succeeded", "failed", "handled", "skipped", "cancelled")
"""The statuses of a node that has ended, as people see them."""


def ended_of(counts: Mapping[str, int]) -> int:
    """Return how many nodes have ended, from the number of nodes in each status."""
    return sum(counts.get(status, 0) for status in ENDED_STATUSES)


class NodeView(NodeLine):
    """A node with what it needs and the start of its output. One that runs in an activity with
    others has its `seat`: the first of these, and its place among them.
    """

    needs: tuple[str, ...] = ()
    preview: str = ""
    ref: str | None = Field(
        default=None, description="reference to the output; of a long one the beginning"
    )
    seat: tuple[str, int] | None = None


class SubagentView(Message):
    """A sub-agent's report to its parent: what it waits for, and whether that blocks the whole run.

    `name` is its node with the generation; `run` is the first run of its chain. With `writes` the
    run is over, because it was cancelled, and they are all that it has written, or may have;
    `usage` is what it has used.
    """

    name: str
    run: str
    is_blocked: bool = False
    blocked: tuple[BlockedOn, ...] = Field(default=(), max_length=MAX_PASSED_ON)
    writes: tuple[WriteLine, ...] | None = None
    usage: Usage = NO_USAGE


class RunView(Message):
    """One page of a run. `counts` has every status with at least one node; `next` is
    where the next page starts.

    While the phase is `draining`, nothing starts. `waits_for` has the first 20 nodes that must end
    before the run continues as new.
    """

    id: str
    run_id: str
    status: RunStatus
    phase: str
    progress: str = Field(
        default="",
        description=(
            "how preparing or planning gets on, as only a client knows, or why the run is queued"
        ),
    )
    goal: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    blocked: tuple[BlockedOn, ...] = ()
    waits_for: tuple[str, ...] = ()
    writes: tuple[WriteLine, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    next: int | None = None
    usage: UsageReport = UsageReport()
    budget: dict[str, dict[str, int | float | None]] = Field(default_factory=dict)
    quote: str = Field(
        default="", description="what its programs can cost, from the least to the most"
    )
    warnings: tuple[str, ...] = ()
    log: tuple[str, ...] = Field(
        default=(), description="what its programs have logged, the last of it if it is long"
    )


EventKind = Literal[
    "planned",
    "started",
    "progress",
    "text",
    "discarded",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
    "asked",
    "answered",
    "lost_worker",
    "reset",
    "ended",
]


class RunEvent(Message):
    """Something that has happened in a run, with its number and the time as
    seconds of the Unix clock.

    `node` and `generation` say to what. `text` is what it does (started), the beginning of
    its output (succeeded), why (failed, skipped, cancelled), the question (asked), how far it
    is (progress) or the problem (ended). `asks` is the question with the update that answers
    it; `update` and `by` are what has answered it and who, or which `rule` of the operator;
    `digest` is that of the write which this is about, as it was shown. `status` is how the
    run has ended, or `replaced` for a plan in the place of one that had begun; `nodes` is how
    many a plan has, or adds.

    `progress` and `lost_worker` are what the server knows of a node while it runs, and no history
    keeps them. They come once, to whoever listens, with the number of the event before.

    `text` is what a model writes for an `attempt` of a node, piece by piece; `offset` is how many
    characters of it come before. `discarded` says why what an attempt has written is no output;
    what it writes then begins at 0 again. `position` is from where a reader goes on after either.
    """

    number: int
    at: float
    kind: EventKind
    node: str = ""
    generation: int = 1
    text: str = ""
    nodes: int = 0
    asks: BlockedOn | None = None
    update: str = ""
    by: str = ""
    rule: str = ""
    digest: str = ""
    status: RunStatus | Literal["replaced"] | None = None
    attempt: int = 0
    offset: int = 0
    position: int = 0


class EventPage(Message):
    """A page of events. `first` is the first number of this run of the chain, `following` the one
    that comes after all that it has, and `previous` the run before it, if it was continued. `ended`
    says that its last event is its end.
    """

    first: int
    following: int
    previous: str = ""
    ended: bool = False
    events: tuple[RunEvent, ...] = ()


class ScriptLine(Message):
    """What the calls of one line of a script came to: `calls` by status, and `tasks` that it
    started, with all that they took.

    `duration_ms` adds up calls that ran side by side. Of `usage`, what is no longer known is
    left out. Line 0 stands for calls whose line is not known. `error` is what the script itself
    has raised on the line.
    """

    line: int
    calls: dict[str, int] = Field(default_factory=dict)
    tasks: dict[str, int] = Field(default_factory=dict)
    taken_over: int = 0
    duration_ms: int = 0
    usage: UsageReport = UsageReport()
    error: str = ""


class ScriptView(Message):
    """A program: its script as it is now, and the lines of it that have called something."""

    node: str
    script: str
    lines: tuple[ScriptLine, ...] = ()
