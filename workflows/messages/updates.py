"""The updates a person may send to a run: one JSON object each, whose shape is checked here.

Whether an update fits the run's state is decided in `workflows/run/update_rules.py`, which makes it
an event of the scheduler. No update is half applied.
"""

import re
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, Field, JsonValue

from sennit.workflows.messages.request import parse_object
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.language.text import format_value
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.plan.limits import MAX_SCRIPT_CHARACTERS

_UNIT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}(\[[0-9]{1,5}\](\.[A-Za-z][A-Za-z0-9_]{0,39})?)?\Z")


class InvalidUpdate(Exception):
    """An update that is refused: the message names the field, the problem and an example."""


class RunIsOver(InvalidUpdate):
    """An update of a run that has ended."""


class Update(Frozen):
    """Base of all updates: `name` as it is sent, `about` as the UI shows it,
    `example` as it may be pasted.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    example: ClassVar[str]


def _unit(name: str) -> str:
    if not _UNIT.match(name):
        raise ValueError(
            f"{format_value(name)} is not a node; write its id such as n7, or m[17] for an item "
            "of m"
        )
    return name


_REPEAT_EFFECT: Any = Field(
    default=False, strict=True, description="needed to repeat what was written, or may have been"
)


class NodeUpdate(Update):
    """Base of the updates of one node, or of one item of a map."""

    node: Annotated[str, AfterValidator(_unit)] = Field(
        description="node id, or map[17] for one item of a map"
    )


class RetryNode(NodeUpdate):
    """Runs a node again with a new generation; what was made of its old output runs again
    if the output changes.

    Without a node it tries again what blocks the run: its planning, or all nodes whose
    failure is in the way.
    """

    name = "retry_node"
    about = 'Run a node again: {"node": "n7"}; or what blocks the run: {}'
    example = '{"node": "n7"}'
    node: Annotated[str, AfterValidator(_unit)] = Field(
        default="", description="node id; without it, what blocks"
    )
    repeat_effect: bool = _REPEAT_EFFECT


class SkipNode(NodeUpdate):
    """Skips a node and the nodes that need it; joins go on without it."""

    name = "skip_node"
    about = 'Give up a node that has not succeeded: {"node": "n7"}'
    example = '{"node": "n7"}'


class Answer(NodeUpdate):
    """Answers a gate, or gives the result of a tool, a model or a sub-agent that has
    failed, which is not called.
    """

    name = "answer"
    about = 'Answer a gate, or in the place of a call that failed: {"node": "n7", "value": "yes"}'
    example = '{"node": "n7", "value": "yes"}'
    value: JsonValue
    repeat_effect: bool = _REPEAT_EFFECT


_OR_PLAN: Any = Field(
    default="", description="node id; without it, the plan that waits for approval"
)


class Approve(NodeUpdate):
    """Lets a write run with the values that were shown, or without a node the plan.

    With `digest` it is refused if the write is not the one that was shown. `node` may be a map, or
    a model that calls tools: then all its writes that wait are approved together, and `digest` is
    needed. `args` take the place of a write's own arguments.
    """

    name = "approve"
    about = 'Let a waiting write go on: {"node": "n7", "digest": "3f2a9c01b4d7e85a6c21"}'
    example = '{"node": "n7", "digest": "3f2a9c01b4d7e85a6c21"}'
    node: Annotated[str, AfterValidator(_unit)] = _OR_PLAN
    digest: str = Field(default="", max_length=100, description="which write was shown")
    args: dict[str, JsonValue] = Field(
        default_factory=dict, max_length=50, description="changed arguments"
    )
    by: str = Field(default="", max_length=100, description="who decides")


class Reject(NodeUpdate):
    """Refuses a write: it fails with type Rejected and the reason. Without a node it rejects the
    plan that waits for approval and has this `digest`: its planner writes another one, as the
    reason says, and without a reason the run ends.
    """

    name = "reject"
    about = 'Refuse a waiting write: {"node": "n7", "reason": "wrong file"}'
    example = '{"node": "n7", "reason": "wrong file"}'
    node: Annotated[str, AfterValidator(_unit)] = _OR_PLAN
    reason: str = Field(default="", max_length=500)
    digest: str = Field(default="", max_length=100, description="which plan was shown")
    by: str = Field(default="", max_length=100, description="who decides")


class EditProgram(NodeUpdate):
    """Gives a program another script. It runs again from its start; calls that it makes
    again keep their results.
    """

    name = "edit_program"
    about = 'Give a program another script: {"script": "async def main():\\n    return 1"}'
    example = '{"script": "async def main():\\n    return 1"}'
    node: Annotated[str, AfterValidator(_unit)] = Field(
        default="main", min_length=1, description="id of the program"
    )
    script: str = Field(max_length=MAX_SCRIPT_CHARACTERS, description="the whole script")
    repeat_writes: bool = Field(
        default=False, strict=True, description="do not ask about writes of the old script"
    )


class EditPlan(Update):
    """Puts another plan in the place of the one that waits for approval. It is checked first,
    and asked about again.
    """

    name = "edit_plan"
    about = (
        'Replace the plan that waits: {"plan": {"nodes": [{"id":"a", "kind":"llm", '
        '"prompt":"Hi"}]}}'
    )
    example = '{"plan": {"nodes": [{"id":"a", "kind":"llm", "prompt":"Hi"}]}}'
    plan: dict[str, JsonValue] = Field(
        description="the whole plan, as `sennit plan export` writes it"
    )
    digest: str = Field(
        default="",
        max_length=100,
        description="which plan it replaces; without one, any that waits",
    )


class RaiseBudget(Update, Limits):
    """Sets new limits for the run's budget; limits that are absent stay. Not for the time
    limit, which ends the run.
    """

    name = "raise_budget"
    about = 'Set a higher limit: {"tokens": 20000}; also calls, nodes, cost_usd'
    example = '{"tokens": 20000}'
    time: None = None


class Finish(Update):
    """Ends the run now as partial, with the results so far."""

    name = "finish"
    about = "End the run now with what there is: {}"
    example = "{}"
    reason: str = Field(default="", max_length=500)


U = TypeVar("U", bound=Update)

UPDATES: tuple[type[Update], ...] = (
    RetryNode,
    SkipNode,
    Answer,
    Approve,
    Reject,
    EditPlan,
    EditProgram,
    RaiseBudget,
    Finish,
)


def parse_update(model: type[U], request: Any, *more: Any) -> U:
    """Return the update in `request`; raises InvalidUpdate for any other shape. `finish`
    may come without input.
    """
    fields = {} if request is None and model is Finish else request
    try:
        return parse_object(model, (fields, *more), model.name, model.example, f"{model.name}: ")
    except ValueError as error:
        raise InvalidUpdate(str(error)) from None
