"""What goes into the scheduler and what comes out: plain slotted values, cheap
enough for the hot path.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec, Quoted
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import NO_USAGE, Usage

TOKEN_CHARACTERS = 20
"""80 bits: nobody finds another write with the token of one that a person has approved."""
EndStatus = Literal["done", "partial", "failed", "cancelled"]


class Question(NamedTuple):
    """What a person is asked about a unit, with every value in place.

    A write has the `digest` of its tool and arguments; `target` is the digest of what it would
    replace, "" where there is nothing, or nothing is known of it. `arguments` are those that its
    tool takes, each with the JSON types that it may have, none for any; None if the tool does
    not say which it takes.

    A `rule` of the operator may have decided already, by a `ruling`: then no person is asked.
    """

    text: str
    digest: str = ""
    target: str = ""
    arguments: dict[str, list[str]] | None = None
    rule: str = ""
    ruling: Literal["", "allow", "refuse"] = ""

    def token(self) -> str:
        """Return what a person names to approve this and nothing else, short enough to be typed."""
        return "-".join(part[:TOKEN_CHARACTERS] for part in (self.digest, self.target) if part)


class Approval(NamedTuple):
    """A person's word on a write: for which digests, with which `args` in place of its own, and
    `by` whom. Or that of the operator's `rule`.

    `written` is the digest of what has run, where `args` have changed it.
    """

    digest: str
    target: str
    args: dict[str, Any]
    by: str = ""
    written: str = ""
    rule: str = ""

    def covers(self, asked: Question) -> bool:
        """Whether the approval holds for this: the same arguments, and the same thing to replace. A
        rule decides by the arguments alone.
        """
        if self.rule:
            return self.digest == asked.digest
        return (self.digest, self.target) == (asked.digest, asked.target)


WriteStatus = Literal["in flight", "made", "not made", "unknown"]


class Effect(NamedTuple):
    """What became of a write, where the status of its node does not tell: it was
    cut off, or nobody knows.

    `generation` is that of its node. A sub-agent's writes are told by their paths `below` its node.
    """

    generation: int
    status: WriteStatus
    below: str = ""


TaskStatus = Literal["running", "succeeded", "failed", "cancelled"]
TASK_ENDS: tuple[TaskStatus, ...] = ("succeeded", "failed", "cancelled")


class TaskNews(NamedTuple):
    """What a program tells of a task of its script, for people to see: that it runs, or how it has
    ended, and when, in milliseconds.
    """

    id: str
    status: TaskStatus
    at: int
    error: str = ""


@dataclass(slots=True)
class Outcome:
    """How one node ended, after all its attempts. With a `question` it has not ended,
    but waits for a person.
    """

    digest: str | None = None
    """The reference to its output."""
    size: int = 0
    facts: dict[str, Any] | None = None
    error: tuple[str, str] | None = None
    """Its type and message."""
    attempts: int = 1
    skipped: bool = False
    """Whether its condition was false."""
    again: bool = False
    """Whether it is put back; with an error it starts alone, because it
    has failed beside others.
    """
    delegated: bool = False
    """Whether its successor, or what its script has called, runs before it ends."""
    usage: Usage | None = NO_USAGE
    """None if nobody knows it."""
    paid: Usage = NO_USAGE
    """What the run has paid for it that this one forks."""
    question: Question | None = None
    objections: tuple[str, ...] = ()
    """What was wrong with its last request, if it starts again."""
    written: str = ""
    """The arguments of a write, by their digest, if a person has changed them."""
    taken_over: bool = False
    """Whether a run that this one forks has made it."""
    at: int = 0
    """When it ended, in milliseconds, if a script has read that."""
    effects: tuple[tuple[str, WriteStatus], ...] | None = ()
    """What became of a sub-agent's writes, by their paths; None if it could not say it."""
    millis: int = 0
    """How long a tool's call took by itself."""
    span: tuple[int, int] = (0, 0)
    """When the call itself began and ended, in milliseconds; zeros if nobody has said so."""
    needs: int = 0
    """The tokens of a prompt for which its grant was too small. It starts
    again with a larger one.
    """
    tasks: tuple[TaskNews, ...] = ()
    """Of a program: what it tells of tasks, in order."""


@dataclass(slots=True)
class RunStarted:
    """The plan is known: admit every node without dependencies. `more` says that
    its planner still writes.
    """

    more: bool = False


@dataclass(slots=True)
class PlanHeld:
    """A person is asked about the plan before any of it starts: `RunStarted` then says that they
    have approved it. The question has the plan's forecast and its digest. With a `graph`, that
    takes the place of the plan so far.
    """

    question: Question
    graph: Graph | None = None


@dataclass(slots=True)
class PlanRejected:
    """A person has rejected the plan that they were asked about. A planner writes another one
    meanwhile, and nothing of this one starts.
    """


@dataclass(slots=True)
class NodeEnded:
    """A started unit ended. Ignored if the unit has a newer generation. With `more` others have
    ended at the same time: nothing starts before another event has told of the last of them.
    """

    unit: int
    generation: int
    outcome: Outcome
    more: bool = False


@dataclass(slots=True)
class TimeAdvanced:
    """Time has passed: close what was due until then, in milliseconds; None: until now."""

    until: int | None = None


@dataclass(slots=True)
class Answered:
    """A person answered a gate, or gave the result of a call that has failed."""

    unit: int
    value: Any


@dataclass(slots=True)
class ApprovalDecided:
    """A person approved or rejected a write, or a request for more nodes; of a map or a
    tool loop, all that wait.

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
class NodesAppended:
    """The plan goes on with these nodes, and with another answer if it has one. They name
    others by their units.

    `ended` is the end of the node that has asked for them. If it is delegated, they are the calls
    of a tool loop, and its next turn, which comes last and takes over its end. Without `ended`
    they come from a planner, and `more` says that it still writes, so the run neither ends nor
    parks. `facts` are those of older nodes that only these ask for; `fallbacks` say that of older
    nodes' fallback values.
    """

    page: ExecutionPlan
    ended: NodeEnded | None = None
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    fallbacks: dict[int, dict[str, Any]] = field(default_factory=dict)
    more: bool = False


@dataclass(slots=True)
class ProgramAdvanced:
    """The script of a program has made `calls`, and waits; `ended` is the end of the
    activity in which it did.

    It waits for the units `waits`, among which those behind the nodes of the run are places of
    `calls`, and for all for which it waited before but the `past` ones. It has `given_up` calls, by
    their ids. `ends` are those of calls that the activity has made itself, by their ids, in order.
    The next advance goes on from the stored `session`; with an `end` the script has come to its end
    in this activity, and that is how.
    """

    ended: NodeEnded
    calls: list[NodeSpec]
    session: str
    waits: tuple[int, ...] = ()
    past: tuple[int, ...] = ()
    given_up: tuple[str, ...] = ()
    ends: tuple[tuple[str, Outcome], ...] = ()
    end: Outcome | None = None


@dataclass(slots=True)
class PlanReplaced:
    """The run starts on another plan from its beginning. What the old plan had
    reserved counts as spent.
    """

    graph: Graph


@dataclass(slots=True)
class InputsRead:
    """A program goes on only now: its script is told of all calls that have ended meanwhile."""

    unit: int


@dataclass(slots=True)
class DrainStarted:
    """Nothing more is started, so that the run can continue as new: for so many
    milliseconds, or for good.
    """

    millis: int | None = None


@dataclass(slots=True)
class DrainEnded:
    """The run does not continue as new yet: nodes may start again."""


@dataclass(slots=True)
class ProgramEdited:
    """A program has another script, which is on a page of its own, and
    runs again from its start.
    """

    unit: int
    page: str = ""
    script: str = ""
    quote: Quoted | None = None


@dataclass(slots=True)
class BudgetRaised:
    """New limits of the budget by name; the others stay. With `millis` the run ends after so much
    time from now. The `ceilings` are what a person may raise limits to at most, from now on.
    """

    limits: dict[str, int]
    millis: int | None = None
    ceilings: dict[str, int] | None = None


class Written(NamedTuple):
    """A write that the ledger of effects knows of: by the path of its node and by the call's key,
    in a generation, and by its path `below` the node if a sub-agent makes it.
    """

    path: str
    key: str
    generation: int
    status: WriteStatus
    below: str = ""


@dataclass(slots=True)
class LedgerRead:
    """The ledger of effects has been read after a reset: it knows writes that the
    run may have forgotten.
    """

    writes: tuple[Written, ...]


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
    | PlanHeld
    | PlanRejected
    | NodeEnded
    | TimeAdvanced
    | Answered
    | ApprovalDecided
    | RetryRequested
    | SkipRequested
    | NodesAppended
    | ProgramAdvanced
    | PlanReplaced
    | InputsRead
    | DrainStarted
    | DrainEnded
    | ProgramEdited
    | BudgetRaised
    | CostCharged
    | LedgerRead
    | StopRequested
)


@dataclass(slots=True)
class Start:
    """Run these units in one activity; one unit as a rule."""

    units: tuple[int, ...]
    asks: bool = False
    """Whether only to put together what it asks a person."""
    following: int = -1
    """The program whose script waits for nothing but this unit, and goes
    on in the same activity.
    """
    limits: dict[str, int] | None = None
    """Of a sub-agent: its part of the budget."""


@dataclass(slots=True)
class Cancel:
    """Stop the activity that runs this unit in this generation. Of a write, its
    end is still to be told.
    """

    unit: int
    generation: int


@dataclass(slots=True)
class LookUp:
    """Look in the ledger of effects what became of a write that was cut off in this generation. It
    ends once more, with its result, `NotWritten` or `UnknownOutcome`.
    """

    unit: int
    generation: int


@dataclass(slots=True)
class End:
    """The run is over: nothing of it is in flight."""

    status: EndStatus


Decision = Start | Cancel | LookUp | End
