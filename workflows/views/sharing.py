"""Which units share an activity, or are made by an advance of a program that calls them,
and why others do not.
"""

from sennit.workflows.limits import MAX_EXPLAINED
from sennit.workflows.messages.queues import TOOLS
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.fusion.rules import why_alone, why_not_in_place
from sennit.workflows.plan.scheduling.ready import reads_long_manifests
from sennit.workflows.plan.scheduling.state import RunState

_JOIN = (
    "no activity, unless its value must be stored: what reads a join loads the outputs of its "
    "inputs"
)

_TASK = "no activity: its program's script runs it"
_BESIDE = (
    "its program waited for a longer call or a sleep too, was run again, went by what the run that "
    "it forks has made, or had no budget left for its advance to make it"
)


def explained(state: RunState) -> dict[str, str]:
    """Return of the first 500 nodes whether they may share an activity, or an advance of their
    program makes them, and if not why. A map speaks for its items.
    """
    reasons: dict[str, str] = {}
    for node, spec in enumerate(state.graph.specs[:MAX_EXPLAINED]):
        path = state.path(node)
        reasons[path] = _reason(state, node, spec)
    return reasons


def _reason(state: RunState, node: int, spec: NodeSpec) -> str:
    if spec.kind == "join":
        return _JOIN
    if spec.kind == "task":
        return _TASK
    is_of_program = state.graph.caller_of(node) >= 0
    reason = _why_alone(state, node, spec, is_of_program)
    if reason and not spec.in_place:
        return f"alone: {reason}"
    how = "made by an advance of its program" if is_of_program else "may share an activity"
    millis = state.timings.millis(spec)
    if millis is None:
        return f"{how}: `{spec.tool}` takes nobody knows how long"
    source = "declared" if spec.typical == millis else "measured"
    return f"{how}: `{spec.tool}` takes {millis:,} ms, {source}"


def _why_alone(state: RunState, node: int, spec: NodeSpec, is_of_program: bool) -> str:
    """Return why a node has an activity of its own; "" if it need not have one. A rule
    of its kind says most.
    """
    rule = why_alone(state.graph, node, spec, spec.locks)
    if is_of_program:
        rule = why_not_in_place(spec, TOOLS)
    if rule:
        return rule
    if state.units[node].alone:
        return "it has failed beside others"
    if reads_long_manifests(state, node):
        return "it reads joins or maps of many values"
    slow = state.timings.why_alone(spec)
    if slow:
        return slow
    return _BESIDE if is_of_program else ""
