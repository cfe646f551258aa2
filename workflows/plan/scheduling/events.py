"""What goes into the scheduler and what comes out: plain slotted values, cheap enough for the hot path."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from workflows.plan.compile.graph import Graph, NodeSpec, Quoted
from workflows.plan.language.limits import NO_USAGE, Usage

TOKEN_CHARACTERS = 12
EndStatus = Literal["done", "partial", "failed", "cancelled"]


@dataclass(slots=True)
class ExpansionRequest:
    """What a model asks to add to the plan. It has been checked and waits for a person's approval.

    `digest` names the request. `nodes` counts what it adds; a map counts with all the items it may have. The person
    sees `why`, the first few `summaries`, and the forecast of `tokens`.
    """

    digest: str
    nodes: int
    why: str = ""
    summaries: tuple[str, ...] = ()
    tokens: int = 0
    approved: bool = False


class Question(NamedTuple):
    """What a person is asked about a unit, with every value in place.

    A write has the `digest` of its tool and arguments; `target` is the digest of what it would replace, "" where there
    is nothing, or nothing is known of it.
    """

    text: str
    digest: str = ""
    target: str = ""

    @property
    def token(self) -> str:
        """What a person names to approve this and nothing else, short enough to be typed."""
        return "-".join(part[:TOKEN_CHARACTERS] for part in (self.digest, self.target) if part)


class Approval(NamedTuple):
    """A person's word on a write: for which digests, with which `args` in place of its own, and `by` whom.

    `written` is the digest of what has run, where `args` have changed it.
    """

    digest: str
    target: str
    args: dict[str, Any]
    by: str = ""
    written: str = ""

    def covers(self, asked: Question) -> bool:
        """Whether the approval holds for this: the same arguments, and the same thing to replace."""
        return (self.digest, self.target) == (asked.digest, asked.target)


@dataclass(slots=True)
class Outcome:
    """How one node ended, after all its attempts: `digest` names its output, or `error` is (type, message).

    `again` puts a group's member back, to be started alone; `skipped` says that its condition was false. `usage` is
    None when it is not known. `delegated` leaves the node's end to its fallback. With an `expansion_request` or a
    `question` the node has not ended, but waits for a person. When it starts `again`, `objections` say what was wrong
    with its last request. `written` is the digest of arguments that a person has changed. `taken_over` says that a run
    which this one forks has made it.
    """

    digest: str | None = None
    size: int = 0
    facts: dict[str, Any] | None = None
    error: tuple[str, str] | None = None
    attempts: int = 1
    skipped: bool = False
    again: bool = False
    delegated: bool = False
    usage: Usage | None = NO_USAGE
    expansion_request: ExpansionRequest | None = None
    question: Question | None = None
    objections: tuple[str, ...] = ()
    written: str = ""
    taken_over: bool = False


@dataclass(slots=True)
class RunStarted:
    """The plan is known: admit every node without dependencies."""


@dataclass(slots=True)
class NodeEnded:
    """A started unit ended. Ignored if the unit has a newer generation."""

    unit: int
    generation: int
    outcome: Outcome


@dataclass(slots=True)
class TimeAdvanced:
    """Time has passed: close what is due."""


@dataclass(slots=True)
class Answered:
    """A person answered a gate, or gave the result of a call that has failed."""

    unit: int
    value: Any


@dataclass(slots=True)
class ApprovalDecided:
    """A person approved or rejected a write, or a request for more nodes; of a map or a tool loop, all that wait.

    `args` take the place of a write's own arguments.
    """

    unit: int
    approved: bool
    reason: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    by: str = ""


@dataclass(slots=True)
class RetryRequested:
    """A person asks to run a node again, and with it others that block the run."""

    unit: int
    others: tuple[int, ...] = ()


@dataclass(slots=True)
class SkipRequested:
    """A person skips a node."""

    unit: int


@dataclass(slots=True)
class PlanExtended:
    """The plan has more nodes after the old ones. `facts` are facts of old nodes that only new nodes ask for. `more`
    says that further nodes may come, so the run neither ends nor parks.
    """

    graph: Graph
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    more: bool = False


@dataclass(slots=True)
class NodesAppended:
    """A step of a program has ended and adds nodes: its calls, and the next step, which comes last and takes over its
    end.
    """

    specs: list[NodeSpec]
    step: NodeEnded


@dataclass(slots=True)
class ProgramEdited:
    """A program has another script, which is on a page of its own, and runs again from its start."""

    unit: int
    page: str = ""
    script: str = ""
    quote: Quoted | None = None


@dataclass(slots=True)
class BudgetRaised:
    """New limits of the budget by name; the others stay."""

    limits: dict[str, int]


@dataclass(slots=True)
class CostCharged:
    """Usage outside the nodes: the planner's calls."""

    usage: Usage


@dataclass(slots=True)
class StopRequested:
    """The run is to end now: `partial` if a person finishes it, `cancelled` if it is cancelled."""

    status: EndStatus


Event = (
    RunStarted
    | NodeEnded
    | TimeAdvanced
    | Answered
    | ApprovalDecided
    | RetryRequested
    | SkipRequested
    | PlanExtended
    | NodesAppended
    | ProgramEdited
    | BudgetRaised
    | CostCharged
    | StopRequested
)


@dataclass(slots=True)
class Start:
    """Run these units in one activity; one unit as a rule. With `asks` only put together what it asks a person.

    `step` is the step of a program that waits for nothing but this unit, and follows in the same activity.
    """

    units: tuple[int, ...]
    asks: bool = False
    step: int = -1


@dataclass(slots=True)
class Expand:
    """Add the nodes of this unit's approved request. The unit runs until that has settled."""

    unit: int


@dataclass(slots=True)
class Cancel:
    """Stop the activity that runs this unit in this generation."""

    unit: int
    generation: int


@dataclass(slots=True)
class End:
    """The run is over."""

    status: EndStatus


Decision = Start | Expand | Cancel | End
