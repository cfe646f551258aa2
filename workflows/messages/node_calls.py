"""What the activities that run nodes take: one type for each kind of node,
with what that kind needs.
"""

import hashlib
from typing import Self

from pydantic import Field, JsonValue

from sennit.workflows.messages.message import Digest, Message, NodePath, RunName
from sennit.workflows.plan.compile.execution_plan import FRESH_MILLIS
from sennit.workflows.plan.digests import DIGEST_CHARACTERS
from sennit.workflows.plan.language.nodes import Fuse
from sennit.workflows.plan.limits import DEFAULT_WINDOW
from sennit.workflows.plan.scheduling.events import Approval


class NodeCall(Message):
    """Runs nodes of one plan: one, or those of a group."""

    run: str
    plan: Digest
    nodes: tuple[NodePath, ...]
    """Their paths with the generation: `n7`, `n7~2`, `m[17]`."""
    refs: dict[str, Digest] = Field(default_factory=dict)
    """The outputs that they read, by node. The activity binds arguments from there."""
    repeated: tuple[NodePath, ...] = ()
    """Those of the nodes they read that are in a later generation."""
    epoch: int = 1
    """2 after a whole plan has replaced the streamed beginning."""
    origins: tuple[RunName, ...] = ()
    """The runs that this one forks, the latest first. What they have made is taken over."""

    def beside_inputs(self) -> list[JsonValue]:
        """Return what an output depends on beside the plan and what the node reads."""
        return []


class AskingCall(NodeCall):
    """Of a node that may ask a person."""

    room: int = 0
    """About how many characters the question may have; 0 for the usual."""


class BudgetedCall(NodeCall):
    """Of a node that spends the budget, and may read how its inputs ended."""

    left: dict[str, int] = Field(default_factory=dict)
    """What the budget has left for all attempts: `tokens`, `calls`, and `cost` in
    millionths of a dollar.
    """
    lost: dict[str, tuple[str, str | None]] = Field(default_factory=dict)
    """The (status, error) of inputs without a value."""

    def beside_inputs(self) -> list[JsonValue]:
        if not self.lost:
            return []
        return [{name: list(how) for name, how in sorted(self.lost.items())}]


class ProgramNodeCall(AskingCall, BudgetedCall):
    """Makes an advance of a program, or asks whether it may begin."""

    approved: Approval | None = None
    session: Digest = ""
    """Where the script stands; "" for the first advance."""
    ends: dict[str, int] = Field(default_factory=dict)
    """When the calls ended that the script is told of, and the program began for the first
    time, in milliseconds.
    """
    moved: tuple[str, ...] = ()
    """Those calls that end later as the run has it told than by the clocks of their
    workers: forks go by `ends`.
    """
    since: int = 0
    """When a program began again."""
    failed: tuple[str, ...] = ()
    """What the calls are known by that had failed then, or were cancelled, and do not write. Equal
    calls go by those behind them.
    """
    fuse: Fuse = "off"
    """Whether the advance makes short calls itself."""
    usual: dict[str, int] = Field(default_factory=dict)
    """How long calls of tools take, in milliseconds, as far as the run knows that."""
    repeats: bool = False
    """Whether its calls may be ones that the program made when it ran before: then
    the advance makes none.
    """
    after: int = 0
    """When the last call ended that the program was told before this advance."""
    follows: str = ""
    """The call that it follows in one activity, as the script calls it: then
    the advance makes none.
    """
    slots: int = DEFAULT_WINDOW
    """How many activities of the run may be under way at once."""
    rates: dict[str, int] = Field(default_factory=dict)
    """The calls a minute of each model queue, where they are configured."""
    running: dict[str, int] = Field(default_factory=dict)
    """How many model calls of the run are under way, by their queue."""
    limits: dict[str, int] = Field(default_factory=dict)
    """Those of the run's budget, as `left` names them."""
    task_left: dict[str, dict[str, int]] = Field(default_factory=dict)
    """What tasks with a budget of their own have left of it, by their ids."""

    def without_inputs(self) -> Self:
        """Return what the advance's own calls take of it: nothing of what the script is told."""
        told = {
            "session": "",
            "refs": {},
            "lost": {},
            "ends": {},
            "moved": (),
            "repeated": (),
            "since": 0,
            "failed": (),
        }
        return self.model_copy(update=told)


class FollowedCall(NodeCall):
    """Of a node that a program may wait for."""

    then: ProgramNodeCall | None = None
    """The advance that follows in the same activity if the node has a value."""


class ToolNodeCall(FollowedCall, AskingCall):
    """Calls a tool that only reads, or puts together what a write asks a person."""

    tried: int = 0
    """How often activities before this one have attempted it."""
    early: tuple[str, ...] = ()
    """The names of calls that were made early. If one of them was the same
    call, its output is used.
    """


class PrefetchCall(NodeCall):
    """Makes a call early that only reads. With `patterns`, the call of another `tool` is made that
    usually follows: behind the early call `first`, or else behind the node, which has ended, and
    whose own output is among the `refs`. With `arguments`, the node is a model call whose reply has
    asked for the call. Without either it is the call of the node itself.
    """

    name: str
    """What a real call finds the output by: no other call of the run's chain has this name."""
    tool: str
    patterns: Digest = ""
    """The artifact with the mappings of arguments."""
    place: int = 0
    """Of the mapping in it."""
    first: str = ""
    """The name of another early call: its output and its arguments are mapped."""
    arguments: Digest = ""
    """The artifact with what a model has written."""
    alike: tuple[str, ...] = ()
    """The names of other early calls of the tool. If one of them is the same
    call, this one is not made.
    """
    usual: int = 0
    """How long the call usually takes, in milliseconds: no real call waits much longer for it."""
    fresh_for: int = FRESH_MILLIS
    """For how many milliseconds from its beginning a real call may use what it gives."""


class WriteNodeCall(FollowedCall, AskingCall):
    """Calls a tool that writes. It asks, and does nothing, if it needs approval and is
    not what is `approved`.
    """

    approved: Approval | None = None
    resumes: bool = False
    """Whether it goes on after an activity whose worker was lost."""
    looks_up: bool = False
    """Whether nothing is called: the reply is what the ledger of effects has, else
    `NotWritten` or `UnknownOutcome`.
    """


class LlmNodeCall(FollowedCall, BudgetedCall):
    """Calls a model."""

    grant: int = 0
    """The tokens that the budget has reserved for prompt and reply; 0 without a limit. The reply is
    asked for with what the prompt leaves of them.
    """
    is_measured: bool = False
    """Whether the size of its prompt is known from an activity before."""

    early_tools: tuple[str, ...] = ()
    """The tools of whose calls the run is told as soon as the model has written one,
    because it may make it early.
    """
    replans: int = 0
    """How many more times a model whose output is the run's answer may ask for nodes."""
    objections: tuple[str, ...] = ()
    """What was wrong with its last request for nodes."""

    def beside_inputs(self) -> list[JsonValue]:
        beside = super().beside_inputs()
        if self.replans or self.objections:
            beside += [self.replans, list(self.objections)]
        return beside


class JoinNodeCall(FollowedCall):
    """Stores the value of a join or a map. `refs` has only the manifest of that."""


class AgentNodeCall(NodeCall):
    """Says what a sub-agent is started with, then stores its answer."""

    report: JsonValue = None
    """What the sub-agent's run has reported."""

    def beside_inputs(self) -> list[JsonValue]:
        return [self.report]


class AgentsCall(NodeCall):
    """Prepares the runs of several sub-agents of one plan, all that their
    first workflow tasks need.
    """

    inherited: dict[str, JsonValue] = Field(default_factory=dict)
    """What their requests have from that of the run above them."""
    priced: bool = False
    """Whether the budget of the run above them limits what their models cost."""


class AnswersCall(NodeCall):
    """Stores the answers of several sub-agents."""

    reports: tuple[JsonValue, ...] = ()
    """What their runs have reported, in the order of the nodes."""


class GateNodeCall(AskingCall):
    """Puts a gate's question together, or stores what a person has given as
    the output of any node.
    """

    asks: bool = False
    answer: JsonValue = None


class GroupCall(NodeCall):
    """Runs several short calls of tools, with the edges among them."""

    def digest(self) -> str:
        """Return what names this call: its run, plan and epoch, its nodes with their
        generations, and its inputs.
        """
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()[
            :DIGEST_CHARACTERS
        ]
