"""The run as people read it: lines of nodes, what it is blocked on, the report at its end."""

import json
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice

from pydantic import JsonValue

from workflows.messages.contracts import Conclusion, NodeReply
from workflows.messages.result import ApprovedWrite, BlockedOn, NodeLine, RunReport, RunStatus
from workflows.messages.views import MOST_PASSED_ON, NodeView, SubagentView
from workflows.plan.language.limits import Limits, limit_fields
from workflows.plan.language.text import one_line
from workflows.plan.scheduling.admission import token_of, waiting_in
from workflows.plan.scheduling.budget import Budget, ledger
from workflows.plan.scheduling.events import ExpansionRequest, Question
from workflows.plan.scheduling.retry import names_of, repeated, takes_answer
from workflows.plan.scheduling.state import (
    AGAIN,
    AWAITING_FALLBACK,
    EXPANDED,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    WAITING,
    RunState,
)
from workflows.plan.scheduling.termination import blocking_failures, outages
from workflows.views.example import example_value
from workflows.views.places import in_order, place_of_call
from workflows.views.quote import quote_line, shortage

REPORT_BYTES = 700_000
ERROR_CHARACTERS = 300
QUESTION_CHARACTERS = 300
LINE_CHARACTERS = 120
SUMMARY_CHARACTERS = 16_000
"""What all summaries of a report share, since the history keeps it: 100 nodes have theirs whole, 500 have 32 characters
each, and below `LEAST_SUMMARY` characters there are none."""
LEAST_SUMMARY = 16
MAX_BLOCKED = 20


def error_of(state: RunState, unit: int) -> str | None:
    """Return why a unit did not succeed, or did so only by its fallback; or None."""
    note, status = state.notes.get(unit), STATUS_NAMES[state.status[unit]]
    if note is None or status not in ("succeeded", "failed", "skipped", "cancelled"):
        return None
    by = "; its fallback is used" if status == "succeeded" else ""
    return _cut(f"{note[0]}: {note[1]}", ERROR_CHARACTERS - len(by)) + by


def error_at_place(state: RunState, unit: int) -> str:
    """Return why a unit did not succeed, with the place of a call; "" if it did."""
    error = error_of(state, unit)
    return f"{place_of_call(state.spec_of(unit))} {error}".strip() if error else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _fields(state: RunState, unit: int) -> dict[str, object]:
    return {
        "id": state.path(unit),
        "kind": state.kind_of(unit),
        "status": STATUS_NAMES[state.status[unit]],
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
    given = {name: value for name, value in fields.items() if value}
    return {"approved": ApprovedWrite(digest=approval.written or approval.digest, **given)}


def view_of(state: RunState, unit: int, reply: NodeReply | None, agent: str = "") -> NodeView:
    """Return a unit with its summary, what it needs, and the preview of its output while this run remembers it.

    Of a node that asks a person it is the question. `agent` describes a running sub-agent.
    """
    spec = state.spec_of(unit)
    needs = (*spec.inputs, *state.graph.deps[state.node_of(unit)])
    is_running = STATUS_NAMES[state.status[unit]] == "running"
    preview = reply.preview if reply is not None and not is_running else agent  # a turn is no output
    if unit in state.questions:
        preview = state.questions[unit].text
    return NodeView(
        **_fields(state, unit),
        summary=spec.summary,
        needs=tuple(state.path(node) for node in needs),
        preview=preview,
        ref=state.digest[unit],
    )


def drain_waits_for(state: RunState) -> tuple[str, ...]:
    """Return the first running nodes of a run that drains, before it continues as new; none of any other run."""
    running = (unit for unit, status in enumerate(state.status) if state.draining and status == RUNNING)
    return tuple(state.path(unit) for unit in islice(running, MAX_BLOCKED))


def visible_units(state: RunState) -> list[int]:
    """Return the units people see, in plan order with each map's items, or each program's calls, after it; without
    replaced items, and without the further steps of programs.
    """
    return [unit for node in in_order(state.graph) for unit in (node, *state.items.get(node, ()))]


def report_lines(state: RunState) -> tuple[tuple[NodeLine, ...], int]:
    """Return the lines for the report and how many were left out to keep it below a payload's size: no failed one
    before any other.
    """
    room = SUMMARY_CHARACTERS // len(state.graph.specs)
    lines = [_report_line(state, unit, room) for unit in visible_units(state)]
    sizes = [_size(line) for line in lines]
    if sum(sizes) <= REPORT_BYTES:
        return tuple(lines), 0
    size, kept = 0, []
    for index in sorted(range(len(lines)), key=lambda index: lines[index].status != "failed"):
        size += sizes[index]
        if size > REPORT_BYTES:
            break
        kept.append(lines[index])
    return tuple(kept), len(lines) - len(kept)


def _size(line: NodeLine) -> int:
    approved = len(line.approved.model_dump_json()) if line.approved is not None else 0
    return 150 + len((line.error or "").encode()) + len(line.summary.encode()) + approved


def _report_line(state: RunState, unit: int, room: int) -> NodeLine:
    summary = "" if state.is_item(unit) or room < LEAST_SUMMARY else _cut(state.spec_of(unit).summary, room)
    return NodeLine(**_fields(state, unit), summary=summary)


def counts(state: RunState) -> dict[str, int]:
    """Return how many visible units have each status, in a fixed order."""
    found = dict.fromkeys(dict.fromkeys(STATUS_NAMES), 0)
    for unit in visible_units(state):
        found[STATUS_NAMES[state.status[unit]]] += 1
    return {status: count for status, count in found.items() if count}


def blocked_on(state: RunState, run: str, children: Mapping[int, SubagentView]) -> tuple[BlockedOn, ...]:
    """Return what waits for a person: gates, approvals, failed nodes of a parked run, and what sub-agents wait for."""
    waiting = [unit for unit, status in enumerate(state.status) if status == WAITING]
    groups = {node: waiting_in(state, node) for node in _groups(state)} if len(waiting) > 1 else {}
    members = dict.fromkeys(unit for units in groups.values() for unit in units)
    waiting.sort(key=lambda unit: unit in members)  # they are asked about together first
    found = [_together(state, node, units, run) for node, units in groups.items()]
    found += [_waiting(state, unit, run) for unit in waiting[:MAX_BLOCKED]]
    if state.parked:
        found += [_failed(state, unit, run) for unit in blocking_failures(state)[:MAX_BLOCKED]]
        found += [_budget(state, state.budget, run)] if state.waiting_budget and state.budget is not None else []
    passed_on = [(view.name, item) for view in children.values() for item in view.blocked][:MOST_PASSED_ON]
    return (*found, *(item.model_copy(update={"node": f"{name}.{item.node}"}) for name, item in passed_on))


def _waiting(state: RunState, unit: int, run: str) -> BlockedOn:
    spec, path = state.spec_of(unit), state.path(unit)
    request = state.expansion_requests.get(unit)
    if spec.kind == "gate":
        line, rest = _first_line(state.questions[unit].text if unit in state.questions else spec.question)
        value = example_value(spec.schema)
        text = json.dumps(value)
        if isinstance(value, str) and not value.startswith("-"):  # a flag does
            text = value
        return BlockedOn(
            node=path,
            why="gate",
            question=line,
            shown=rest,
            update="answer",
            example={"node": path, "value": value},
            command=shlex.join(["sennit", "answer", run, path, text]),
        )
    if request is None:
        question = state.questions.get(unit, Question(""))
        return _approval(path, f"may this run? {spec.summary}", question.text, question.token, run)
    return BlockedOn(
        node=path,
        why="replan",
        question=_replan_question(request),
        update="approve",
        example={"node": path},
        command=shlex.join(["sennit", "approve", run, path]),
        also=("reject",),
    )


def _approval(path: str, question: str, shown: str, token: str, run: str) -> BlockedOn:
    return BlockedOn(
        node=path,
        why="approval",
        question=question,
        shown=shown,
        update="approve",
        example={"node": path, "digest": token},
        command=shlex.join(["sennit", "approve", run, path, "--digest", token]),
        also=("reject",),
    )


def _groups(state: RunState) -> list[int]:
    """Return the maps, and the models that call tools, of which several writes wait: they may be approved together."""
    hosts = state.graph.fallback_for
    open_nodes = [
        node
        for node in range(len(state.graph.specs))
        if state.status[node] in (EXPANDED, AWAITING_FALLBACK)
        and (node not in hosts or state.status[hosts[node]] != AWAITING_FALLBACK)
    ]
    return [node for node in open_nodes if len(waiting_in(state, node)) > 1][:MAX_BLOCKED]


def _together(state: RunState, node: int, units: list[int], run: str) -> BlockedOn:
    """Return the question about all that waits in a map or a tool loop: a line of each. Each asks by itself too."""
    shown = "\n".join(
        f"{state.path(unit)}  {one_line(state.questions.get(unit, Question('')).text, LINE_CHARACTERS)}"
        for unit in units[:MAX_BLOCKED]
    )
    if len(units) > MAX_BLOCKED:
        shown += f"\nand {len(units) - MAX_BLOCKED} more; read them all: {shlex.join(['sennit', 'status', run])}"
    question = f"may these {len(units)} run? {state.graph.specs[node].summary}"
    together = _approval(state.path(node), question, shown, token_of(state, units), run)
    return together.model_copy(update={"parts": len(units)})


def _first_line(text: str) -> tuple[str, str]:
    """Return a question's first line and the rest; of a long line only the beginning, and then it is in the rest."""
    line, _, rest = text.strip().partition("\n")
    return (line, rest.strip("\n")) if len(line) <= QUESTION_CHARACTERS else (_cut(line, QUESTION_CHARACTERS), text)


def _replan_question(request: ExpansionRequest) -> str:
    """Return what a person is asked about a replan. The number of nodes comes first: boards cut long questions."""
    count = f"{request.nodes:,} more nodes" if request.nodes != 1 else "1 more node"
    cost = f", about {request.tokens:,} tokens" if request.tokens else ""
    left = request.nodes - len(request.summaries)
    names = "; ".join([*request.summaries, *([f"and {left:,} more"] if left > 0 else [])])
    return f"may it add {count}{cost}? {request.why}: {names}"


def _failed(state: RunState, unit: int, run: str) -> BlockedOn:
    path, writes = state.path(unit), repeated(state, unit)
    error = error_at_place(state, unit) or "it failed"
    example: dict[str, JsonValue] = {"node": path}
    command = ["sennit", "retry", run, path]
    if AGAIN in state.deadlines and unit in outages(state):
        error += f"; {tried_again_at(state.deadlines[AGAIN])}"
    if writes:
        error += f"; to run it again may repeat what {names_of(state, writes)} wrote"
        example["repeat_effect"] = True
        command.append("--repeat-effect")
    return BlockedOn(
        node=path,
        why="failed",
        question=error,
        update="retry_node",
        example=example,
        command=shlex.join(command),
        also=("skip_node", *_others(state, unit)),
    )


def _others(state: RunState, unit: int) -> tuple[str, ...]:
    """Return what else than a retry may help: a script that has failed by itself fails again."""
    if state.kind_of(unit) == "program":
        return ("edit_program",)
    return ("answer",) if takes_answer(state, unit) else ()


def tried_again_at(millis: int) -> str:
    """Return when what an outage has failed is tried again, as people read it."""
    return f"tried again at {datetime.fromtimestamp(millis / 1000, UTC):%H:%M:%S} UTC"


def _spent(budget: Budget, names: Iterable[str]) -> str:
    rows = ledger(budget)
    parts = (f"{name} {rows[name]['spent']} of {rows[name]['limit']}" for name in names)
    return f"the budget is spent ({', '.join(parts)})"


def _budget(state: RunState, budget: Budget, run: str) -> BlockedOn:
    """Return what waits for more budget; the example doubles the limits that are in the way, or lets a program make the
    least of its calls.
    """
    lack = shortage(state, state.waiting_budget)
    names = budget.short() or (["calls"] if lack else list(budget.limits))
    doubled = {name: 2 * max(budget.limits[name], getattr(budget.spent, name)) for name in names}
    if lack and "calls" in doubled:
        doubled["calls"] = max(doubled["calls"], budget.limits["calls"] + lack[0])
    limits = Limits(**limit_fields(doubled)).model_dump(exclude_none=True)
    count = len(state.waiting_budget)
    ready = f"{count} nodes are ready and wait" if count != 1 else "1 node is ready and waits"
    return BlockedOn(
        node="",
        why="budget",
        question=f"{lack[1] if lack else _spent(budget, names)}; {ready}",
        update="raise_budget",
        example=limits,
        command=shlex.join(
            ["sennit", "update", run, "raise_budget", *(f"{name}={limit}" for name, limit in limits.items())]
        ),
    )


def report_of(state: RunState, status: RunStatus, found: Conclusion, unanswered: str) -> RunReport:
    """Return the report of an ended run, but for what only the workflow knows: ids, usage, warnings.

    `unanswered` says why the answer could not be put together, if it could not.
    """
    lines, left_out = report_lines(state)
    failed = [f"{line.id}: {line.error}" for line in lines if line.status == "failed"]
    problem = unanswered or "; ".join(failed[:3])
    if not problem and state.budget is not None and (short := state.budget.short()):
        problem = _spent(state.budget, short)
    never_began = [unit for unit, end in enumerate(state.status) if end == SKIPPED and unit not in state.notes]
    if not problem and (lack := shortage(state, never_began)):
        problem = lack[1]
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
        problem=problem or None if status != "done" else None,
        quote=quote_line(state),
    )
