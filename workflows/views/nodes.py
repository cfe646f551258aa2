"""Nodes as people see them: which of them, in what order, with what status and error."""

from collections.abc import Container, Mapping
from itertools import islice
from typing import Any

from sennit.workflows.limits import (
    MAX_BLOCKED,
    MAX_ERROR_CHARACTERS,
    MAX_SHOWN_REFERENCE_CHARACTERS,
)
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.result import ApprovedWrite
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import NO_USAGE, Usage, dollars
from sennit.workflows.plan.language.text import cut
from sennit.workflows.plan.scheduling.completion import UNKNOWN_OUTCOME
from sennit.workflows.plan.scheduling.programs import is_replaced
from sennit.workflows.plan.scheduling.slices import ledger_of
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import RUNNING, STATUS_NAMES, SUCCEEDED
from sennit.workflows.views.call_sites import in_order, path_and_line, task_around, tasks_by_path
from sennit.workflows.views.writes import effect_text


def status_of(state: RunState, unit: int, caught: Container[int] = ()) -> str:
    """Return the status of a unit as people see it: what a script has called that was
    replaced by another has not failed, whatever it came to, and a failure that a script
    has `caught` is handled.
    """
    status = STATUS_NAMES[state.units[unit].status]
    if status != "failed":
        return status
    if is_replaced(state, state.node_of(unit)):
        return "skipped"
    if unit in caught:
        return "handled"
    return status


def error_of(state: RunState, unit: int) -> str | None:
    """Return why a unit did not succeed, or did so only by its fallback; or None."""
    note = state.notes.get(unit)
    status = STATUS_NAMES[state.units[unit].status]
    if note is None or status not in ("succeeded", "failed", "skipped", "cancelled"):
        return None
    # What was done about it stands behind the error, and is never cut.
    kind, message = note
    tail = ""
    if status == "succeeded":
        tail += "; its fallback is used"
    if status != status_of(state, unit):
        tail += "; its script was replaced"
    effect = effect_text(state, unit)
    if effect and kind != UNKNOWN_OUTCOME:
        tail += f"; {effect}"
    room = MAX_ERROR_CHARACTERS - len(tail)
    return cut(f"{kind}: {message}", room) + tail


def error_at_place(state: RunState, unit: int) -> str:
    """Return why a unit did not succeed, with the place of a call; "" if it did."""
    error = error_of(state, unit)
    if not error:
        return ""
    return f"{state.spec_of(unit).call_site} {error}".strip()


def shown_summary(spec: NodeSpec) -> str:
    """Return what a node does, id first; of a program's call what stands behind
    its id and its call site.
    """
    if not spec.call_site:
        return spec.summary
    text = spec.summary.partition(" ")[2]
    return text.removeprefix(spec.call_site).lstrip()


def usage_by_unit(state: RunState) -> dict[int, Usage]:
    """Return what units have used: a map with its items, a task or a program with
    all that it has called.
    """
    found: dict[int, Usage] = {}
    tasks = tasks_by_path(state.graph)
    for unit, used in state.used.items():
        holder = unit
        while holder >= 0:
            used_so_far = found.get(holder, NO_USAGE)
            found[holder] = used_so_far.plus(used)
            holder = _holder_of(state, tasks, holder)
    return found


def _holder_of(state: RunState, tasks: Mapping[int, dict[str, int]], unit: int) -> int:
    """Return the map of an item, or the program, the task or the model call that has called
    a unit; -1 without one.
    """
    if state.is_item(unit):
        return state.node_of(unit)
    spec = state.graph.specs[unit]
    is_of_program = spec.maker >= 0 and state.graph.specs[spec.maker].kind == "program"
    if not is_of_program:
        return spec.maker
    program = state.graph.program_of(unit)
    path, _ = path_and_line(spec)
    return task_around(tasks.get(program, {}), path, program)


def fields_of(
    state: RunState, unit: int, caught: Container[int], usage: Usage = NO_USAGE
) -> dict[str, Any]:
    """Return what reports and views say of a unit that has used so much: only what is not as usual,
    because a report has thousands.
    """
    fields = {
        "id": state.path(unit),
        "kind": state.kind_of(unit),
        "status": status_of(state, unit, caught),
        "duration_ms": millis_of(state, unit),
    }
    if state.units[unit].attempts != 1:
        fields["attempts"] = state.units[unit].attempts
    unusual = {
        "started": state.units[unit].started / 1000,
        "tokens": usage.tokens,
        "cost_usd": dollars(usage.cost),
        "budget": ledger_of(state, unit),
        "error": error_of(state, unit),
        "call_site": state.spec_of(unit).call_site,
        "taken_over": unit in state.taken_over,
        "answered": is_answered(state, unit),
        "approved": _approved(state, unit),
    }
    shown = {name: value for name, value in unusual.items() if value}
    return fields | shown


def millis_of(state: RunState, unit: int) -> int | None:
    """Return how long a unit took: a map from the start of its first item. None if nothing has been
    called, and for a sleep, whose activity only stores that it is over.
    """
    spec = state.spec_of(unit)
    if spec.kind == "tool" and spec.deadline:
        return None
    is_gathered = state.kind_of(unit) == "map" and state.units[unit].status == SUCCEEDED
    if state.units[unit].attempts or is_gathered:
        return state.units[unit].millis
    return None


def is_answered(state: RunState, unit: int) -> bool:
    """Whether a person has given the result of a call."""
    return unit in state.answers and state.kind_of(unit) != "gate"


def _approved(state: RunState, unit: int) -> ApprovedWrite | None:
    approval = state.units[unit].approved
    if approval is None:
        return None
    fields = {
        "target": approval.target,
        "args": tuple(approval.args),
        "by": approval.by,
        "rule": approval.rule,
    }
    details = {name: value for name, value in fields.items() if value}
    return ApprovedWrite(digest=approval.written or approval.digest, **details)


def view_of(
    state: RunState,
    unit: int,
    reply: NodeReply | None,
    agent: str = "",
    caught: Container[int] = (),
    usage: Usage = NO_USAGE,
) -> NodeView:
    """Return a unit with its summary, what it needs, and the preview of its output while
    this run remembers it.

    Of a node that asks a person it is the question. A long reference is cut. `agent` describes
    a running sub-agent, `caught` are the failures that scripts have handled, and `usage` is
    what the unit has used.
    """
    # An item of a chain needs the call before it in its chain; any other unit needs its inputs.
    spec = state.spec_of(unit)
    ref = state.units[unit].digest or ""
    needs = list(spec.inputs)
    if state.is_item(unit) and state.before(unit) >= 0:
        needs = [state.before(unit)]
    needs += state.graph.deps[state.node_of(unit)]

    # A turn of a model that calls tools is no output: while a unit runs, nothing
    # is shown of its replies.
    is_running = STATUS_NAMES[state.units[unit].status] == "running"
    preview = agent
    if unit in state.questions:
        preview = state.questions[unit].text
    elif reply is not None and not is_running:
        preview = reply.preview
    return NodeView(
        **fields_of(state, unit, caught, usage),
        summary=shown_summary(spec),
        needs=tuple(map(state.path, needs)),
        preview=preview,
        ref=cut(ref, MAX_SHOWN_REFERENCE_CHARACTERS) or None,
    )


def drain_waits_for(state: RunState) -> tuple[str, ...]:
    """Return the first running nodes of a run that drains, before it continues as new;
    none of any other run.
    """
    if not state.draining:
        return ()
    running = islice(state.units_in(RUNNING), MAX_BLOCKED)
    return tuple(map(state.path, running))


def visible_units(state: RunState) -> list[int]:
    """Return the units people see, in plan order with each map's items, or each program's calls,
    after it; without replaced items.
    """
    units: list[int] = []
    for node in in_order(state.graph):
        units.append(node)
        units += state.items.get(node, ())
    return units


def is_counted_by_calls(state: RunState, unit: int) -> bool:
    """Whether the calls of a unit are counted in its place: of a program that has called
    something, and of a task.
    """
    spec = state.spec_of(unit)
    if spec.kind == "program":
        return bool(state.graph.made_by(state.node_of(unit)))
    return spec.kind == "task"
