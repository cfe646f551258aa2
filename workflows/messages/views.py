"""What the query `plan` answers: the run as it stands, a page of nodes at a time."""

from pydantic import Field

from workflows.messages.contracts import Message
from workflows.messages.result import BlockedOn, NodeLine, RunStatus, UsageReport

PAGE = 500
MOST_PASSED_ON = 20
"""What a sub-agent waits for and its parent shows, at most."""


class NodeView(NodeLine):
    """A node with what it needs and the start of its output."""

    needs: tuple[str, ...] = ()
    preview: str = ""
    ref: str | None = Field(default=None, description="digest of the stored output")


class SubagentView(Message):
    """A sub-agent's report to its parent: what it waits for, and whether that blocks the whole run.

    `name` is its node with the generation; `run` is the first run of its chain.
    """

    name: str
    run: str
    is_blocked: bool = False
    blocked: tuple[BlockedOn, ...] = Field(default=(), max_length=MOST_PASSED_ON)


class RunView(Message):
    """One page of a run. `counts` has every status with at least one node; `next` is where the next page starts.

    While the phase is `draining`, nothing starts. `waits_for` has the first 20 nodes that must end before the run
    continues as new.
    """

    id: str
    run_id: str
    status: RunStatus
    phase: str
    progress: str = Field(default="", description="how preparing or planning gets on, as only a client knows")
    goal: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    blocked: tuple[BlockedOn, ...] = ()
    waits_for: tuple[str, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    next: int | None = None
    usage: UsageReport = UsageReport()
    budget: dict[str, dict[str, int | float | None]] = Field(default_factory=dict)
    quote: str = Field(default="", description="what its programs can cost, from the least to the most")
    warnings: tuple[str, ...] = ()


class ScriptLine(Message):
    """What the calls of one line of a script came to: `calls` by status, and `tasks` that it started, with all that
    they took.

    `duration_ms` adds up calls that ran side by side. Of `usage`, what is no longer known is left out. Line 0 stands
    for calls whose line is not known.
    """

    line: int
    calls: dict[str, int] = Field(default_factory=dict)
    tasks: dict[str, int] = Field(default_factory=dict)
    taken_over: int = 0
    duration_ms: int = 0
    usage: UsageReport = UsageReport()


class ScriptView(Message):
    """A program: its script as it is now, and the lines of it that have called something."""

    node: str
    script: str
    lines: tuple[ScriptLine, ...] = ()
