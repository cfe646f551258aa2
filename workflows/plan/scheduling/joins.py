"""Rules of joins: when one closes, with which inputs, and when it cannot close any more."""

from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language.summary import clipped
from workflows.plan.scheduling.state import BLOCKED, PENDING, RUNNING, SUCCEEDED, WAITING, RunState

WAIT, CLOSE, FAIL, LATE = range(4)
CAUSE_CHARACTERS = 200


def outcome(spec: NodeSpec, open_inputs: int, ok: int, late: bool | None = None) -> int:
    """Return WAIT, CLOSE, FAIL or LATE for a join with so many open inputs and inputs with a value. O(1).

    `late` is true when the deadline has just passed, false when it has closed the join before: then a quorum may
    stay short. LATE is the failure of a join that a deadline does not close.
    """
    tolerant = spec.policy in ("settled", "quorum")
    if late and tolerant:
        return CLOSE
    ruling = _rule(spec, open_inputs, ok)
    if ruling == FAIL and tolerant and late is not None:
        return WAIT if open_inputs else CLOSE
    return LATE if late and ruling == WAIT else ruling


def _rule(spec: NodeSpec, open_inputs: int, ok: int) -> int:
    total = len(spec.inputs)
    if spec.policy == "any":
        return CLOSE if open_inputs < total or not total else WAIT
    if spec.policy == "settled":
        return WAIT if open_inputs else CLOSE
    if spec.policy == "all":
        if ok + open_inputs < total:
            return FAIL
        return WAIT if open_inputs else CLOSE
    wanted = 1 if spec.policy == "first" else spec.quorum
    if ok >= wanted:
        return CLOSE
    return FAIL if ok + open_inputs < wanted else WAIT


def count(state: RunState, join: int) -> None:
    """Count a join's open inputs and inputs with a value from scratch."""
    inputs = state.graph.specs[join].inputs
    state.open_inputs[join] = sum(is_open(state.status[node]) for node in inputs)
    state.ok_inputs[join] = sum(state.status[node] == SUCCEEDED for node in inputs)


def is_open(status: int) -> bool:
    """Whether an input may still get a value without a person's help."""
    return status in (PENDING, RUNNING, WAITING) or status > BLOCKED


def winners(state: RunState, join: int) -> tuple[int, ...]:
    """Return the inputs whose values the join takes, in `inputs` order; of a program's step, all that have ended."""
    spec = state.graph.specs[join]
    if spec.policy == "any":
        return tuple(node for node in spec.inputs if not is_open(state.status[node]))
    ok = [node for node in spec.inputs if state.status[node] == SUCCEEDED]
    if spec.policy == "first":
        return tuple(ok[:1])
    return tuple(ok[: spec.quorum] if spec.policy == "quorum" else ok)


def take_ended(state: RunState, step: int) -> None:
    """Have a step of a program that starts now read all inputs that have ended by now."""
    if state.graph.specs[step].policy == "any":
        state.chosen[step] = winners(state, step)


def reason(state: RunState, join: int) -> str:
    """Return why a join cannot close, as a sentence, with why the first of its inputs has no value."""
    spec = state.graph.specs[join]
    lost = [node for node in spec.inputs if state.status[node] != SUCCEEDED and not is_open(state.status[node])]
    names = ", ".join(state.graph.specs[node].id for node in lost[:5]) + (" ..." if len(lost) > 5 else "")
    wanted = {"all": "every input", "first": "one input", "quorum": f"{spec.quorum} inputs"}.get(spec.policy, "")
    note = state.notes.get(lost[0]) if lost else None
    cause = f" ({note[0]}: {clipped(note[1], CAUSE_CHARACTERS)})" if note else ""
    return f"needs a value from {wanted} of {len(spec.inputs)}, but {names} gave none{cause}"
