"""Rules of joins: when one closes, with which inputs, and when it cannot close any more;
and what its value is.

A new policy begins here, in `_rule` and `winners`. Plans name it in `Policy` and `JoinNode`
(`language/nodes.py`), and `join_policy` of the compiler hands it on.

The value of a join is the outputs of its inputs, and that of a map those of its items, so neither
is an activity. The reference is a *manifest*: the references of those outputs, as JSON, in the
place of a digest. Whoever is given one reads the outputs.

    "<digest>"                                 an output
    [MANIFEST, ...]                            a list of values: `all` and `quorum`, and a map's
    null                                       in such a list, an item of a map that was skipped
    {"id": .., "value": MANIFEST}              an input that succeeded: `settled`
    {"id": .., "status": .., "error": ..}      one that has no value
    {"id": .., "status": "running", "error": null}
                                               before a turn of a tool loop: a call that runs
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
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    DELEGATED,
    EXPANDED,
    IN_DOUBT,
    PENDING,
    RUNNING,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
    Status,
)

WAIT, CLOSE, FAIL, LATE = range(4)

_OPEN = (PENDING, RUNNING, WAITING, DELEGATED, EXPANDED, IN_DOUBT)
"""The statuses of an input that may still get a value without a person's help."""
_MAX_NAMED_INPUTS = 5
"""How many inputs without a value the failure of a join names."""

Loss = tuple[str, str | None]
"""How an input without a value has ended: its status and its error."""


# When a join closes.


def outcome(spec: NodeSpec, open_inputs: int, ok: int, late: bool | None, total: int) -> int:
    """Return WAIT, CLOSE, FAIL or LATE for a join with so many open inputs and
    inputs with a value. O(1).

    `late` is true when the deadline has just passed, false when it has closed the join before: then
    a quorum may stay short. LATE is the failure of a join that a deadline does not close.
    """
    is_tolerant = spec.policy in ("settled", "quorum")
    if late and is_tolerant:
        return CLOSE
    ruling = _rule(spec, open_inputs, ok, total)
    if ruling == FAIL and is_tolerant and late is not None:
        return _close_behind_all(open_inputs)
    if ruling == WAIT and late:
        return LATE
    return ruling


def _rule(spec: NodeSpec, open_inputs: int, ok: int, total: int) -> int:
    """Return WAIT, CLOSE or FAIL for a join, whatever its deadline."""
    if spec.policy == "settled":
        return _close_behind_all(open_inputs)
    if spec.policy == "all":
        if ok + open_inputs < total:
            return FAIL
        return _close_behind_all(open_inputs)
    wanted = _wanted(spec, total)
    if ok >= wanted:
        return CLOSE
    if ok + open_inputs < wanted:
        return FAIL
    return WAIT


def _close_behind_all(open_inputs: int) -> int:
    """Return CLOSE for a join whose inputs have all ended, and WAIT for any other."""
    return WAIT if open_inputs else CLOSE


def _wanted(spec: NodeSpec, total: int) -> int:
    """Return how many inputs with a value `first` or a quorum wants. A quorum below 0
    is a share in percent.
    """
    if spec.policy == "first":
        return 1
    if spec.quorum >= 0:
        return spec.quorum
    share = -spec.quorum * total / 100
    return max(1, ceil(share))


def may_turn_start(state: RunState, join: int) -> bool:
    """Whether a model's next turn may start: so many of the calls of this turn have ended as its
    plan says, or its time is over and one has. Writes, calls that ask a person and those that the
    model waits for have always ended before.
    """
    spec = state.graph.specs[join]
    for node in spec.inputs:
        if is_open(state.units[node].status) and _is_awaited(state, spec, node):
            return False

    # The inputs behind the calls of this turn are calls of earlier turns, and do not count.
    calls = spec.inputs[: spec.turn_calls]
    ended = 0
    for call in calls:
        if not is_open(state.units[call].status):
            ended += 1
    if ended == len(calls):
        return True
    if spec.deadline:
        return state.units[join].past_deadline is not None and ended > 0
    return ended >= spec.quorum


def _is_awaited(state: RunState, spec: NodeSpec, call: int) -> bool:
    """Whether a model's next turn cannot start before this call has ended."""
    called = state.graph.specs[call]
    asks_person = called.approval or state.units[call].status == WAITING
    return called.effect == "write" or asks_person or call in spec.awaited


# The inputs of a join.


def ended_inputs(state: RunState, join: int) -> tuple[int, ...]:
    """Return the inputs of a join that have ended, however, in `inputs` order."""
    inputs = state.graph.specs[join].inputs
    ended = [node for node in inputs if not is_open(state.units[node].status)]
    return tuple(ended)


def inputs_of(state: RunState, join: int) -> Sequence[int]:
    """Return the inputs of a join; with `of_items` the items of its map,
    none before that is open.
    """
    spec = state.graph.specs[join]
    source = _map_joined(spec)
    if source is None:
        return spec.inputs
    return state.values(source)


def _map_joined(spec: NodeSpec) -> int | None:
    """Return the map whose items a join takes; None if it takes nodes."""
    if spec.of_items and spec.inputs:
        return spec.inputs[0]
    return None


def of_items(state: RunState, node: int) -> list[int]:
    """Return the joins of a map's items."""
    specs = state.graph.specs
    return [join for join in state.graph.joins[node] if specs[join].of_items]


def total(state: RunState, join: int) -> int:
    """Return how many inputs a join has: of a map that is not open yet, the
    most that it may have.
    """
    source = _unopened_map(state, join)
    if source is None:
        return len(inputs_of(state, join))
    return state.graph.specs[source].cap


def _unopened_map(state: RunState, join: int) -> int | None:
    """Return the map whose items a join takes if that is not open and may still open, else None."""
    source = _map_joined(state.graph.specs[join])
    if source is None or source in state.items:
        return None
    if not is_open(state.units[source].status):
        return None
    return source


def count(state: RunState, join: int) -> None:
    """Count a join's open inputs and inputs with a value from scratch."""
    if _unopened_map(state, join) is not None:
        state.units[join].open_inputs = total(state, join)
        state.units[join].ok_inputs = 0
        return
    open_inputs = ok_inputs = 0
    for node in inputs_of(state, join):
        status = state.units[node].status
        if is_open(status):
            open_inputs += 1
        elif status == SUCCEEDED:
            ok_inputs += 1
    state.units[join].open_inputs = open_inputs
    state.units[join].ok_inputs = ok_inputs


def is_open(status: Status) -> bool:
    """Whether an input may still get a value without a person's help."""
    return status in _OPEN


def winners(state: RunState, join: int) -> tuple[int, ...]:
    """Return the inputs whose values the join takes, in `inputs` order."""
    spec = state.graph.specs[join]
    ok = [node for node in inputs_of(state, join) if state.units[node].status == SUCCEEDED]
    if spec.policy in ("first", "quorum"):
        wanted = _wanted(spec, total(state, join))
        ok = ok[:wanted]
    return tuple(ok)


# Inputs without a value.


def reason(state: RunState, join: int) -> str:
    """Return why a join cannot close, as a sentence, with why the first of
    its inputs has no value.
    """
    spec = state.graph.specs[join]
    inputs = inputs_of(state, join)
    valueless: list[int] = []
    for node in inputs:
        status = state.units[node].status
        if status != SUCCEEDED and not is_open(status):
            valueless.append(node)

    names = "there are no more"
    cause = ""
    if valueless:
        names = ", ".join(map(state.path, valueless[:_MAX_NAMED_INPUTS]))
        cause = _cause(state, valueless[0])
    if len(valueless) > _MAX_NAMED_INPUTS:
        names += " ..."
    wanted = _wanted_inputs(spec, len(inputs))
    return f"needs a value from {wanted} of {len(inputs)}, but {names} gave none{cause}"


def _wanted_inputs(spec: NodeSpec, total: int) -> str:
    """Return in words of which inputs a join needs the values."""
    if spec.policy == "all":
        return "every input"
    if spec.policy == "first":
        return "one input"
    if spec.policy == "quorum":
        return f"{_wanted(spec, total)} inputs"
    return ""


def _cause(state: RunState, node: int) -> str:
    """Return why an input has no value, in brackets; "" if nobody has said so."""
    note = state.notes.get(node)
    if note is None:
        return ""
    kind, message = note
    return f" ({kind}: {clipped(message, MAX_CAUSE_CHARACTERS)})"


def lost(state: RunState, nodes: list[int]) -> dict[int, Loss]:
    """Return for inputs without a value how each has ended: its status and its error."""
    share = MAX_LOSSES_CHARACTERS // max(1, len(nodes))
    room = min(MAX_LOSS_CHARACTERS, share)
    return {node: _loss(state, node, room) for node in nodes}


def _loss(state: RunState, node: int, room: int) -> Loss:
    """Return how an input without a value has ended, with an error of at most `room` characters."""
    status = STATUS_NAMES[state.units[node].status]
    if status == "pending":
        status = "skipped"
    note = state.notes.get(node)
    if note is None:
        return status, None
    kind, message = note
    return status, f"{kind}: {message}"[:room]


# The value of a join.


class JoinInput(NamedTuple):
    """An input of a join: with the reference of its value, or with how it has ended without one."""

    name: str
    reference: str
    loss: Loss | None = None


def parts_of(state: RunState, node: int) -> Sequence[int]:
    """Return the units whose values the value of a join that has closed is
    made of, or that of a map.
    """
    if state.graph.specs[node].kind == "map":
        return state.values(node)
    return state.units[node].chosen or ()


def makers(state: RunState, units: Iterable[int]) -> list[int]:
    """Return these units, and those that have made the values of joins and maps among them."""
    known = dict.fromkeys(units)
    queue = list(known)
    for unit in queue:  # which grows
        parts = _gathered_parts(state, unit)
        queue += [part for part in parts if part not in known]
        known |= dict.fromkeys(parts)
    return queue


def _gathered_parts(state: RunState, unit: int) -> Sequence[int]:
    """Return the units of which a join or a map has its value; none if an activity has
    stored the value of a map.
    """
    kind = state.kind_of(unit)
    if kind not in ("join", "map"):
        return ()
    digest = state.units[unit].digest
    if kind == "map" and digest is not None and not is_manifest(digest):
        return ()
    return parts_of(state, unit)


def manifest(state: RunState, join: int) -> str:
    """Return the reference of the value of a join that has closed, or of a map whose items have
    ended: of `first`, mostly the digest of the value.
    """
    spec = state.graph.specs[join]
    chosen = parts_of(state, join)
    if spec.kind == "map":
        digests = [state.units[item].digest for item in chosen]
        return _reference(digests)
    if spec.policy == "turn":
        return _reference(_turn_ends(state, join))

    # A settled join tells of all its inputs, any other only of those whose values it takes.
    nodes = chosen
    if spec.policy == "settled":
        nodes = spec.inputs
    taken = dict.fromkeys(chosen)
    valueless = [node for node in nodes if node not in taken]
    losses = lost(state, valueless)
    inputs = [_input(state, node, losses) for node in nodes]
    return manifest_of(spec.policy, inputs)


def _turn_ends(state: RunState, join: int) -> list[dict[str, Any]]:
    """Return how the calls before a model's turn had ended when that could start,
    whatever has ended since then.
    """
    ended = dict.fromkeys(state.units[join].chosen or ())
    valueless = [call for call in ended if state.units[call].status != SUCCEEDED]
    losses = lost(state, valueless)
    ends: list[dict[str, Any]] = []
    for call in state.graph.specs[join].inputs:
        if call in ended:
            ends.append(_end(_input(state, call, losses)))
        else:
            ends.append({"id": state.path(call), "status": GOES_ON, "error": None})
    return ends


def _input(state: RunState, node: int, losses: dict[int, Loss]) -> JoinInput:
    """Return an input of a join, with how it has ended if it is among the `losses`."""
    reference = state.units[node].digest or ""
    return JoinInput(state.path(node), reference, losses.get(node))


def manifest_of(policy: str, inputs: Sequence[JoinInput]) -> str:
    """Return the reference of the value that a join of this policy has of
    the inputs that it takes.
    """
    if policy == "settled":
        return _reference(list(map(_end, inputs)))
    values = list(map(_value, inputs))
    if policy == "first":
        return _reference(values[0])
    return _reference(values)


def _end(taken: JoinInput) -> dict[str, Any]:
    """Return the part of a join's manifest that says how an input has ended."""
    if taken.loss is None:
        return {"id": taken.name, "value": _value(taken)}
    status, error = taken.loss
    return {"id": taken.name, "status": status, "error": error}


def _value(taken: JoinInput) -> Any:
    """Return the part of a join's manifest that stands for the value of an input."""
    if is_manifest(taken.reference):
        return json.loads(taken.reference)
    return taken.reference


def _reference(part: Any) -> str:
    """Return what stands in the place of a digest for a part of a manifest."""
    if isinstance(part, str):
        return part
    return json.dumps(part, separators=(",", ":"))


def is_manifest(reference: str) -> bool:
    """Whether the reference of an output is a manifest, and no digest."""
    return reference.startswith(("[", "{"))


def outcome_of(state: RunState, join: int) -> Outcome | None:
    """Return the value of a join that has closed, or of a map whose items have ended; None if an
    activity has to store it, because it is too much to stand in the input of each consumer, or
    because a condition reads more of it than is known of its inputs.
    """
    reference = manifest(state, join)
    facts = _facts(state, join)
    if facts is None:
        return None
    if is_manifest(reference) and not _is_carried(state, join, reference):
        return None
    size = 0
    for node in parts_of(state, join):
        size += state.units[node].size
    return Outcome(reference, size, facts, attempts=0)


def _is_carried(state: RunState, join: int, reference: str) -> bool:
    """Whether all that read a join or a map can have its manifest in their inputs."""
    if _levels(json.loads(reference)) > MAX_MANIFEST_LEVELS:
        return False

    # Count the inputs of activities in which the manifest would stand, and what else
    # stands in each of them.
    graph = state.graph
    times = 0
    beside: list[int] = []
    if join in graph.answering:
        times = 1
        beside.append(len(graph.answering))
    for node in graph.readers(join):
        spec = graph.specs[node]
        beside.append(len(spec.reads) + len(spec.inputs))
        times += max(1, spec.cap)  # each item of a map has it in its input

    if max(beside, default=0) > MAX_READ_NODES:
        return False
    if len(reference) * max(1, times) <= MAX_MANIFEST_BYTES:
        return True
    if times != 1 or beside[0] > MAX_ONLY_READ_NODES or _may_grow(state):
        return False
    return len(reference) <= MAX_ONLY_MANIFEST_BYTES


def _may_grow(state: RunState) -> bool:
    """Whether nodes may come that read what others read already: from a
    planner, or from a model call.
    """
    if state.streaming:
        return True
    return any(spec.kind == "llm" for spec in state.graph.specs)


def _levels(part: Any) -> int:
    """Return how many lists are in each other in a manifest."""
    if isinstance(part, dict):
        return _levels(part.get("value"))
    if not isinstance(part, list):
        return 0
    return 1 + max(map(_levels, part), default=0)


# The facts of that value.


def _facts(state: RunState, join: int) -> dict[str, Scalar] | None:
    """Return the facts of a join's or a map's value that conditions, maps and joins read; None if
    one of a condition or a map is not known.
    """
    wanted = state.graph.wanted.get(join, {})
    facts: dict[str, Scalar] = {}
    for name, is_read in wanted.items():
        try:
            facts[name] = _fact(state, join, name)
        except LookupError:
            if is_read:
                return None
    return facts


def _fact(state: RunState, join: int, name: str) -> Scalar:
    """Return a fact of a join's value. Raises LookupError if only the whole value can tell it."""
    spec = state.graph.specs[join]
    chosen = parts_of(state, join)
    parts = chosen
    if spec.policy == "settled":
        parts = spec.inputs

    if name.removeprefix("?") == "length" and spec.policy != "first":
        if name.startswith("?"):
            return True
        return len(parts)
    if spec.kind != "join":
        return _fact_of_end(state, spec, name)
    source = fact_of_input(spec.policy, name)
    if source is None:
        return _fact_of_end(state, spec, name)

    # The fact is one of an input, which has it if the join takes its value.
    place, inner = source
    node = parts[place]
    if node not in chosen:
        raise LookupError(name)
    fact: Scalar = (state.units[node].facts or {})[inner]
    return fact


def _fact_of_end(state: RunState, spec: NodeSpec, name: str) -> Scalar:
    """Return the fact that tells how an input of a settled join has ended. Raises
    LookupError for any other.
    """
    match parse_path(name):
        case (int(place), "status") if spec.policy == "settled":
            node = spec.inputs[place]
            status, _ = lost(state, [node])[node]
            return status
    raise LookupError(name)
