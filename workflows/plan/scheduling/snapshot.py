"""A run's state as one line of text, from which the next run of a chain continues.

Columns compress well and digests do not: a node costs about 30 bytes, and 30 more if its output
lies in its marker. So 10,000 nodes stay under 700 KB. `load(graph, dump(state))` schedules
exactly as `state` would.

Each part of the state has a function that writes it and, right below, the one that reads it. The
text is a JSON object, compressed. Parts are written in a fixed order, so that the same state
always gives the same text.
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
from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.budget import Budget, Rate, Slice
from sennit.workflows.plan.scheduling.events import Approval, Effect, Question
from sennit.workflows.plan.scheduling.locks import Lock
from sennit.workflows.plan.scheduling.session import Advance, Session
from sennit.workflows.plan.scheduling.state import DRAIN, ITEMS, RunState
from sennit.workflows.plan.scheduling.unit import (
    ENDED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Status,
    Unit,
)
from sennit.workflows.plan.scheduling.waits import CAUSES

Body = dict[str, Any]
"""A snapshot as JSON, by the names of its parts."""

_NODE_FIELDS = ("open_deps", "open_inputs", "ok_inputs", "awaiting_inputs")
"""Fields of the nodes that are written as columns, with one entry a node."""
_SCALARS = (
    "window",
    "in_flight",
    "park_for",
    "on_failure",
    "now",
    "running",
    "waiting",
    "begun",
    "parked",
    "ended",
    "forks",
)
"""Single values of the run."""
_UNIT_FIELDS = ("status", "generation", "digest", "size", "attempts", "millis", "queued")
"""Fields of the units that are written as columns, with one entry a unit, in their order."""
_RARE_FIELDS = {
    "facts": "facts",
    "inherited_failure": "inherited_failure",
    "previous_result": "previous_result",
    "chosen": "chosen",
    "approved": "approved",
    "past_deadline": "past_deadline",
    "alone": "alone",
    "prompts": "prompt_tokens",
    "ended_at": "ended_at",
    "objections": "objections",
}
"""Fields that few units have, by their names in the text: they are written as pairs of a unit
and a value.
"""
_RECORDS = (
    "notes",
    "answers",
    "questions",
    "deadlines",
)
"""What only some units have, as pairs of a unit and a value."""
_REMADE = ""
"""Stands for a digest that is made again from those of the unit's inputs."""
_OLDER = (
    "it began under an earlier version of Sennit, whose programs this one cannot go on with: edit "
    "the program"
)


def dump(state: RunState) -> str:
    """Return the whole state as text."""
    units = state.numbers()
    body: Body = {}
    _dump_columns(state, units, body)
    _dump_records(state, body)
    _dump_batches(state, units, body)
    _dump_items(state, units, body)
    _dump_locks(state, body)
    _dump_times(state, units, body)
    _dump_figures(state, units, body)
    _dump_rare_parts(state, body)
    _dump_spending(state, body)
    return pack(body)


def load(graph: Graph, text: str) -> RunState:
    """Return the state that `dump` wrote, over the same graph."""
    body = unpack(text, MAX_SNAPSHOT_BYTES)
    state = RunState(graph)

    # The items come first, because the columns are in the order of the units, and items are units.
    units = _load_items(state, body)
    _load_columns(state, units, body)
    _load_records(state, body)
    _load_batches(state, body)
    _remake_manifests(state, units)
    _load_locks(state, body)
    _load_times(state, units, body)
    _load_rare_parts(state, body)
    _load_spending(state, body)

    # Queueing a unit notes that it waits from now on. The figures are read after that, because they
    # know since when it has waited.
    _ask_again_for_replans(state, body)
    for unit in units:
        if state.units[unit].queued:
            ready.queue(state, unit)
    _load_figures(state, units, body)

    _park_older_programs(state, body.get("sessions", ()))
    return state


# The columns of nodes and units, and single values.


def _dump_columns(state: RunState, units: Sequence[int], body: Body) -> None:
    for name in _SCALARS:
        body[name] = getattr(state, name)
    records = [state.units[unit] for unit in units]
    for name in _UNIT_FIELDS:
        body[name] = [getattr(record, name) for record in records]
    nodes = records[: len(state.graph.specs)]
    for name in _NODE_FIELDS:
        body[name] = [getattr(node, name) for node in nodes]
    _dump_rare_fields(state, units, body)

    # A manifest is as long as all digests that it names, and those are written already.
    for place, unit in enumerate(units):
        if _can_be_remade(state, unit):
            body["digest"][place] = _REMADE


def _load_columns(state: RunState, units: Sequence[int], body: Body) -> None:
    for name in _SCALARS:
        setattr(state, name, body[name])
    # This does not touch the units: none has been set in a step of this run.
    columns = [body[name] for name in _UNIT_FIELDS]
    for unit, *values in zip(units, *columns, strict=True):
        record = Unit()
        for name, value in zip(_UNIT_FIELDS, values, strict=True):
            setattr(record, name, value)
        record.status = Status(record.status)
        state.units[unit] = record
    for name in _NODE_FIELDS:
        for node, value in enumerate(body[name]):
            setattr(state.units[node], name, value)
    _load_rare_fields(state, body)


def _dump_rare_fields(state: RunState, units: Sequence[int], body: Body) -> None:
    usual = Unit()
    for name, field in _RARE_FIELDS.items():
        pairs: list[tuple[int, Any]] = []
        for unit in units:
            value = getattr(state.units[unit], field)
            if value != getattr(usual, field):
                pairs.append((unit, value))
        body[name] = pairs


def _load_rare_fields(state: RunState, body: Body) -> None:
    for name, field in _RARE_FIELDS.items():
        for unit, value in body[name]:
            setattr(state.units[unit], field, value)

    # JSON has lists where the state has tuples and records.
    for join, inputs in body["chosen"]:
        state.units[join].chosen = tuple(inputs)
    for unit, fields in body["approved"]:
        state.units[unit].approved = Approval(*fields)
    for unit, texts in body["objections"]:
        state.units[unit].objections = tuple(texts)


def _can_be_remade(state: RunState, unit: int) -> bool:
    """Whether a unit's output is a manifest that the digests of its inputs, as
    they are now, make again.
    """
    digest = state.units[unit].digest or ""
    if state.is_item(unit) or not joins.is_manifest(digest):
        return False
    inputs = joins.parts_of(state, unit)
    if not inputs:
        return False

    # An input that is a manifest itself may be left out too. Then there would be nothing
    # to make this one from.
    for node in inputs:
        if joins.is_manifest(state.units[node].digest or ""):
            return False

    # Inputs that have run again since then have other digests.
    return digest == joins.manifest(state, unit)


def _remake_manifests(state: RunState, units: Sequence[int]) -> None:
    """Make the manifests again that the snapshot leaves out."""
    manifests: dict[int, str] = {}
    for unit in units:
        if state.units[unit].digest == _REMADE:
            manifests[unit] = joins.manifest(state, unit)
    for unit, manifest in manifests.items():
        state.units[unit].digest = manifest


# What stands beside the records of the units.


def _dump_records(state: RunState, body: Body) -> None:
    for name in _RECORDS:
        record = getattr(state, name)
        body[name] = list(record.items())
    body["answers"] = _lasting_answers(state)
    # The run that continues has not begun to drain.
    body["deadlines"] = []
    for unit, at in state.deadlines.items():
        if unit != DRAIN:
            body["deadlines"].append((unit, at))


def _lasting_answers(state: RunState) -> list[tuple[int, Any]]:
    """Return the answers of persons that a later step may still ask for. The answer of a unit
    that has succeeded is its output by now: of a gate nothing is kept, and of a call only that a
    person has answered it.
    """
    answers: list[tuple[int, Any]] = []
    for unit, answer in state.answers.items():
        if state.units[unit].status != SUCCEEDED:
            answers.append((unit, answer))
        elif state.kind_of(unit) != "gate":
            answers.append((unit, None))
    return answers


def _load_records(state: RunState, body: Body) -> None:
    for name in _RECORDS:
        setattr(state, name, dict(body[name]))

    # JSON has lists where the state has tuples and records.
    for unit, (kind, message) in body["notes"]:
        state.notes[unit] = (kind, message)
    for unit, fields in body["questions"]:
        state.questions[unit] = Question(*fields)


# The activities that units share, each known by the first of its units.


def _dump_batches(state: RunState, units: Sequence[int], body: Body) -> None:
    body["shared"] = []
    first_units: dict[Batch, int] = {}
    for unit in units:
        batch = state.units[unit].batch
        if batch is not None:
            first_unit = first_units.setdefault(batch, unit)
            body["shared"].append((unit, first_unit))


def _load_batches(state: RunState, body: Body) -> None:
    batches: dict[int, Batch] = {}
    for unit, first_unit in body["shared"]:
        batch = batches.setdefault(first_unit, Batch())
        ready.enter_batch(state, unit, batch)


# The items of maps.


def _dump_items(state: RunState, units: Sequence[int], body: Body) -> None:
    body["owner"] = _openings(state.owner)
    count_of_all = len(state.graph.specs) + len(state.owner)
    is_any_dropped = len(state.units) < count_of_all
    if is_any_dropped:
        body["kept"] = []
        for unit in units:
            if unit >= ITEMS:
                body["kept"].append(unit - ITEMS)
    body["items"] = []
    for node, items in state.items.items():
        body["items"].append([node, items.start, len(items)])


def _openings(owner: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the map and the number of units of each opening of a map. The units of one opening are
    neighbours, and their places count from 0.
    """
    openings: list[list[int]] = []
    for node, place in owner:
        if place == 0:
            openings.append([node, 1])
        else:
            openings[-1][1] += 1
    return openings


def _load_items(state: RunState, body: Body) -> list[int]:
    """Read the items of maps, and return all units of the run that have not been dropped."""
    for node, count in body["owner"]:
        for place in range(count):
            state.owner.append((node, place))
    for node, start, count in body["items"]:
        state.items[node] = range(start, start + count)

    units = list(range(len(state.graph.specs)))
    for place in body.get("kept", range(len(state.owner))):
        units.append(ITEMS + place)
    return units


# Locks. Units that wait for one are queued again, and wait for it anew.


def _dump_locks(state: RunState, body: Body) -> None:
    body["locks"] = []
    for name, lock in state.locks.items():
        if lock.holders:
            body["locks"].append([name, lock.mode, *lock.holders])


def _load_locks(state: RunState, body: Body) -> None:
    for name, mode, *holders in body["locks"]:
        state.locks[name] = Lock(mode, dict.fromkeys(holders))


# The last end that a script has read, the most sub-agents, when units started,
# and how long calls take.


def _dump_times(state: RunState, units: Sequence[int], body: Body) -> None:
    body["last_end"] = state.last_end
    body["most_agents"] = state.most_agents

    # How long ago a unit started takes fewer digits than when it started.
    ages: list[int | None] = []
    for unit in units:
        started = state.units[unit].started
        if started:
            ages.append(state.now - started)
        else:
            ages.append(None)
    body["started"] = ages

    body["timings"] = astuple(state.timings)


def _load_times(state: RunState, units: Sequence[int], body: Body) -> None:
    # Earlier versions write neither of these two.
    latest_end = max((end for _, end in body["ended_at"]), default=0)
    state.last_end = body.get("last_end", latest_end)
    state.most_agents = body.get("most_agents", state.most_agents)

    # An earlier version does not write when units started either: they have started now.
    ages = body.get("started")
    if ages is None:
        for unit in units:
            state.units[unit].started = state.now
    else:
        for unit, age in zip(units, ages, strict=True):
            state.units[unit].started = 0
            if age is not None:
                state.units[unit].started = state.now - age

    fuse, workers, known, rows = body["timings"]
    state.timings = Timings(fuse, workers, known)
    for tool, (count, total) in rows.items():
        state.timings.measured[tool] = (count, total)


# What only figures are made of: no decision of the scheduler depends on it.


def _dump_figures(state: RunState, units: Sequence[int], body: Body) -> None:
    """Write when calls began after they had started, how long they took, what they have used, and
    for what units wait and have waited.
    """
    delays_and_lengths = [_delay_and_length(state, unit) for unit in units]
    if any(length is not None for _, length in delays_and_lengths):
        body["delays"] = [delay for delay, _ in delays_and_lengths]
        body["took"] = [length for _, length in delays_and_lengths]
    if state.used:
        body["used"] = list(state.used.items())

    waits = state.waits
    waiting = []
    for unit, (cause, since) in waits.open.items():
        waiting.append((unit, cause, state.now - since))
    body["waits"] = [list(waits.total.values()), waits.asked, waits.asked_since, waiting]


def _delay_and_length(state: RunState, unit: int) -> tuple[int | None, int | None]:
    """Return how long after its start a unit's last call began, and how long the call took, in
    milliseconds; None if its worker has not said so.
    """
    span = state.units[unit].span
    if span is None:
        return None, None
    began, ended = span
    return began - state.units[unit].started, ended - began


def _load_figures(state: RunState, units: Sequence[int], body: Body) -> None:
    """Read them again. An earlier version does not write them: then no wait
    of its calls is known.
    """
    delays = body.get("delays", ())
    took = body.get("took", ())
    # Both columns are missing where no call had a span.
    for unit, delay, millis in zip(units, delays, took, strict=False):
        if delay is not None:
            began = state.units[unit].started + delay
            state.units[unit].span = (began, began + millis)
    state.used = _load_usages(body, "used")

    # The snapshot has all waits, in its own order. So those go that came from
    # queueing the units again.
    waits = state.waits
    waits.open = {}
    if "waits" not in body:
        return
    total, asked, asked_since, waiting = body["waits"]
    waits.total = dict(zip(CAUSES, total, strict=True))
    for begin, end in asked:
        waits.asked.append((begin, end))
    waits.asked_since = asked_since
    for unit, cause, age in waiting:
        waits.open[unit] = (cause, state.now - age)


def _load_usages(body: Body, name: str) -> dict[int, Usage]:
    usages: dict[int, Usage] = {}
    for unit, amounts in body.get(name, ()):
        usages[unit] = Usage(*amounts)
    return usages


# What few runs have: it is written only where there is any.


def _dump_rare_parts(state: RunState, body: Body) -> None:
    if state.held is not None:
        body["held"] = state.held
    if state.effects:
        body["effects"] = list(state.effects.items())
    if state.sessions:
        body["programs"] = []
        for program, session in state.sessions.items():
            body["programs"].append([program, *_session_row(session)])
    if state.resumed:
        body["resumed"] = list(state.resumed)
    if state.taken_over:
        body["taken_over"] = list(state.taken_over)
    if state.pause:
        body["again"] = [state.park_until, state.pause]


def _load_rare_parts(state: RunState, body: Body) -> None:
    if "held" in body:
        state.held = Question(*body["held"])
    for unit, rows in body.get("effects", ()):
        state.effects[unit] = tuple(Effect(*fields) for fields in rows)
    for program, *row in body.get("programs", ()):
        state.sessions[program] = _session_of(*row)
    state.resumed = dict.fromkeys(body.get("resumed", ()), True)
    state.taken_over = dict.fromkeys(body.get("taken_over", ()), True)
    if "again" in body:
        state.park_until, state.pause = body["again"]


def _session_row(session: Session) -> list[Any]:
    """Return where a program stands as lists, in the order of the parameters of `_session_of`."""
    advances = [list(astuple(advance)) for advance in session.advances]
    calls = list(session.calls.items())
    names = list(session.names.items())
    return [advances, calls, list(session.waits), list(session.left), list(session.spared), names]


def _session_of(
    advances: list[Any],
    calls: list[Any],
    waits: list[int],
    left: list[int],
    spared: list[int],
    names: list[tuple[int, str]],
) -> Session:
    """Return where a program stands."""
    session = Session(
        advances=[],
        calls=dict(calls),
        waits=dict.fromkeys(waits),
        left=dict.fromkeys(left),
        spared=dict.fromkeys(spared),
    )
    for digest, told, past in advances:
        advance = Advance(digest, tuple(told), tuple(past))
        session.advances.append(advance)
    for call, name in names:
        session.take_over(call, name)

    # The script has gone on with everything that it was told before the last advance.
    for number, advance in enumerate(session.advances[:-1]):
        session.heard |= dict.fromkeys(advance.told, number)
    return session


# What the run may spend, and what it has spent.


def _dump_spending(state: RunState, body: Body) -> None:
    if state.budget is not None:
        body["budget"] = state.budget.dump()
    if state.slices:
        body["slices"] = []
        for holder, opened in state.slices.items():
            body["slices"].append([holder, opened.budget.dump()])
    if state.paid:
        body["paid"] = list(state.paid.items())
    if state.rates:
        body["rates"] = []
        for queue, rate in state.rates.items():
            body["rates"].append([queue, rate.limit, rate.calls, rate.ended])


def _load_spending(state: RunState, body: Body) -> None:
    if "budget" in body:
        state.budget = Budget.load(body["budget"])
    for holder, rows in body.get("slices", ()):
        state.slices[holder] = Slice(Budget.load(rows))
    state.paid = _load_usages(body, "paid")

    # The rates count the units that run now by themselves.
    rates: dict[str, Rate] = {}
    for queue, *counts in body.get("rates", ()):
        rates[queue] = Rate(*counts)
    ready.renew(state, rates)


# What earlier versions have begun.


def _ask_again_for_replans(state: RunState, body: Body) -> None:
    """Have model calls run again whose replan waits for a person: an earlier version asked for
    that, and this one does not.
    """
    for unit, _ in body.get("expansion_requests", ()):
        if state.units[unit].status == WAITING:
            state.set_status(unit, PENDING)
            state.units[unit].queued = True
            state.waiting -= 1


def _park_older_programs(state: RunState, sessions: Sequence[Sequence[Any]]) -> None:
    """Have programs fail by name that an earlier version has begun: one that noted their `sessions`
    in another way, or that had the steps of a script as nodes of the graph.

    A person edits them. Until then their calls are those that a script has left,
    and has not made again.
    """
    graph = state.graph
    steps = _steps_of_older_programs(state)
    for step, program in steps.items():
        graph.cut_off([step])
        state.set_status(step, SKIPPED)
        state.notes[step] = ("Replaced", "programs have no steps any more")
        state.units[step].queued = False
        graph.specs[program].successor = -1

    # A program may have both a session and steps.
    older = dict.fromkeys(program for program, *_ in sessions)
    older |= dict.fromkeys(steps.values())
    for program in older:
        # All calls become the program's own, those of its steps too.
        calls = _calls_of_older_program(graph, program, steps)
        graph.give_calls(calls, program)
        state.sessions[program] = Session(left=dict.fromkeys(sorted(calls)))

        if state.units[program].status not in ENDED:
            state.units[program].queued = False
            state.set_status(program, FAILED)
            state.notes[program] = (programs.PROGRAM_FAILED, _OLDER)


def _steps_of_older_programs(state: RunState) -> dict[int, int]:
    """Return the steps of programs of which no session is known, each with its program: this
    version notes one for each that has begun.
    """
    graph = state.graph
    steps: dict[int, int] = {}
    for step, spec in enumerate(graph.specs):
        program = graph.program_of(step)
        if spec.kind == "program" and program != step and program not in state.sessions:
            steps[step] = program
    return steps


def _calls_of_older_program(graph: Graph, program: int, steps: dict[int, int]) -> list[int]:
    """Return what a program and its steps have called, without the steps themselves."""
    made = list(graph.made_by(program))
    for step, owner in steps.items():
        if owner == program:
            made += graph.made_by(step)
    return [call for call in made if call not in steps]
