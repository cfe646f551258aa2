"""Builds what an activity is given to run units: their paths, the digests of the outputs that they
read, and what their kind needs.

Nothing here changes the run's state. Dry runs and unit tests of plans build the same calls.
"""

from collections.abc import Iterable
from typing import Any

from sennit.workflows.limits import (
    MAX_QUESTION_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    MIN_QUESTION_CHARACTERS,
)
from sennit.workflows.messages import contracts
from sennit.workflows.messages.contracts import Call, GroupReply
from sennit.workflows.messages.node_calls import (
    AskingCall,
    GateNodeCall,
    JoinNodeCall,
    NodeCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.scheduling.call_names import name_of
from sennit.workflows.plan.scheduling.joins import lost, makers, manifest
from sennit.workflows.plan.scheduling.programs import beginning
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import SUCCEEDED

Units = tuple[int, ...]
PAID = ("tokens", "cost", "calls")
"""The limits that every attempt of a model call uses up."""
_CONTRACTS: dict[str, Call[Any, Any]] = {call.name: call for call in contracts.CALLS} | {
    "map": contracts.JOIN
}
"""The activity of each kind of node."""


def contract_of(state: RunState, units: Units, *, asks: bool) -> Call[NodeCall, GroupReply]:
    """Return the activity that runs these units."""
    if len(units) > 1:
        return contracts.GROUP
    unit = units[0]
    if unit in state.answers:
        return contracts.GATE
    kind = state.kind_of(unit)
    if kind == "tool" and state.spec_of(unit).effect == "write" and not asks:
        return contracts.WRITE
    return _CONTRACTS[kind]


def node_call(
    state: RunState, run: str, plan: str, units: Units, *, asks: bool = False, **common: Any
) -> NodeCall:
    """Return the call of the activity that runs these units. `common` are fields that all
    calls of the plan have.
    """
    unit = units[0]
    takes = contract_of(state, units, asks=asks).takes
    names = tuple(map(state.full_path, units))
    common |= {"run": run, "plan": plan, "nodes": names}
    if unit in state.answers:
        return GateNodeCall(**common, answer=state.answers[unit])

    # An advance that goes on reads the calls of which its script is told, and nothing else.
    session = state.sessions.get(unit)
    if session is not None and session.has_begun:
        advance = _advance_fields(state, unit, session)
        return takes(**common, **fields_set(**advance))

    # The outputs that the activity reads, and the nodes behind them.
    spec = state.spec_of(unit)
    read: list[int] = []
    if takes is JoinNodeCall:
        # The activity finds the outputs that a join gathers by its manifest.
        refs = {state.path(unit): manifest(state, unit)}
        read.append(unit)
    else:
        refs = _outputs_read(state, units)
        for member in units:
            read += _read_by(state, member)
        read += spec.inputs
    fields: dict[str, Any] = {"refs": refs, "repeated": _repeated(state, read)}

    # What only its kind of call has.
    fields |= _fields_of_kind(state, unit, takes, asks=asks)
    if spec.inputs and spec.kind != "join":
        fields |= _fields_of_inputs(state, unit, spec, refs)
    return takes(**common, **fields_set(**fields))


def outputs_of(state: RunState, nodes: Iterable[int]) -> dict[str, str]:
    """Return the references of the outputs of these nodes, by their paths. Nodes
    without a value are left out.
    """
    refs: dict[str, str] = {}
    for node in nodes:
        if state.units[node].status == SUCCEEDED:
            refs[state.path(node)] = state.units[node].digest or ""
    return refs


def fields_set(**fields: Any) -> dict[str, Any]:
    """Return the fields that differ from an empty default: only those are sent."""
    return {name: value for name, value in fields.items() if value}


def _fields_of_kind(
    state: RunState, unit: int, takes: type[NodeCall], *, asks: bool
) -> dict[str, Any]:
    """Return the fields that only calls of one kind have."""
    fields: dict[str, Any] = {}
    if issubclass(takes, AskingCall) and (asks or state.spec_of(unit).approval):
        fields["room"] = _question_room(state, unit)
    if takes is GateNodeCall:
        fields["asks"] = asks
    elif takes is ToolNodeCall and state.units[unit].alone:
        fields["tried"] = 1  # an activity of several units has attempted it
    elif takes is WriteNodeCall:
        fields["resumes"] = unit in state.resumed
        fields["approved"] = state.units[unit].approved
    elif takes is ProgramNodeCall:
        fields["approved"] = state.units[unit].approved
        fields |= beginning(state, unit)
    return fields


def _question_room(state: RunState, unit: int) -> int:
    """Return how many characters a question may have: 0 for the usual length, and less if
    many are asked at once.
    """
    siblings = len(state.items.get(state.node_of(unit), ()))
    questions = max(1, len(state.questions), siblings)
    room = MAX_SHOWN_CHARACTERS // questions
    if room >= MAX_QUESTION_CHARACTERS:
        return 0
    return max(MIN_QUESTION_CHARACTERS, room)


def _fields_of_inputs(
    state: RunState, unit: int, spec: NodeSpec, refs: dict[str, str]
) -> dict[str, Any]:
    """Return the fields of a node with `inputs`: the outputs of the chosen ones beside
    `refs`, and the failures.
    """
    chosen = state.units[unit].chosen or ()
    refs = dict(refs)
    for node in chosen:
        refs[state.path(node)] = state.units[node].digest or ""
    fields: dict[str, Any] = {"refs": refs}
    if spec.policy == "settled":
        is_chosen = set(chosen)
        left_out = [node for node in spec.inputs if node not in is_chosen]
        fields["lost"] = _losses(state, left_out)
    return fields


def _advance_fields(state: RunState, program: int, session: Session) -> dict[str, Any]:
    """Return what an advance is given: where its script stands, and the outputs, failures
    and times of ended calls.
    """
    calls = session.last.told
    outputs: dict[str, str] = {}
    ends: dict[str, int] = {}
    failed: list[int] = []
    for call in calls:
        name = name_of(state, program, call)
        ends[name] = state.units[call].ended_at or 0
        if state.units[call].status == SUCCEEDED:
            outputs[name] = state.units[call].digest or ""
        else:
            failed.append(call)

    losses: dict[str, tuple[str, str | None]] = {}
    for call, loss in lost(state, failed).items():
        name = name_of(state, program, call)
        losses[name] = loss
    return {
        "session": session.last.session,
        "repeated": _repeated(state, calls),
        "refs": outputs,
        "lost": losses,
        "ends": ends,
    }


def _losses(state: RunState, nodes: list[int]) -> dict[str, tuple[str, str | None]]:
    """Return how these nodes have ended without a value, by their paths."""
    losses: dict[str, tuple[str, str | None]] = {}
    for node, loss in lost(state, nodes).items():
        losses[state.path(node)] = loss
    return losses


def _repeated(state: RunState, read: Iterable[int]) -> tuple[str, ...]:
    """Return the nodes behind these that are in a later generation than their first."""
    repeated: list[str] = []
    for node in makers(state, list(read)):
        if state.units[node].generation > 1:
            repeated.append(state.full_path(node))
    return tuple(repeated)


def _outputs_read(state: RunState, units: Units) -> dict[str, str]:
    """Return the digests of the outputs that these units read from outside, by
    the paths of their nodes.
    """
    inside = set(units)
    read: list[int] = []
    for unit in units:
        read += _read_by(state, unit)
    # Of its members' other dependencies, a group learns which have succeeded.
    if len(units) > 1:
        for unit in units:
            read += state.spec_of(unit).needs

    outside = [node for node in read if node not in inside]
    return outputs_of(state, outside)


def _read_by(state: RunState, unit: int) -> list[int]:
    """Return the units whose outputs a unit's activity may read."""
    read = list(state.spec_of(unit).reads)
    if state.is_item(unit):
        read += state.read_by(unit)
    return read
