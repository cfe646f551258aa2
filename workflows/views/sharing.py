"""Which units share an activity, or are made by the step of a program that calls them, and why others do not."""

from sennit.workflows.limits import MAX_EXPLAINED
from sennit.workflows.messages.queues import TOOLS
from sennit.workflows.plan.fusion.rules import why_alone, why_not_in_place
from sennit.workflows.plan.scheduling.ready import reads_long_manifests
from sennit.workflows.plan.scheduling.state import RunState

_JOIN = "no activity, unless its value must be stored: what reads a join loads the outputs of its inputs"

_BEGUN = "begun by its program's step, with the short calls that it made before it waited for something else"
_BESIDE = (
    "its program waited for a longer call or a sleep too, was run again, went by what the run that it forks has made, "
    "or had no budget left for its step to make it"
)


def explained(state: RunState) -> dict[str, str]:
    """Return of the first 500 nodes whether they may share an activity, or their program's step makes them, and if not
    why. A map speaks for its items.
    """
    nodes = range(min(len(state.graph.specs), MAX_EXPLAINED))
    return {state.path(node): _reason(state, node) for node in nodes if state.graph.specs[node].is_shown}


def _reason(state: RunState, node: int) -> str:
    spec, timings = state.graph.specs[node], state.timings
    if spec.kind == "join":
        return _JOIN
    is_of_program = spec.maker >= 0 and state.graph.specs[spec.maker].kind == "program"
    if is_of_program and spec.kind == "program" and spec.successor >= 0:
        is_begun = state.graph.specs[spec.successor].page == spec.page
        return _BEGUN if is_begun else f"alone: {_BESIDE}"
    why = "it has failed beside others" if node in state.alone else ""
    why = why or ("it reads joins or maps of many values" if reads_long_manifests(state, node) else "")
    rule = why_not_in_place(spec, TOOLS) if is_of_program else why_alone(state.graph, node, spec, spec.locks)
    reason = rule or why or timings.why_alone(spec) or (_BESIDE if is_of_program else "")
    if reason and not spec.in_place:
        return f"alone: {reason}"
    millis = timings.millis(spec)
    took = "nobody knows how long" if millis is None else f"{millis:,} ms"
    source = "declared" if spec.typical == millis else "measured"
    how = "made by its program's step" if is_of_program else "may share an activity"
    return f"{how}: `{spec.tool}` takes {took}{'' if millis is None else f', {source}'}"
