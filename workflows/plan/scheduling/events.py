"""What goes into the scheduler and what comes out: plain slotted values, cheap enough for the hot path."""

from dataclasses import dataclass, field
from typing import Any, Literal

from workflows.plan.compile.graph import Graph
from workflows.plan.language.limits import NO_USAGE, Usage

EndStatus = Literal["done", "partial", "failed", "cancelled"]


@dataclass(slots=True)
class ExpansionRequest:
    """What a model asks to add to the plan, checked, where that needs a person's approval.

    `digest` names the request; `nodes` counts what it adds, a map with all the items that it may have. `why`, the
    summaries of the first few in `shown` and the `tokens` they are forecast to take are for the person.
    """

    digest: str
    nodes: int
    why: str = ""
    shown: tuple[str, ...] = ()
    tokens: int = 0
    approved: bool = False


@dataclass(slots=True)
class Outcome:
    """How an attempt series of one node ended: `digest` names its output, or `error` is (type, message).

    `again` puts a group's member back to be started alone; `skipped` says that its condition was false. `usage` is what
    it used, None when nobody knows. `delegated` leaves the node's end to its fallback. With an `expansion_request` the
    node waits for a person's approval. `objections` say what was wrong with its last request when it starts `again`.
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
    objections: tuple[str, ...] = ()


@dataclass(slots=True)
class RunStarted:
    """The plan is here: admit every node that needs nothing."""


@dataclass(slots=True)
class NodeEnded:
    """A started unit ended. One whose generation has passed is ignored."""

    unit: int
    generation: int
    outcome: Outcome


@dataclass(slots=True)
class TimeAdvanced:
    """Time has passed: close what is due."""


@dataclass(slots=True)
class GateAnswered:
    """A person answered a gate."""

    unit: int
    value: Any


@dataclass(slots=True)
class ApprovalDecided:
    """A person approved or rejected a write, or a request for more nodes."""

    unit: int
    approved: bool
    reason: str = ""


@dataclass(slots=True)
class RetryRequested:
    """A person wants a node run again."""

    unit: int


@dataclass(slots=True)
class SkipRequested:
    """A person gives a node up."""

    unit: int


@dataclass(slots=True)
class PlanExtended:
    """The plan has more nodes behind the old ones. `facts` are those of old nodes that only new ones ask for; `more`
    says that further nodes may come, so that the run neither ends nor parks.
    """

    graph: Graph
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    more: bool = False


@dataclass(slots=True)
class BudgetRaised:
    """New limits of the budget, by name; what has no limit here keeps the one it has."""

    limits: dict[str, int]


@dataclass(slots=True)
class CostCharged:
    """Something was spent that no node has: the planner's calls."""

    usage: Usage


@dataclass(slots=True)
class StopRequested:
    """The run is to end now: `partial` when a person finishes it, `cancelled` when it is cancelled."""

    status: EndStatus


Event = (
    RunStarted
    | NodeEnded
    | TimeAdvanced
    | GateAnswered
    | ApprovalDecided
    | RetryRequested
    | SkipRequested
    | PlanExtended
    | BudgetRaised
    | CostCharged
    | StopRequested
)


@dataclass(slots=True)
class Start:
    """Run these units in one activity; one unit as a rule."""

    units: tuple[int, ...]


@dataclass(slots=True)
class Expand:
    """Add what this unit's request asks for, which a person has approved; it runs until that has settled."""

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
