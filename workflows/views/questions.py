"""What a run waits for a person to decide, each with the update and the command that does it."""

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice

from pydantic import JsonValue

from sennit.workflows.limits import (
    MAX_ASKED_CHARACTERS,
    MAX_BLOCKED,
    MAX_LINE_CHARACTERS,
    MAX_NAMED_ITEMS,
    MAX_PASSED_ON,
    MAX_QUESTION_CHARACTERS,
)
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.views import SubagentView
from sennit.workflows.plan.language.limits import Limits, limit_fields
from sennit.workflows.plan.language.text import cut, format_names, one_line
from sennit.workflows.plan.scheduling.admission import token_of, waiting_in
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.events import Question
from sennit.workflows.plan.scheduling.ready import unpaid
from sennit.workflows.plan.scheduling.retry import repeated, takes_answer
from sennit.workflows.plan.scheduling.state import (
    DELEGATED,
    EXPANDED,
    FAILED,
    IN_DOUBT,
    NEXT_TRY,
    WAITING,
    RunState,
)
from sennit.workflows.plan.scheduling.termination import PROGRAM_FAILED, blocking_failures, outages
from sennit.workflows.views.example import example_value, full_example
from sennit.workflows.views.nodes import error_at_place
from sennit.workflows.views.quote import shortage, spent
from sennit.workflows.views.writes import names_of


def blocked_on(state: RunState, run: str, children: Mapping[int, SubagentView]) -> tuple[BlockedOn, ...]:
    """Return what waits for a person: gates, approvals, writes in doubt, failed nodes of a parked run, and what
    sub-agents wait for. While the plan waits itself, nothing else does.
    """
    if state.held is not None:
        return (_plan(state, state.held, run),)
    waiting = state.units_in(WAITING)
    groups = {node: waiting_in(state, node) for node in _groups(state)} if len(waiting) > 1 else {}
    members = dict.fromkeys(unit for units in groups.values() for unit in units)
    waiting.sort(key=lambda unit: unit in members)  # they are asked about together first
    found = [_together(state, node, units, run) for node, units in groups.items()]
    found += [_waiting(state, unit, run) for unit in waiting[:MAX_BLOCKED]]
    if not state.parked and state.on_failure == "park":
        doubts = state.units_in(IN_DOUBT)
        found += [_failed(state, unit, run) for unit in islice(doubts, MAX_BLOCKED)]
    if state.parked:
        found += [_failed(state, unit, run) for unit in blocking_failures(state)[:MAX_BLOCKED]]
        waiting = unpaid(state)
        found += [_budget(state, state.budget, waiting, run)] if waiting and state.budget is not None else []
    passed_on = [(view.name, item) for view in children.values() for item in view.blocked][:MAX_PASSED_ON]
    for name, item in passed_on:
        node = f"{name}.{item.node}" if item.node else name
        found.append(item.model_copy(update={"node": node}))
    return tuple(found)


def _waiting(state: RunState, unit: int, run: str) -> BlockedOn:
    spec, path = state.spec_of(unit), state.shown(unit)
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
            full=full_example(spec.schema),
            command=shlex.join(["sennit", "answer", run, path, text]),
        )
    question = state.questions.get(unit, Question(""))
    asked = _approval(path, "approval", f"may this run? {spec.summary}", run, question.text, question.token())
    return asked.model_copy(update={"arguments": question.arguments})


def _plan(state: RunState, asked: Question, run: str) -> BlockedOn:
    """Return the question about the plan: its forecast, and a line of each node."""
    summaries = [spec.summary for spec in state.graph.specs]
    lines, room = [asked.text] if asked.text else [], MAX_QUESTION_CHARACTERS - len(asked.text)
    for place, summary in enumerate(summaries):
        room -= len(summary) + 1
        if room < 0:
            lines.append(f"and {len(summaries) - place} more nodes")
            break
        lines.append(summary)
    lines.append(f"the whole plan: {shlex.join(['sennit', 'plan', 'export', run])}")
    count = len(summaries)
    return BlockedOn(
        node="",
        why="plan",
        question=f"may this plan of {count} node{'s' * (count != 1)} run?",
        shown="\n".join(lines),
        update="approve",
        example={"digest": asked.token()},
        command=shlex.join(["sennit", "approve", run, "--digest", asked.token()]),
        also=("reject", "edit_plan"),
    )


def _approval(path: str, why: str, question: str, run: str, shown: str = "", token: str = "") -> BlockedOn:
    """Return what is approved or refused; with a `token`, only what was shown."""
    digest: dict[str, JsonValue] = {"digest": token} if token else {}
    return BlockedOn(
        node=path,
        why=why,
        question=question,
        shown=shown,
        update="approve",
        example={"node": path, **digest},
        command=shlex.join(["sennit", "approve", run, path, *(["--digest", token] if token else [])]),
        also=("reject",),
    )


def _groups(state: RunState) -> list[int]:
    """Return the maps, and the models that call tools, of which several writes wait: they may be approved together."""
    hosts = state.graph.predecessor
    open_nodes = [
        node
        for node in range(len(state.graph.specs))
        if state.status[node] in (EXPANDED, DELEGATED) and (node not in hosts or state.status[hosts[node]] != DELEGATED)
    ]
    return [node for node in open_nodes if len(waiting_in(state, node)) > 1][:MAX_BLOCKED]


def _together(state: RunState, node: int, units: list[int], run: str) -> BlockedOn:
    """Return the question about all that waits in a map or a tool loop: a line of each. Each asks by itself too."""
    shown = "\n".join(
        f"{state.shown(unit)}  {one_line(state.questions.get(unit, Question('')).text, MAX_LINE_CHARACTERS)}"
        for unit in units[:MAX_BLOCKED]
    )
    if len(units) > MAX_BLOCKED:
        shown += f"\nand {len(units) - MAX_BLOCKED} more; read them all: {shlex.join(['sennit', 'status', run])}"
    question = f"may these {len(units)} run? {state.graph.specs[node].summary}"
    together = _approval(state.shown(node), "approval", question, run, shown, token_of(state, units))
    return together.model_copy(update={"parts": len(units)})


def _first_line(text: str) -> tuple[str, str]:
    """Return a question's first line and the rest; of a long line only the beginning, and then it is in the rest."""
    line, _, rest = text.strip().partition("\n")
    return (line, rest.strip("\n")) if len(line) <= MAX_ASKED_CHARACTERS else (cut(line, MAX_ASKED_CHARACTERS), text)


def _failed(state: RunState, unit: int, run: str) -> BlockedOn:
    path, error = state.shown(unit), error_at_place(state, unit) or "it failed"
    items = [item for item in state.items.get(unit, ()) if state.status[item] == FAILED]
    again = items[0] if items else unit  # a map would run all of its items again
    if items:
        count = len(state.items[unit]) // state.graph.specs[state.node_of(unit)].per_item
        names = format_names(map(state.shown, items), MAX_NAMED_ITEMS)
        error = f"{len(items):,} of {count:,} items failed, {names}: {error}"
    writes = repeated(state, again)
    example: dict[str, JsonValue] = {"node": state.shown(again)}
    command = ["sennit", "retry", run, state.shown(again)]
    if NEXT_TRY in state.deadlines and unit in outages(state):
        error += f"; {tried_again_at(state.deadlines[NEXT_TRY])}"
    if state.kind_of(unit) == "program" and state.notes.get(unit, ("",))[0] == PROGRAM_FAILED:
        return _script_error(state, unit, run, error)
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


def _script_error(state: RunState, unit: int, run: str, error: str) -> BlockedOn:
    """Return the question about a script that has failed by itself: it fails again, so it is edited."""
    graph = state.graph
    node = graph.program_of(state.node_of(unit))
    others = sum(spec.is_program for spec in graph.specs) > 1
    command = ["sennit", "edit", run, "FILE.py", *(["--node", state.shown(node)] if others else [])]
    return BlockedOn(
        node=state.shown(node),
        why="failed",
        question=error,
        update="edit_program",
        example={"node": state.shown(node), "script": "async def main(): ..."},
        command=shlex.join(command),
        also=("retry_node", "skip_node"),
    )


def _others(state: RunState, unit: int) -> tuple[str, ...]:
    """Return what else than a retry may help: a script that has failed by itself fails again."""
    if state.kind_of(unit) == "program":
        return ("edit_program",)
    return ("answer",) if takes_answer(state, unit) else ()


def tried_again_at(millis: int) -> str:
    """Return when what an outage has failed is tried again, as people read it."""
    return f"tried again at {datetime.fromtimestamp(millis / 1000, UTC):%H:%M:%S} UTC"


def _budget(state: RunState, budget: Budget, waiting: list[int], run: str) -> BlockedOn:
    """Return the question about the units that wait for more budget. The example doubles the limits that are in the
    way, or lets a program make the least of its calls. Where a limit has reached its ceiling, the run can only end.
    """
    missing = shortage(state, waiting)
    names = budget.short() or (["calls"] if missing else list(budget.limits))
    doubled = {name: 2 * max(budget.limits[name], getattr(budget.spent, name)) for name in names}
    if missing and "calls" in doubled:
        doubled["calls"] = max(doubled["calls"], budget.limits["calls"] + missing[0])
    count = len(waiting)
    ready = f"{count} nodes are ready and wait" if count != 1 else "1 node is ready and waits"
    question = f"{missing[1] if missing else spent(budget, names)}; {ready}"

    higher = {}
    for name, limit in doubled.items():
        highest = min(limit, budget.ceilings.get(name, limit))
        if highest > budget.limits[name]:
            higher[name] = highest
    if not higher or any(name not in higher for name in budget.short()):
        return BlockedOn(
            node="",
            why="budget",
            question=f"{question}; SENNIT_BUDGET_MAX of the workers allows no more",
            update="finish",
            example={},
            command=shlex.join(["sennit", "update", run, "finish"]),
        )
    limits = Limits(**limit_fields(higher)).model_dump(exclude_none=True)
    return BlockedOn(
        node="",
        why="budget",
        question=question,
        update="raise_budget",
        example=limits,
        command=shlex.join(
            ["sennit", "update", run, "raise_budget", *(f"{name}={limit}" for name, limit in limits.items())]
        ),
    )
