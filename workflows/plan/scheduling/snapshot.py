"""A run's state as one line of text, from which the next run of a chain continues.

Columns compress well and digests do not: a node costs about 30 bytes, and 30 more if its output lies in its marker. So
10,000 nodes stay under 700 KB. `load(graph, dump(state))` schedules exactly as `state` would.
"""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.packing import pack, unpack
from sennit.workflows.plan.limits import MAX_SNAPSHOT_BYTES
from sennit.workflows.plan.scheduling import joins, programs, ready
from sennit.workflows.plan.scheduling.budget import Budget, Rate, Slice
from sennit.workflows.plan.scheduling.events import Approval, Effect, Question
from sennit.workflows.plan.scheduling.locks import Lock
from sennit.workflows.plan.scheduling.session import Advance, Session
from sennit.workflows.plan.scheduling.state import (
    DRAIN,
    ENDED,
    FAILED,
    ITEMS,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)
from sennit.workflows.plan.scheduling.waits import CAUSES

_COLUMNS = ("status", "generation", "digest", "size", "attempts", "millis", "queued")
_NODE_COLUMNS = ("open_deps", "open_inputs", "ok_inputs", "awaiting_inputs")
_SPARSE = (
    "facts",
    "notes",
    "inherited_failure",
    "previous_result",
    "chosen",
    "answers",
    "approved",
    "questions",
    "deadlines",
    "past_deadline",
    "alone",
    "prompts",
    "shared",
    "ended_at",
)
_LIMITS = ("window", "in_flight", "park_for")
_OLDER = "it began under an earlier version of Sennit, whose programs this one cannot go on with: edit the program"
_SCALARS = (*_LIMITS, "on_failure", "now", "running", "waiting", "begun", "parked", "ended", "forks")


def dump(state: RunState) -> str:
    """Return the whole state as text."""
    body: dict[str, Any] = {name: getattr(state, name) for name in (*_NODE_COLUMNS, *_SCALARS)}
    units = state.units()
    body.update({name: [getattr(state, name)[unit] for unit in units] for name in _COLUMNS})
    body["digest"] = ["" if _is_manifest_of_now(state, unit) else state.digest[unit] for unit in units]
    body.update({name: list(getattr(state, name).items()) for name in _SPARSE})
    body["answers"] = [
        (unit, value if state.status[unit] != SUCCEEDED else None)  # it is the output by now
        for unit, value in state.answers.items()
        if state.status[unit] != SUCCEEDED or state.kind_of(unit) != "gate"
    ]
    body["deadlines"] = [(unit, at) for unit, at in state.deadlines.items() if unit != DRAIN]
    body["objections"] = list(state.objections.items())
    body["owner"] = _runs(state.owner)
    if len(state.status) < len(state.graph.specs) + len(state.owner):
        body["kept"] = [unit - ITEMS for unit in units if unit >= ITEMS]
    body["items"] = [[node, items.start, len(items)] for node, items in state.items.items()]
    body["locks"] = [[name, lock.mode, *lock.holders] for name, lock in state.locks.items() if lock.holders]
    body["last_end"] = state.last_end
    body["most_agents"] = state.most_agents
    body["started"] = [state.now - state.started[unit] if state.started[unit] else None for unit in units]
    body["timings"] = astuple(state.timings)
    _dump_record(state, units, body)
    if state.held is not None:
        body["held"] = state.held
    if state.effects:
        body["effects"] = list(state.effects.items())
    if state.sessions:
        body["programs"] = [[program, *_session_rows(session)] for program, session in state.sessions.items()]
    if state.resumed:
        body["resumed"] = list(state.resumed)
    if state.taken_over:
        body["taken_over"] = list(state.taken_over)
    if state.pause:
        body["again"] = [state.park_until, state.pause]
    if state.budget is not None:
        body["budget"] = state.budget.dump()
    if state.slices:
        body["slices"] = [[holder, each.budget.dump()] for holder, each in state.slices.items()]
    if state.paid:
        body["paid"] = list(state.paid.items())
    if state.rates:
        body["rates"] = [[queue, rate.limit, rate.calls, rate.ended] for queue, rate in state.rates.items()]
    return pack(body)


def load(graph: Graph, text: str) -> RunState:
    """Return the state that `dump` wrote, over the same graph."""
    body = unpack(text, MAX_SNAPSHOT_BYTES)
    state = RunState(graph)
    state.owner = [(node, item) for node, count in body["owner"] for item in range(count)]
    kept = body.get("kept", range(len(state.owner)))
    units = [*state.units(), *(ITEMS + place for place in kept)]
    for name in _COLUMNS:
        getattr(state, name).update(zip(units, body[name], strict=True))
    for name in (*_NODE_COLUMNS, *_SCALARS):
        setattr(state, name, body[name])
    for name in _SPARSE:
        setattr(state, name, dict(body[name]))
    # The versions before do not write them.
    state.last_end = body.get("last_end", max(state.ended_at.values(), default=0))
    state.most_agents = body.get("most_agents", state.most_agents)
    state.objections = {unit: tuple(texts) for unit, texts in body["objections"]}
    fuse, workers, known, measured = body["timings"]
    state.timings = Timings(fuse, workers, known, {tool: (count, total) for tool, (count, total) in measured.items()})
    for first in state.shared.values():
        state.together[first] = state.together.get(first, 0) + 1
    state.notes = {unit: (kind, message) for unit, (kind, message) in body["notes"]}
    state.approved = {unit: Approval(*fields) for unit, fields in body["approved"]}
    state.questions = {unit: Question(*fields) for unit, fields in body["questions"]}
    state.effects = {unit: tuple(Effect(*each) for each in found) for unit, found in body.get("effects", ())}
    state.held = Question(*body["held"]) if "held" in body else None
    for program, *rows in body.get("programs", ()):
        state.sessions[program] = _session_of(*rows)
    state.resumed = dict.fromkeys(body.get("resumed", ()), True)
    state.taken_over = dict.fromkeys(body.get("taken_over", ()), True)
    state.chosen = {join: tuple(nodes) for join, nodes in body["chosen"]}
    state.items = {node: range(first, first + count) for node, first, count in body["items"]}
    state.digest |= {unit: joins.manifest(state, unit) for unit in units if state.digest[unit] == ""}
    state.park_until, state.pause = body.get("again", (0, 0))
    state.budget = Budget.load(body["budget"]) if "budget" in body else None
    state.slices = {holder: Slice(Budget.load(rows)) for holder, rows in body.get("slices", ())}
    state.paid = {unit: Usage(*paid) for unit, paid in body.get("paid", ())}
    ready.renew(state, {queue: Rate(*counts) for queue, *counts in body.get("rates", ())})
    for name, mode, *holders in body["locks"]:
        state.locks[name] = Lock(mode, dict.fromkeys(holders))
    _load_started(state, units, body)
    for unit, _ in body.get("expansion_requests", ()):  # the version before asked a person about a model's replan
        if state.status[unit] == WAITING:
            state.status[unit], state.queued[unit] = PENDING, True
            state.waiting -= 1
    for unit in units:
        if state.queued[unit]:
            ready.queue(state, unit)
    _load_record(state, units, body)  # what is queued again has waited before
    _park_older_programs(state, body.get("sessions", ()))
    return state


def _is_manifest_of_now(state: RunState, unit: int) -> bool:
    """Whether a unit's output is a manifest that can be made again from the digests of its inputs."""
    reference = state.digest[unit] or ""
    inputs = joins.parts_of(state, unit) if not state.is_item(unit) else ()
    is_flat = not any(joins.is_manifest(state.digest[node] or "") for node in inputs)
    return bool(inputs) and is_flat and joins.is_manifest(reference) and reference == joins.manifest(state, unit)


def _load_started(state: RunState, units: list[int], body: dict[str, Any]) -> None:
    """Read when units last started, which is written as how long ago that was. The version before did not write it:
    there they started now.
    """
    ages = body.get("started")
    if ages is None:
        state.started = dict.fromkeys(units, state.now)
        return
    for unit, age in zip(units, ages, strict=True):
        state.started[unit] = state.now - age if age is not None else 0


def _dump_record(state: RunState, units: list[int], body: dict[str, Any]) -> None:
    """Write what only figures are made of: when calls began after they had started, how long they took, what they have
    used, and for what units wait and have waited.
    """
    if state.spans:
        delays: list[int | None] = []
        took: list[int | None] = []
        for unit in units:
            began, ended = state.spans.get(unit, (None, 0))
            delays.append(began - state.started[unit] if began is not None else None)
            took.append(ended - began if began is not None else None)
        body["delays"], body["took"] = delays, took
    if state.used:
        body["used"] = list(state.used.items())
    waits = state.waits
    waiting = [(unit, cause, state.now - since) for unit, (cause, since) in waits.open.items()]
    body["waits"] = [list(waits.total.values()), waits.asked, waits.asked_since, waiting]


def _load_record(state: RunState, units: list[int], body: dict[str, Any]) -> None:
    """Read it again. The version before did not write it: its calls have waited for nothing that anybody knows."""
    delays, took = body.get("delays", ()), body.get("took", ())
    for unit, delay, millis in zip(units, delays, took, strict=False):
        if delay is not None:
            began = state.started[unit] + delay
            state.spans[unit] = began, began + millis
    state.used = {unit: Usage(*used) for unit, used in body.get("used", ())}
    waits, (total, asked, since, waiting) = state.waits, body.get("waits", (None, (), None, ()))
    if total is not None:
        waits.total = dict(zip(CAUSES, total, strict=True))
    waits.asked = [(begin, end) for begin, end in asked]
    waits.asked_since = since
    waits.open = {unit: (cause, state.now - age) for unit, cause, age in waiting}


def _park_older_programs(state: RunState, sessions: Sequence[Sequence[Any]]) -> None:
    """Have programs fail by name that an earlier version has begun: one that noted their `sessions` in another way, or
    that had the steps of a script as nodes of the graph.

    A person edits them. Until then their calls are those that a script has left, and has not made again.
    """
    graph = state.graph
    steps = _steps_of_older_programs(state)
    for step, program in steps.items():
        graph.cut_off([step])
        state.status[step], state.notes[step] = SKIPPED, ("Replaced", "programs have no steps any more")
        state.queued[step] = False
        graph.specs[program].successor = -1

    older = [program for program, *_ in sessions]
    for program in dict.fromkeys((*older, *steps.values())):
        made_by = (program, *(step for step, other in steps.items() if other == program))
        calls = [call for maker in made_by for call in graph.made_by(maker) if call not in steps]
        graph.give_calls(calls, program)
        state.sessions[program] = Session(left=dict.fromkeys(sorted(calls)))
        if state.status[program] not in ENDED:
            state.queued[program] = False
            state.status[program], state.notes[program] = FAILED, (programs.PROGRAM_FAILED, _OLDER)


def _steps_of_older_programs(state: RunState) -> dict[int, int]:
    """Return the steps of programs of which no session is known, each with its program: this version notes one for
    each that has begun.
    """
    graph = state.graph
    steps = dict[int, int]()
    for step, spec in enumerate(graph.specs):
        program = graph.program_of(step)
        if spec.kind == "program" and program != step and program not in state.sessions:
            steps[step] = program
    return steps


def _session_rows(session: Session) -> list[Any]:
    """Return where a program stands as lists."""
    advances = [list(astuple(advance)) for advance in session.advances]
    names = list(session.names.items())
    left, spared = list(session.left), list(session.spared)
    return [advances, list(session.calls.items()), list(session.waits), left, spared, names]


def _session_of(
    advances: list[Any],
    calls: list[Any],
    waits: list[int],
    left: list[int],
    spared: list[int],
    names: list[tuple[int, str]],
) -> Session:
    """Return where a program stands."""
    session = Session(calls=dict(calls), waits=dict.fromkeys(waits), left=dict.fromkeys(left))
    session.spared = dict.fromkeys(spared)
    for call, name in names:
        session.take_over(call, name)
    session.advances = [Advance(digest, tuple(told), tuple(past)) for digest, told, past in advances]
    for number, advance in enumerate(session.advances[:-1]):
        session.heard |= dict.fromkeys(advance.told, number)
    return session


def _runs(owner: list[tuple[int, int]]) -> list[list[int]]:
    """Fold item owners into [map, count]: each opening of a map is one run of items from 0."""
    runs: list[list[int]] = []
    for node, item in owner:
        if item:
            runs[-1][1] += 1
        else:
            runs.append([node, 1])
    return runs
