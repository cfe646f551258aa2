"""What a run waits for a person to decide, each with the update and the command that does it."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
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
from sennit.workflows.plan.scheduling.programs import PROGRAM_FAILED
from sennit.workflows.plan.scheduling.ready import unpaid
from sennit.workflows.plan.scheduling.retry import repeated, takes_answer
from sennit.workflows.plan.scheduling.state import NEXT_TRY, RunState
from sennit.workflows.plan.scheduling.termination import blocking_failures, outages
from sennit.workflows.plan.scheduling.unit import DELEGATED, EXPANDED, FAILED, IN_DOUBT, WAITING
from sennit.workflows.views.example import example_value, full_example
from sennit.workflows.views.nodes import error_at_place
from sennit.workflows.views.quote import Shortage, shortage, spent
from sennit.workflows.views.writes import names_of


def blocked_on(
    state: RunState, run: str, children: Mapping[int, SubagentView]
) -> tuple[BlockedOn, ...]:
    """Return what waits for a person: gates, approvals, writes in doubt, failed nodes of a parked
    run, and what sub-agents wait for. While the plan waits itself, nothing else does.
    """
    if state.held is not None:
        return (_plan(state, state.held, run),)
    found = _waiting_units(state, run)
    if state.parked:
        for unit in blocking_failures(state)[:MAX_BLOCKED]:
            found.append(_failed(state, unit, run))
        waiting = unpaid(state)
        if waiting and state.budget is not None:
            found.append(_budget(state, state.budget, waiting, run))
    elif state.on_failure == "park":
        # No other node sees a write in doubt before a person has decided, so the run
        # asks although it goes on.
        for unit in islice(state.units_in(IN_DOUBT), MAX_BLOCKED):
            found.append(_failed(state, unit, run))
    return (*found, *islice(_passed_on(children), MAX_PASSED_ON))


def _waiting_units(state: RunState, run: str) -> list[BlockedOn]:
    """Return the gates and approvals. Writes that may be approved together are asked about together
    first, then each by itself, behind those that nothing else asks about.
    """
    waiting = state.units_in(WAITING)
    found: list[BlockedOn] = []
    members: dict[int, None] = {}
    if len(waiting) > 1:
        for node in _groups(state):
            units = waiting_in(state, node)
            members |= dict.fromkeys(units)
            found.append(_together(state, node, units, run))
    waiting.sort(key=lambda unit: unit in members)
    for unit in waiting[:MAX_BLOCKED]:
        found.append(_waiting(state, unit, run))
    return found


def _passed_on(children: Mapping[int, SubagentView]) -> Iterator[BlockedOn]:
    """Yield the questions of sub-agents, under the names that their nodes have here."""
    for view in children.values():
        for item in view.blocked:
            node = view.name
            if item.node:
                node += f".{item.node}"
            yield item.model_copy(update={"node": node})


def _waiting(state: RunState, unit: int, run: str) -> BlockedOn:
    """Return what one unit waits for: the answer of its gate, or the approval of its write."""
    spec = state.spec_of(unit)
    if spec.kind == "gate":
        return _gate(state, unit, run)
    path = state.path(unit)
    asks = f"may this run? {spec.summary}"
    question = state.questions.get(unit, Question(""))
    asked = _approval(path, asks, run, shown=question.text, token=question.token())
    return asked.model_copy(update={"arguments": question.arguments})


def _gate(state: RunState, unit: int, run: str) -> BlockedOn:
    spec = state.spec_of(unit)
    path = state.path(unit)
    text = spec.question
    if unit in state.questions:
        text = state.questions[unit].text
    line, rest = _first_line(text)

    # A text needs no quotes in a command, unless it would be read as a flag.
    value = example_value(spec.schema)
    argument = json.dumps(value)
    if isinstance(value, str) and not value.startswith("-"):
        argument = value
    return BlockedOn(
        node=path,
        why="gate",
        question=line,
        shown=rest,
        update="answer",
        example={"node": path, "value": value},
        full=full_example(spec.schema),
        command=shlex.join(["sennit", "answer", run, path, argument]),
    )


def _plan(state: RunState, asked: Question, run: str) -> BlockedOn:
    """Return the question about the plan: its forecast, and a line of each node."""
    lines = []
    if asked.text:
        lines.append(asked.text)
    room = MAX_QUESTION_CHARACTERS - len(asked.text)
    count = len(state.graph.specs)
    for node, spec in enumerate(state.graph.specs):
        room -= len(spec.summary) + 1
        if room < 0:
            lines.append(f"and {count - node} more nodes")
            break
        lines.append(spec.summary)
    export = shlex.join(["sennit", "plan", "export", run])
    lines.append(f"the whole plan: {export}")
    nodes = f"{count} nodes"
    if count == 1:
        nodes = "1 node"
    return BlockedOn(
        node="",
        why="plan",
        question=f"may this plan of {nodes} run?",
        shown="\n".join(lines),
        update="approve",
        example={"digest": asked.token()},
        command=shlex.join(["sennit", "approve", run, "--digest", asked.token()]),
        also=("reject", "edit_plan"),
    )


def _approval(path: str, question: str, run: str, *, shown: str, token: str) -> BlockedOn:
    """Return the question whether a write may run; with a `token`, the approval holds
    only for what was shown.
    """
    example: dict[str, JsonValue] = {"node": path}
    command = ["sennit", "approve", run, path]
    if token:
        example["digest"] = token
        command += ["--digest", token]
    return BlockedOn(
        node=path,
        why="approval",
        question=question,
        shown=shown,
        update="approve",
        example=example,
        command=shlex.join(command),
        also=("reject",),
    )


def _groups(state: RunState) -> list[int]:
    """Return the maps, and the models that call tools, of which several writes wait: they
    may be approved together.
    """
    found = []
    for node in range(len(state.graph.specs)):
        if state.units[node].status not in (EXPANDED, DELEGATED):
            continue
        # The first turn of a tool loop stands for all of its turns.
        host = state.graph.predecessor.get(node)
        is_further_turn = host is not None and state.units[host].status == DELEGATED
        if not is_further_turn and len(waiting_in(state, node)) > 1:
            found.append(node)
    return found[:MAX_BLOCKED]


def _together(state: RunState, node: int, units: list[int], run: str) -> BlockedOn:
    """Return the question about all that waits in a map or a tool loop: a line of each.
    Each asks by itself too.
    """
    lines = []
    for unit in units[:MAX_BLOCKED]:
        asked = state.questions.get(unit, Question(""))
        line = one_line(asked.text, MAX_LINE_CHARACTERS)
        lines.append(f"{state.path(unit)}  {line}")
    left = len(units) - MAX_BLOCKED
    if left > 0:
        command = shlex.join(["sennit", "status", run])
        lines.append(f"and {left} more; read them all: {command}")
    path = state.path(node)
    summary = state.graph.specs[node].summary
    question = f"may these {len(units)} run? {summary}"
    token = token_of(state, units)
    together = _approval(path, question, run, shown="\n".join(lines), token=token)
    return together.model_copy(update={"parts": len(units)})


def _first_line(text: str) -> tuple[str, str]:
    """Return a question's first line and the rest; of a long line only the beginning, and
    then it is in the rest.
    """
    line, _, rest = text.strip().partition("\n")
    if len(line) > MAX_ASKED_CHARACTERS:
        return cut(line, MAX_ASKED_CHARACTERS), text
    return line, rest.strip("\n")


def _failed(state: RunState, unit: int, run: str) -> BlockedOn:
    """Return the question about a failed unit: it is run again, unless a person knows better."""
    error = error_at_place(state, unit) or "it failed"

    # A map would run all of its items again: the first that failed is run again in its place.
    again = unit
    items: list[int] = []
    for item in state.items.get(unit, ()):
        if state.units[item].status == FAILED:
            items.append(item)
    if items:
        again = items[0]
        per_item = state.graph.specs[state.node_of(unit)].per_item
        count = len(state.items[unit]) // per_item
        names = format_names(map(state.path, items), MAX_NAMED_ITEMS)
        error = f"{len(items):,} of {count:,} items failed, {names}: {error}"
    if NEXT_TRY in state.deadlines and unit in outages(state):
        error += f"; {tried_again_at(state.deadlines[NEXT_TRY])}"
    kind = state.notes.get(unit, ("",))[0]
    if state.kind_of(unit) == "program" and kind == PROGRAM_FAILED:
        return _script_error(state, unit, run, error)

    # A person who repeats a write must say so.
    path = state.path(again)
    example: dict[str, JsonValue] = {"node": path}
    command = ["sennit", "retry", run, path]
    writes = repeated(state, again)
    if writes:
        error += f"; to run it again may repeat what {names_of(state, writes)} wrote"
        example["repeat_effect"] = True
        command.append("--repeat-effect")
    return BlockedOn(
        node=state.path(unit),
        why="failed",
        question=error,
        update="retry_node",
        example=example,
        command=shlex.join(command),
        also=("skip_node", *_alternatives(state, unit)),
    )


def _script_error(state: RunState, unit: int, run: str, error: str) -> BlockedOn:
    """Return the question about a script that has failed by itself: it fails
    again, so it is edited.
    """
    graph = state.graph
    name = state.path(graph.program_of(state.node_of(unit)))
    command = ["sennit", "edit", run, "FILE.py"]
    programs = [spec for spec in graph.specs if spec.is_program]
    if len(programs) > 1:
        command += ["--node", name]
    return BlockedOn(
        node=name,
        why="failed",
        question=error,
        update="edit_program",
        example={"node": name, "script": "async def main(): ..."},
        command=shlex.join(command),
        also=("retry_node", "skip_node"),
    )


def _alternatives(state: RunState, unit: int) -> tuple[str, ...]:
    """Return what else than a retry may help: a script that has failed by itself fails again."""
    if state.kind_of(unit) == "program":
        return ("edit_program",)
    if takes_answer(state, unit):
        return ("answer",)
    return ()


def tried_again_at(millis: int) -> str:
    """Return when what an outage has failed is tried again, as people read it."""
    return f"tried again at {datetime.fromtimestamp(millis / 1000, UTC):%H:%M:%S} UTC"


def _budget(state: RunState, budget: Budget, waiting: list[int], run: str) -> BlockedOn:
    """Return the question about the units that wait for more budget. The example doubles the limits
    that are in the way, or lets a program make the least of its calls. Where a limit has reached
    its ceiling, the run can only end.
    """
    exceeded = budget.short()
    missing = shortage(state, waiting)
    names = list(exceeded)
    if not names and missing:
        names = ["calls"]
    elif not names:
        names = list(budget.limits)

    ready = "1 node is ready and waits"
    if len(waiting) != 1:
        ready = f"{len(waiting)} nodes are ready and wait"
    if missing:
        why = missing.sentence
    else:
        why = spent(budget, names)
    question = f"{why}; {ready}"

    limits = _raised_limits(budget, names, missing)
    can_raise_all = all(name in limits for name in exceeded)
    if not limits or not can_raise_all:
        return BlockedOn(
            node="",
            why="budget",
            question=f"{question}; SENNIT_BUDGET_MAX of the workers allows no more",
            update="finish",
            example={},
            command=shlex.join(["sennit", "update", run, "finish"]),
        )
    example = Limits(**limit_fields(limits)).model_dump(exclude_none=True)
    command = ["sennit", "update", run, "raise_budget"]
    for name, limit in example.items():
        command.append(f"{name}={limit}")
    return BlockedOn(
        node="",
        why="budget",
        question=question,
        update="raise_budget",
        example=example,
        command=shlex.join(command),
    )


def _raised_limits(
    budget: Budget, names: Sequence[str], missing: Shortage | None
) -> dict[str, int]:
    """Return higher limits of these names, as far as the ceilings of the workers allow it."""
    raised = {}
    for name in names:
        limit = budget.limits[name]
        wanted = 2 * max(limit, getattr(budget.spent, name))
        if missing and name == "calls":
            wanted = max(wanted, limit + missing.calls)
        highest = min(wanted, budget.ceilings.get(name, wanted))
        if highest > limit:
            raised[name] = highest
    return raised
