"""Rules of joins: when one closes, with which inputs, and when it cannot close any more; and what its value is.

The value of a join is the outputs of its inputs, and that of a map those of its items, so neither is an activity. The
reference is a *manifest*: the references of those outputs, as JSON, in the place of a digest. Whoever is given one
reads the outputs.

    "<digest>"                                        an output
    [MANIFEST, ...]                                   a list of values: `all` and `quorum`, and a map's
    null                                              in such a list, an item of a map that was skipped
    {"id": .., "value": MANIFEST}                     an input that succeeded: `settled`
    {"id": .., "status": .., "error": ..}             one that has no value
    {"id": .., "status": "running", "error": null}    before a turn of a tool loop: a call that still runs
"""

import json
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.facts import Scalar, fact_of_input
from sennit.workflows.plan.language.nodes import GOES_ON
from sennit.workflows.plan.language.references import parse_path
from sennit.workflows.plan.language.summary import clipped
from sennit.workflows.plan.limits import (
    MAX_CAUSE_CHARACTERS,
    MAX_LOSS_CHARACTERS,
    MAX_LOSSES_CHARACTERS,
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_LEVELS,
    MAX_ONLY_MANIFEST_BYTES,
    MAX_ONLY_READ_NODES,
    MAX_READ_NODES,
)
from sennit.workflows.plan.scheduling.events import Outcome
from sennit.workflows.plan.scheduling.state import (
    BLOCKED,
    PENDING,
    RUNNING,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
    RunState,
)

WAIT, CLOSE, FAIL, LATE = range(4)


def outcome(spec: NodeSpec, open_inputs: int, ok: int, late: bool | None = None, total: int | None = None) -> int:
    """Return WAIT, CLOSE, FAIL or LATE for a join with so many open inputs and inputs with a value. O(1).

    `late` is true when the deadline has just passed, false when it has closed the join before: then a quorum may
    stay short. LATE is the failure of a join that a deadline does not close.
    """
    tolerant = spec.policy in ("settled", "quorum")
    if late and tolerant:
        return CLOSE
    ruling = _rule(spec, open_inputs, ok, len(spec.inputs) if total is None else total)
    if ruling == FAIL and tolerant and late is not None:
        return WAIT if open_inputs else CLOSE
    return LATE if late and ruling == WAIT else ruling


def _rule(spec: NodeSpec, open_inputs: int, ok: int, total: int) -> int:
    if spec.policy == "settled":
        return WAIT if open_inputs else CLOSE
    if spec.policy == "all":
        if ok + open_inputs < total:
            return FAIL
        return WAIT if open_inputs else CLOSE
    wanted = _wanted(spec, total)
    if ok >= wanted:
        return CLOSE
    return FAIL if ok + open_inputs < wanted else WAIT


def _wanted(spec: NodeSpec, total: int) -> int:
    """Return how many inputs with a value `first` or a quorum wants. A quorum below 0 is a share in percent."""
    if spec.policy == "first":
        return 1
    return spec.quorum if spec.quorum >= 0 else max(1, ceil(-spec.quorum * total / 100))


def may_turn_start(state: RunState, join: int) -> bool:
    """Whether a model's next turn may start: so many of the calls of this turn have ended as its plan says, or its time
    is over and one has. Writes, calls that ask a person and those that the model waits for have always ended before.
    """
    spec = state.graph.specs[join]
    for node in spec.inputs:
        if is_open(state.status[node]) and _is_awaited(state, spec, node):
            return False
    calls = spec.inputs[: spec.turn_calls]
    ended = sum(not is_open(state.status[node]) for node in calls)
    if ended == len(calls):
        return True
    if spec.deadline:
        return join in state.past_deadline and ended > 0
    return ended >= spec.quorum


def _is_awaited(state: RunState, spec: NodeSpec, call: int) -> bool:
    called = state.graph.specs[call]
    may_ask = called.approval or state.status[call] == WAITING
    return called.effect == "write" or may_ask or call in spec.awaited


def ended_inputs(state: RunState, join: int) -> tuple[int, ...]:
    """Return the inputs of a join that have ended, however, in `inputs` order."""
    return tuple(node for node in state.graph.specs[join].inputs if not is_open(state.status[node]))


def inputs_of(state: RunState, join: int) -> Sequence[int]:
    """Return the inputs of a join; with `of_items` the items of its map, none before that is open."""
    spec = state.graph.specs[join]
    return state.values(spec.inputs[0]) if spec.of_items and spec.inputs else spec.inputs


def of_items(state: RunState, node: int) -> list[int]:
    """Return the joins of a map's items."""
    return [join for join in state.graph.joins[node] if state.graph.specs[join].of_items]


def total(state: RunState, join: int) -> int:
    """Return how many inputs a join has: of a map that is not open yet, the most that it may have."""
    source = _unopened(state, join)
    return len(inputs_of(state, join)) if source < 0 else state.graph.specs[source].cap


def _unopened(state: RunState, join: int) -> int:
    """Return the map of whose items a join is if it may still open, else -1."""
    spec = state.graph.specs[join]
    source = spec.inputs[0] if spec.of_items and spec.inputs else -1
    return source if source >= 0 and source not in state.items and is_open(state.status[source]) else -1


def count(state: RunState, join: int) -> None:
    """Count a join's open inputs and inputs with a value from scratch."""
    if _unopened(state, join) >= 0:
        state.open_inputs[join], state.ok_inputs[join] = total(state, join), 0
        return
    inputs = inputs_of(state, join)
    state.open_inputs[join] = sum(is_open(state.status[node]) for node in inputs)
    state.ok_inputs[join] = sum(state.status[node] == SUCCEEDED for node in inputs)


def is_open(status: int) -> bool:
    """Whether an input may still get a value without a person's help."""
    return status in (PENDING, RUNNING, WAITING) or status > BLOCKED


def winners(state: RunState, join: int) -> tuple[int, ...]:
    """Return the inputs whose values the join takes, in `inputs` order."""
    spec = state.graph.specs[join]
    ok = [node for node in inputs_of(state, join) if state.status[node] == SUCCEEDED]
    if spec.policy in ("first", "quorum"):
        ok = ok[: _wanted(spec, total(state, join))]
    return tuple(ok)


def reason(state: RunState, join: int) -> str:
    """Return why a join cannot close, as a sentence, with why the first of its inputs has no value."""
    spec = state.graph.specs[join]
    inputs = inputs_of(state, join)
    lost = [node for node in inputs if state.status[node] != SUCCEEDED and not is_open(state.status[node])]
    names = ", ".join(state.path(node) for node in lost[:5]) + (" ..." if len(lost) > 5 else "")
    quorum = f"{_wanted(spec, len(inputs))} inputs"
    wanted = {"all": "every input", "first": "one input", "quorum": quorum}.get(spec.policy, "")
    note = state.notes.get(lost[0]) if lost else None
    cause = f" ({note[0]}: {clipped(note[1], MAX_CAUSE_CHARACTERS)})" if note else ""
    return f"needs a value from {wanted} of {len(inputs)}, but {names or 'there are no more'} gave none{cause}"


def lost(state: RunState, nodes: list[int]) -> dict[int, tuple[str, str | None]]:
    """Return for inputs without a value how each has ended: its status and its error."""
    room = min(MAX_LOSS_CHARACTERS, MAX_LOSSES_CHARACTERS // max(1, len(nodes)))
    return {node: _loss(state, node, room) for node in nodes}


def _loss(state: RunState, node: int, room: int) -> tuple[str, str | None]:
    note = state.notes.get(node)
    status = STATUS_NAMES[state.status[node]]
    error = f"{note[0]}: {note[1]}"[:room] if note else None
    return "skipped" if status == "pending" else status, error


class JoinInput(NamedTuple):
    """An input of a join: with the reference of its value, or with how it has ended without one."""

    name: str
    reference: str
    loss: tuple[str, str | None] | None = None


def parts_of(state: RunState, node: int) -> Sequence[int]:
    """Return the units whose values the value of a join that has closed is made of, or that of a map."""
    return state.values(node) if state.graph.specs[node].kind == "map" else state.chosen.get(node, ())


def makers(state: RunState, units: Iterable[int]) -> list[int]:
    """Return these units, and those that have made the values of joins and maps among them."""
    found = dict.fromkeys(units)
    stack = list(found)
    for unit in stack:  # which grows
        digest, kind = state.digest[unit], state.kind_of(unit)
        is_stored = kind == "map" and digest is not None and not is_manifest(digest)
        made_of = parts_of(state, unit) if kind in ("join", "map") and not is_stored else ()
        stack += [node for node in made_of if node not in found]
        found |= dict.fromkeys(made_of)
    return stack


def manifest(state: RunState, join: int) -> str:
    """Return the reference of the value of a join that has closed, or of a map whose items have ended: of `first`,
    mostly the digest of the value.
    """
    spec, chosen = state.graph.specs[join], parts_of(state, join)
    if spec.kind == "map":
        return _reference([state.digest[item] for item in chosen])
    if spec.policy == "turn":
        return _reference(_turn_ends(state, join))
    taken = dict.fromkeys(chosen)
    nodes = chosen if spec.policy != "settled" else spec.inputs
    losses = lost(state, [node for node in nodes if node not in taken])
    inputs = [JoinInput(state.path(node), state.digest[node] or "", losses.get(node)) for node in nodes]
    return manifest_of(spec.policy, inputs)


def _turn_ends(state: RunState, join: int) -> list[dict[str, Any]]:
    """Return how the calls before a model's turn had ended when that could start, whatever has ended since then."""
    inputs = state.graph.specs[join].inputs
    ended = dict.fromkeys(state.chosen[join])
    losses = lost(state, [node for node in ended if state.status[node] != SUCCEEDED])
    parts: list[dict[str, Any]] = []
    for node in inputs:
        name = state.path(node)
        if node in ended:
            parts.append(_end(JoinInput(name, state.digest[node] or "", losses.get(node))))
        else:
            parts.append({"id": name, "status": GOES_ON, "error": None})
    return parts


def manifest_of(policy: str, inputs: Sequence[JoinInput]) -> str:
    """Return the reference of the value that a join of this policy has of the inputs that it takes."""
    if policy == "settled":
        return _reference(list(map(_end, inputs)))
    values = list(map(_value, inputs))
    return _reference(values[0] if policy == "first" else values)


def _end(taken: JoinInput) -> dict[str, Any]:
    if taken.loss is None:
        return {"id": taken.name, "value": _value(taken)}
    status, error = taken.loss
    return {"id": taken.name, "status": status, "error": error}


def _value(taken: JoinInput) -> Any:
    """Return the part of a join's manifest that stands for the value of an input."""
    return json.loads(taken.reference) if is_manifest(taken.reference) else taken.reference


def _reference(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))


def is_manifest(reference: str) -> bool:
    """Whether the reference of an output is a manifest, and no digest."""
    return reference.startswith(("[", "{"))


def outcome_of(state: RunState, join: int) -> Outcome | None:
    """Return the value of a join that has closed, or of a map whose items have ended; None if an activity has to store
    it, because it is too much to stand in the input of each consumer, or because a condition reads more of it than is
    known of its inputs.
    """
    reference = manifest(state, join)
    facts = _facts(state, join)
    if facts is None or (is_manifest(reference) and not _is_carried(state, join, reference)):
        return None
    return Outcome(reference, sum(state.size[node] for node in parts_of(state, join)), facts, attempts=0)


def _is_carried(state: RunState, join: int, reference: str) -> bool:
    """Whether all that read a join or a map can have its manifest in their inputs."""
    graph, times = state.graph, int(join in state.graph.answering)
    if _levels(json.loads(reference)) > MAX_MANIFEST_LEVELS:
        return False
    beside = [len(graph.answering)] if times else []
    for node in graph.readers(join):
        spec = graph.specs[node]
        beside.append(len(spec.reads) + len(spec.inputs))
        times += max(1, spec.cap)  # each item of a map has it in its input
    if max(beside, default=0) > MAX_READ_NODES:
        return False
    if len(reference) * max(1, times) <= MAX_MANIFEST_BYTES:
        return True
    is_read_once = times == 1 and beside[0] <= MAX_ONLY_READ_NODES and not _may_grow(state)
    return is_read_once and len(reference) <= MAX_ONLY_MANIFEST_BYTES


def _may_grow(state: RunState) -> bool:
    """Whether nodes may come that read what others read already: from a planner, or from a model call."""
    return state.streaming or any(spec.kind == "llm" for spec in state.graph.specs)


def _levels(part: Any) -> int:
    """Return how many lists are in each other in a manifest."""
    if isinstance(part, dict):
        return _levels(part.get("value"))
    return 1 + max(map(_levels, part), default=0) if isinstance(part, list) else 0


def _facts(state: RunState, join: int) -> dict[str, Scalar] | None:
    """Return the facts of a join's or a map's value that conditions, maps and joins read; None if one of a condition
    or a map is not known.
    """
    found: dict[str, Scalar] = {}
    for name, is_read in state.graph.wanted.get(join, {}).items():
        try:
            found[name] = _fact(state, join, name)
        except LookupError:
            if is_read:
                return None
    return found


def _fact(state: RunState, join: int, name: str) -> Scalar:
    """Return a fact of a join's value. Raises LookupError if only the whole value can tell it."""
    spec, chosen = state.graph.specs[join], parts_of(state, join)
    if name.removeprefix("?") == "length" and spec.policy != "first":
        length = len(spec.inputs if spec.policy == "settled" else chosen)
        return True if name.startswith("?") else length
    found = fact_of_input(spec.policy, name) if spec.kind == "join" else None
    if found is None:
        return _fact_of_end(state, spec, name)
    place, inner = found
    node = spec.inputs[place] if spec.policy == "settled" else chosen[place]
    if node not in chosen:
        raise LookupError(name)
    fact: Scalar = state.facts.get(node, {})[inner]
    return fact


def _fact_of_end(state: RunState, spec: NodeSpec, name: str) -> Scalar:
    """Return the fact that tells how an input of a settled join has ended. Raises LookupError for any other."""
    match parse_path(name):
        case (int(place), "status") if spec.policy == "settled":
            return lost(state, [spec.inputs[place]])[spec.inputs[place]][0]
    raise LookupError(name)
