"""Content keys: what a node's outcome is stored under, so that equal work is found again
instead of done again.
"""

from typing import Any

from sennit.activities.nodes.binding import Unit, Written, written_at
from sennit.activities.storage.artifacts import key_of
from sennit.activities.storage.run_context import StoredPlan
from sennit.workflows.messages.node_calls import NodeCall
from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.language.nodes import (
    AgentCall,
    ModelCall,
    Node,
    ProgramNode,
    ToolCall,
)


def content_key(
    checked: StoredPlan, unit: Unit, refs: dict[str, str], call: NodeCall, version: str
) -> str:
    """Return the key of a node's outcome. Calls share one only if they read the same outputs
    in the same generation.

    A call that changes nothing is known by what the plan writes: its id does not matter, nor which
    plan it is in. A program's call is known by the key that its page has for it, and by what it has
    been told since. Everything else is known by its path: items of maps, turns of a plan's tool
    loops, joiners. Writes are in the effect ledger.

    Calls of another run have the same key only if that run has the same documents and models.
    """
    plan_part = written_at(checked, unit)
    node, work = plan_part.node, plan_part.work
    kind = [unit.generation, version, _serves(checked, work)]

    # A call that a program makes.
    if unit.id in checked.keys and work is not None and work.kind != "agent":
        bound = _bound(plan_part, checked, refs)
        return key_of([checked.keys[unit.id], *kind, bound, _in_loop(work)])

    # A call of the plan that others share.
    run = checked.asked  # after a reset of its parent, a sub-agent may have another goal
    if unit.item is None and _is_shareable(node, checked):
        asked: list[Any] = []
        if node.kind == "llm":
            asked = run
        bound = _bound(plan_part, checked, refs)
        return key_of([checked.call_key(node.id), *kind, bound, asked])

    # Everything else, by its path.
    read: dict[str, str] = {}
    for name in sorted(refs):
        if _is_read(name, unit):
            read[name] = digest_in(refs[name])
    written: Any = _written(node)
    if work is not None and work.kind != "agent":
        written = plan_part.call
    extra: list[Any] = call.beside_inputs()
    if node.kind == "map" and unit.item is not None:
        extra += [node.over, node.as_]
    return key_of([unit.path, *kind, written, read, extra, run])


def _is_read(name: str, unit: Unit) -> bool:
    """Whether an output is for this node: those of items that run in one
    activity with it are not.
    """
    item = name.partition("[")[2]
    return unit.item is None or not item or item.startswith(f"{unit.item}]")


def result_key(checked: StoredPlan, unit: Unit, generation: int) -> str:
    """Return what the result of a program's call is noted under, for runs that fork this one,
    if another node or a person gives it: a gate's answer, a sub-agent's, and that of a model
    which has called tools.
    """
    key = host_key(checked.keys[unit.id])
    serves = _serves(checked, written_at(checked, unit).work)
    return key_of([key, generation, serves, "result"])


def host_key(key: str) -> str:
    """Return the key of a program's call from that of a turn, or of a tool
    call, in its tool loop.
    """
    return key.partition(".")[0]


def _serves(checked: StoredPlan, work: ToolCall | ModelCall | AgentCall | None) -> Any:
    """Return what serves a call, as far as it is the run's: its documents, or models
    and settings of the role.
    """
    if work is None:
        return None
    if work.kind == "llm":
        return _model_serving(checked, work)
    if work.kind != "agent":
        return checked.docs
    serves: list[Any] = [checked.docs, checked.models]
    if checked.settings or checked.instructions:
        by_role = {
            role: settings.model_dump(mode="json") for role, settings in checked.settings.items()
        }
        serves.append(by_role)
    if checked.instructions:
        serves.append(checked.instructions)
    return serves


def _model_serving(checked: StoredPlan, work: ModelCall) -> Any:
    """Return the model of a call and, where some are set, the settings of its role."""
    model = work.model or checked.models.get(work.role)
    settings = checked.settings.get(work.role)
    if settings is not None:
        return [model, settings.model_dump(mode="json"), checked.instructions]
    if checked.instructions:
        return [model, None, checked.instructions]
    return model


def _in_loop(work: ToolCall | ModelCall) -> Any:
    """Return what a call in a tool loop is known by beside its place in the loop."""
    if work.kind == "tool":
        return [work.tool, work.args]
    if work.further_turn is None:
        return None
    return work.further_turn.model_dump(mode="json", include={"transcript", "refused"})


def _written(node: Node) -> Any:
    """Return what tells a node that calls nothing from others at the same place."""
    if not isinstance(node, ProgramNode):
        return node.kind
    return node.model_dump(mode="json", include={"kind", "script", "arguments"})


def _is_shareable(node: Node, checked: StoredPlan) -> bool:
    """Whether a node is a call that changes nothing, and that adds nothing to the plan."""
    if node.kind == "llm":
        return not (node.adds_nodes or node.inputs or node.further_turn)
    return node.kind == "tool" and not checked.spec(node.id).is_successor


def _bound(written: Written, checked: StoredPlan, refs: dict[str, str]) -> list[Any]:
    """Return what the node's references stand for, in the order written: digests of outputs,
    or the run's own texts.
    """
    run_values = {"input": checked.inputs, "goal": checked.goal}
    bound: list[Any] = []
    for name in written.names:
        if name in run_values:
            bound.append(run_values[name])
        else:
            bound.append(digest_in(refs.get(name, "")))
    return bound
