"""The run as people read it: lines of nodes, what it is blocked on, the report at its end."""

from collections.abc import Container, Iterable, Sequence
from itertools import islice

from sennit.workflows.limits import (
    MAX_BLOCKED,
    MAX_ERROR_CHARACTERS,
    MAX_PLACE_CHARACTERS,
    MAX_REPORT_BYTES,
    MAX_SUMMARIES_CHARACTERS,
    MIN_SUMMARY_CHARACTERS,
)
from sennit.workflows.messages.contracts import Conclusion, NodeReply
from sennit.workflows.messages.result import ApprovedWrite, NodeLine, RunReport, RunStatus
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.scheduling.budget import Budget, ledger
from sennit.workflows.plan.scheduling.completion import UNKNOWN_OUTCOME
from sennit.workflows.plan.scheduling.state import (
    CANCELLED,
    FAILED,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
    RunState,
)
from sennit.workflows.plan.scheduling.termination import handled
from sennit.workflows.views.places import in_order, place_of_call
from sennit.workflows.views.quote import quote_line, shortage
from sennit.workflows.views.writes import effect_text, writes_of


def status_of(state: RunState, unit: int, caught: Container[int] = ()) -> str:
    """Return the status of a unit as people see it: what a script has called that was replaced by another has not
    failed, whatever it came to, and a failure that a script has `caught` is handled.
    """
    status = STATUS_NAMES[state.status[unit]]
    if status != "failed":
        return status
    return "skipped" if state.graph.is_replaced(state.node_of(unit)) else "handled" if unit in caught else status


def error_of(state: RunState, unit: int) -> str | None:
    """Return why a unit did not succeed, or did so only by its fallback; or None."""
    note, status = state.notes.get(unit), STATUS_NAMES[state.status[unit]]
    if note is None or status not in ("succeeded", "failed", "skipped", "cancelled"):
        return None
    by = "; its fallback is used" if status == "succeeded" else ""
    by += "; its script was replaced" if status != status_of(state, unit) else ""
    effect = "" if note[0] == UNKNOWN_OUTCOME else effect_text(state, unit)
    by += f"; {effect}" if effect else ""
    return cut(f"{note[0]}: {note[1]}", MAX_ERROR_CHARACTERS - len(by)) + by


def error_at_place(state: RunState, unit: int) -> str:
    """Return why a unit did not succeed, with the place of a call; "" if it did."""
    error = error_of(state, unit)
    return f"{place_of_call(state.spec_of(unit))} {error}".strip() if error else ""


def cut(text: str, most: int) -> str:
    """Return a text in at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _fields(state: RunState, unit: int, caught: Container[int]) -> dict[str, object]:
    return {
        "id": state.shown(unit),
        "kind": state.kind_of(unit),
        "status": status_of(state, unit, caught),
        "attempts": state.attempts[unit],
        "duration_ms": state.millis[unit] if state.attempts[unit] else None,
        "error": error_of(state, unit),
        **({"taken_over": True} if unit in state.taken_over else {}),
        **({"answered": True} if is_answered(state, unit) else {}),
        **_approved(state, unit),
    }


def is_answered(state: RunState, unit: int) -> bool:
    """Whether a person has given the result of a call."""
    return unit in state.answers and state.kind_of(unit) != "gate"


def _approved(state: RunState, unit: int) -> dict[str, object]:
    approval = state.approved.get(unit)
    if approval is None:
        return {}
    fields = {"target": approval.target, "args": tuple(approval.args), "by": approval.by}
    details = {name: value for name, value in fields.items() if value}
    return {"approved": ApprovedWrite(digest=approval.written or approval.digest, **details)}


def view_of(
    state: RunState, unit: int, reply: NodeReply | None, agent: str = "", caught: Container[int] = ()
) -> NodeView:
    """Return a unit with its summary, what it needs, and the preview of its output while this run remembers it.

    Of a node that asks a person it is the question. `agent` describes a running sub-agent, `caught` are the failures
    that scripts have handled.
    """
    spec = state.spec_of(unit)
    before = state.before(unit) if state.is_item(unit) else -1
    needs = (*([before] if before >= 0 else spec.inputs), *state.graph.deps[state.node_of(unit)])
    is_running = STATUS_NAMES[state.status[unit]] == "running"
    preview = reply.preview if reply is not None and not is_running else agent  # a turn is no output
    if unit in state.questions:
        preview = state.questions[unit].text
    return NodeView(
        **_fields(state, unit, caught),
        summary=spec.summary,
        needs=tuple(state.shown(node) for node in needs),
        preview=preview,
        ref=state.digest[unit],
    )


def drain_waits_for(state: RunState) -> tuple[str, ...]:
    """Return the first running nodes of a run that drains, before it continues as new; none of any other run."""
    running = state.units_in(RUNNING) if state.draining else []
    return tuple(state.shown(unit) for unit in islice(running, MAX_BLOCKED))


def visible_units(state: RunState) -> list[int]:
    """Return the units people see, in plan order with each map's items, or each program's calls, after it; without
    replaced items, and without the further steps of programs.
    """
    return [unit for node in in_order(state.graph) for unit in (node, *state.items.get(node, ()))]


def report_lines(state: RunState) -> tuple[tuple[NodeLine, ...], int]:
    """Return the lines for the report and how many were left out to keep it below a payload's size: no failed one
    before any other.
    """
    room, caught = MAX_SUMMARIES_CHARACTERS // len(state.graph.specs), handled(state)
    lines = [_report_line(state, unit, room, caught) for unit in visible_units(state)]
    sizes = [_size(line) for line in lines]
    if sum(sizes) <= MAX_REPORT_BYTES:
        return tuple(lines), 0
    size, kept = 0, []
    for index in sorted(range(len(lines)), key=lambda index: lines[index].status != "failed"):
        size += sizes[index]
        if size > MAX_REPORT_BYTES:
            break
        kept.append(lines[index])
    return tuple(kept), len(lines) - len(kept)


def _size(line: NodeLine) -> int:
    approved = len(line.approved.model_dump_json()) if line.approved is not None else 0
    return 150 + len((line.error or "").encode()) + len(line.summary.encode()) + approved


def _report_line(state: RunState, unit: int, room: int, caught: Container[int]) -> NodeLine:
    spec = state.spec_of(unit)
    room = max(room, MAX_PLACE_CHARACTERS) if spec.page else room
    summary = "" if state.is_item(unit) or room < MIN_SUMMARY_CHARACTERS else cut(spec.summary, room)
    return NodeLine(**_fields(state, unit, caught), summary=summary)


def counts(state: RunState) -> dict[str, int]:
    """Return how many visible units have each status, in a fixed order: of programs their calls."""
    found = dict.fromkeys((*STATUS_NAMES, "handled"), 0)
    caught = handled(state)
    for unit in counted(state, visible_units(state)):
        found[status_of(state, unit, caught)] += 1
    return {status: count for status, count in found.items() if count}


def counted(state: RunState, units: Sequence[int]) -> list[int]:
    """Return the units that count: not programs, tasks and joins whose calls do."""
    graph = state.graph
    found = [
        unit
        for unit in units
        if not ((spec := state.spec_of(unit)).kind == "program" and graph.made_by(state.node_of(unit)))
        and not (spec.kind == "join" and spec.page)
    ]
    return found or list(units)


def spent(budget: Budget, names: Iterable[str]) -> str:
    """Return what was spent of each limit."""
    rows = ledger(budget)
    parts = (f"{name} {rows[name]['spent']} of {rows[name]['limit']}" for name in names)
    return f"the budget is spent ({', '.join(parts)})"


def why_unanswered(state: RunState) -> str:
    """Return why the answer has no value: "`publish` was skipped: its condition was false"; "" if it has one."""
    names = []
    for node in state.graph.execution_plan.answer:
        seen: dict[int, bool] = {}
        while state.status[node] in (SKIPPED, CANCELLED, FAILED) and node not in seen:
            seen[node] = True
            note = state.notes.get(node)
            names.append(
                f"`{state.shown(node)}` was {STATUS_NAMES[state.status[node]]}".replace("was failed", "failed")
            )
            if note is not None:
                return ": ".join([*names, note[1]])
            node = next((dep for dep in state.graph.deps[node] if state.status[dep] != SUCCEEDED), node)
    return ": ".join(names)


def report_of(state: RunState, status: RunStatus, found: Conclusion, unanswered: str) -> RunReport:
    """Return the report of an ended run, but for what only the workflow knows: ids, usage, warnings.

    `unanswered` says why the answer could not be put together, if it could not.
    """
    lines, left_out = report_lines(state)
    failed = [f"{line.id}: {line.error}" for line in lines if line.status == "failed"]
    problem = unanswered or "; ".join(failed[:3])
    if not problem and state.budget is not None and (short := state.budget.short()):
        problem = spent(state.budget, short)
    never_began = [unit for unit in state.units_in(SKIPPED) if unit not in state.notes]
    if not problem and (missing := shortage(state, never_began)):
        problem = missing[1]
    if not problem and found.answer is None:
        problem = why_unanswered(state)
    return RunReport(
        id="",
        run_id="",
        status=status,
        answer=found.answer,
        answer_ref=found.ref,
        evidence=found.evidence,
        counts=counts(state),
        nodes=lines,
        nodes_left_out=left_out,
        problem=problem or None if status != "done" or found.answer is None else None,
        writes=writes_of(state),
        quote=quote_line(state),
    )
