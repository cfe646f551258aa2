"""What a model call is given of other nodes' outputs: which, by what names, and
where each of them is.
"""

from dataclasses import dataclass
from typing import Any

from sennit.activities.nodes.context import NodeContext
from sennit.activities.prompts.outputs import Result, results_of, untrusted_values, values_or_errors
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import JoinNode, ModelCall, Node
from sennit.workflows.plan.language.references import parse_reference


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """`values` are what stands in fences in the prompt, by name, and `places` the references to
    those that are values.

    `ended` is how nodes have ended, for a prompt that tells so; `cited` are all results that an
    answer may cite: those, and what the calls of the last turn have brought.
    """

    values: dict[str, Any]
    places: dict[str, str]
    ended: dict[str, Result]
    cited: dict[str, Result]


def joins(work: ModelCall) -> bool:
    """Whether the call answers as a joiner, with evidence."""
    return work.role == "joiner" and work.output_schema is None


def prompt_inputs(context: NodeContext, work: ModelCall) -> PromptInputs:
    """Return what the call is given. Raises BindError."""
    node = context.node
    input_names = dependencies.inputs_of(node)
    values: dict[str, Any] = {}
    if joins(work):
        inputs = context.binder.inputs(node)
        turn = work.further_turn
        loop = None
        if turn is not None and turn.results:
            loop = parse_reference(turn.results)
        gathered = _gathered(context, node)
        cited = results_of(inputs, gathered)
        results = dict(inputs)
        if loop is not None:
            results.pop(loop.node, None)
        ended = results_of(results, gathered)
    else:
        cited = ended = {}
        if input_names:
            own = {node.id: context.binder.lookup(node.id)}
            cited = ended = results_of(own, {node.id: input_names})
        values = untrusted_values(work.prompt, context.binder.lookup)
    places = {name: f"${{{name}}}" for name in values}
    succeeded = [result for result in ended.values() if result.status == "succeeded"]
    for result in succeeded:
        places[result.node] = result.place
        if result.node in input_names:
            places[result.node] = f"${result.node}"
    return PromptInputs({**values, **values_or_errors(ended)}, places, ended, cited)


def _gathered(context: NodeContext, node: Node) -> dict[str, list[str]]:
    """Return the nodes whose ends a name stands for, by name: settled
    joins, and the call itself.
    """
    gathered: dict[str, list[str]] = {}
    for planned in context.checked.plan.nodes:
        if isinstance(planned, JoinNode) and planned.policy == "settled":
            gathered[planned.id] = dependencies.inputs_of(planned)
    gathered[node.id] = dependencies.inputs_of(node)
    return gathered
