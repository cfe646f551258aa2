"""What a node runs with, and what it makes."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import Binder, Unit, Written, written_at
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox.errors import WorkspaceRefused
from sennit.workflows.messages.contracts import ProgramPage
from sennit.workflows.messages.node_calls import (
    AskingCall,
    NodeCall,
    ProgramNodeCall,
    WriteNodeCall,
)
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.nodes import AgentCall, ModelCall, Node, ToolCall
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.language.workspaces import as_workspace
from sennit.workflows.plan.scheduling.events import Approval, TaskNews


@dataclass(frozen=True, slots=True)
class NodeContext:
    """One node, or one item of a map, and what it runs with. `earlier_key` is the idempotency key
    of a write that was begun in a run which this one forks.
    """

    checked: StoredPlan
    unit: Unit
    call: NodeCall
    binder: Binder
    run_prefix: str
    attempts: Attempts
    earlier_key: str = ""
    written: Written = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", written_at(self.checked, self.unit))

    @property
    def node(self) -> Node:
        """The node; of an item's chain the map with only that node of it."""
        return self.written.node

    @property
    def work(self) -> ToolCall | ModelCall | AgentCall | None:
        """The call to make; None for a node that only puts values together."""
        return self.written.work

    @property
    def spec(self) -> NodeSpec:
        """What the scheduler knows of the node."""
        return self.written.spec

    def arguments(self, work: ToolCall) -> dict[str, Any]:
        """Return what a tool is called with: its arguments bound, some of them as a
        person has changed them.

        Raises BindError.
        """
        arguments = dict(self.binder.bound(work.args))
        if self.approved is not None:
            arguments |= self.approved.args
        return arguments

    def workspace(self, work: ModelCall | AgentCall) -> JsonValue:
        """Return the workspace that a model or a sub-agent works in. Raises WorkspaceRefused for
        any other value, and BindError.
        """
        value: JsonValue = self.binder.bound(work.workspace)
        if as_workspace(value) is None:
            way = (
                "attach a folder with --attach NAME=FOLDER, or refer to what another call has left"
            )
            raise WorkspaceRefused(
                f"`workspace`: {as_text(work.workspace)[:200]} is no workspace; {way}"
            )
        return value

    @property
    def approved(self) -> Approval | None:
        """A person's word on the write, or on the program."""
        if not isinstance(self.call, WriteNodeCall | ProgramNodeCall):
            return None
        return self.call.approved

    @property
    def room(self) -> int:
        """About how many characters a question may have; 0 for the usual."""
        if not isinstance(self.call, AskingCall):
            return 0
        return self.call.room

    @property
    def seconds(self) -> float:
        """How long one attempt may take."""
        return self.spec.limit(item=self.unit.item is not None) / 1000

    @property
    def idempotency_key(self) -> str:
        """The key of a write: the same for all attempts of one generation, after a reset too. That
        of a program's call is also the same when the program is run again.
        """
        return self.earlier_key or f"{self.call.run}/{self.key}/{self.unit.generation}"

    @property
    def key(self) -> str:
        """What a node is known by in all its generations: a program's call by its key, any
        other node by its path.
        """
        return self.checked.keys.get(self.unit.id, self.unit.path)

    @property
    def wanted(self) -> tuple[list[str], bool]:
        """The facts that the plan asks of the node's output, and whether the
        output is the plan's answer.
        """
        if self.unit.item is not None:
            return [], False
        facts = self.checked.wanted.get(self.unit.id, [])
        return facts, self.checked.answering == self.unit.id


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """A node's output, with usage where a model was called, what a tool warns of, and how long its
    call took. With `more` it is a request for more nodes; what a script has called is in `page`. A
    program has come to its end `at` the time of the last result that it was told. `log` is what a
    script has logged, `tasks` what it tells of its tasks, and `span` when the work on it began and
    ended, in milliseconds. `early` names the call that it was taken over from.
    """

    output: Any
    usage: Usage = NO_USAGE
    more: Literal["", "replan", "calls", "program"] = ""
    page: ProgramPage | None = None
    warnings: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    tasks: tuple[TaskNews, ...] = ()
    millis: int = 0
    at: int = 0
    span: tuple[int, int] = (0, 0)
    early: str = ""
