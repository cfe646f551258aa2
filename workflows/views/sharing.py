"""Which units share an activity, and why others do not."""

from sennit.workflows.limits import MAX_EXPLAINED
from sennit.workflows.plan.fusion.rules import why_alone
from sennit.workflows.plan.scheduling.ready import reads_long_manifests
from sennit.workflows.plan.scheduling.state import RunState

_JOIN = "no activity, unless its value must be stored: what reads a join loads the outputs of its inputs"


def explained(state: RunState) -> dict[str, str]:
    """Return of the first 500 nodes whether they may share an activity, and if not why. A map speaks for its items."""
    nodes = range(min(len(state.graph.specs), MAX_EXPLAINED))
    return {state.path(node): _reason(state, node) for node in nodes if state.graph.specs[node].is_shown}


def _reason(state: RunState, node: int) -> str:
    spec, timings = state.graph.specs[node], state.timings
    if spec.kind == "join":
        return _JOIN
    why = "it has failed beside others" if node in state.alone else ""
    why = why or ("it reads joins of many inputs" if reads_long_manifests(state, node) else "")
    reason = why_alone(state.graph, node, spec, state.graph.locks[node]) or why or timings.why_alone(spec)
    if reason:
        return f"alone: {reason}"
    millis = timings.millis(spec)
    took = "nobody knows how long" if millis is None else f"{millis:,} ms"
    source = "declared" if spec.typical == millis else "measured"
    return f"may share an activity: `{spec.tool}` takes {took}{'' if millis is None else f', {source}'}"
