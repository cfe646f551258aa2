"""The record of a run for its figures: which of its units are calls, when they were
under way, and behind what.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sennit.workflows.drawing.layout import flow_of
from sennit.workflows.limits import MAX_FLOW_EDGES, MAX_HEARD_CALLS
from sennit.workflows.messages.figures import CallLine, FiguresPage, FlowLine
from sennit.workflows.messages.result import UsageReport
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.figures.failures import NO_FAILURES
from sennit.workflows.plan.figures.figures import critical_path, figures_of
from sennit.workflows.plan.figures.record import Part, PartKind, Record
from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.programs import is_replaced
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import ENDED, FAILED, RUNNING
from sennit.workflows.views.call_sites import path_and_line

_INHERITED = ("CallFailed", "JoinFailed", "MapFailed")
"""Errors of containers in which something else has failed, and counts itself."""
PLANNER = "planner"


def record_of(
    state: RunState, planning: Usage = NO_USAGE, speculated: Speculated | None = None
) -> tuple[Record, list[int]]:
    """Return the record of a run, and the units of its first parts. `planning` is what its planner
    has used, and `speculated` what has become of its calls made early.

    A unit that a person has started over counts with its last run. What another run has made, and
    what a person has answered, was not called here, and takes no time.
    """
    units = state.numbers()
    places = {unit: place for place, unit in enumerate(units)}
    advances = _advance_places(state, len(units) + 2 * len(state.items))
    parts = _unit_parts(state, units, places, advances)
    parts += _map_parts(state, places)
    parts += _advance_parts(state, places, advances)
    if any(planning):
        parts.append(Part(PLANNER, "container", branch=PLANNER, used=planning))
    waited: dict[str, int] = {}
    for cause, millis in state.waits.total.items():
        waited[str(cause)] = millis
    asked = tuple(state.waits.asked_until(state.now))
    record = Record(tuple(parts), state.window, waited, asked, speculated)
    return record, units


def _unit_parts(
    state: RunState,
    units: Sequence[int],
    places: Mapping[int, int],
    advances: Mapping[tuple[int, int], int],
) -> list[Part]:
    """Return a part for each unit, with the places of the parts that it comes after."""
    # A map has two parts of its own, behind those of the units (see `_map_parts`), and each advance
    # of a script has one behind those (see `_advance_parts`).
    openings: dict[int, int] = {}
    closings: dict[int, int] = {}
    for place, node in enumerate(state.items, len(units)):
        openings[node] = place
        closings[node] = place + len(state.items)
    calls_in_place = _calls_in_place(state)
    parts = []
    for unit in units:
        predecessors = _after(state, unit)
        predecessors += calls_in_place.get(unit, [])
        after = _places_of(dict.fromkeys(predecessors), places)
        if state.is_item(unit):
            after.append(openings[state.node_of(unit)])
        advance = _advance_before(state, unit)
        if advance is not None:
            after.append(advances[advance])
        for node in _maps_before(state, unit):
            after.append(closings[node])
        parts.append(_part(state, unit, tuple(after)))
    return parts


def _map_parts(state: RunState, places: Mapping[int, int]) -> list[Part]:
    """Return two parts for each open map, which take no time: what it waits for is in front of the
    one, and each of its items comes after that; the other comes after all of its values, and a join
    that has taken none of them yet comes after that.
    """
    openings = []
    closings = []
    for node in state.items:
        name = state.path(node)
        sources = _places_of(_ends_of(state.graph, state.graph.deps[node]), places)
        openings.append(Part(name, "container", after=tuple(sources)))
        values = _places_of(state.values(node), places)
        closings.append(Part(name, "container", after=tuple(values)))
    return openings + closings


def _advance_places(state: RunState, first: int) -> dict[tuple[int, int], int]:
    """Return the place of the part of each advance of each script, by the program and the
    number of the advance.
    """
    places: dict[tuple[int, int], int] = {}
    for program, session in state.sessions.items():
        for number in range(len(session.advances)):
            places[program, number] = first + len(places)
    return places


def _advance_parts(
    state: RunState, places: Mapping[int, int], advances: Mapping[tuple[int, int], int]
) -> list[Part]:
    """Return a part for each advance of a script, which takes no time: it comes after what the
    script was told in it, and what the script has called then comes after it.
    """
    parts = []
    for program, number in advances:
        told = dict.fromkeys(_told_before(state, program, number))
        after = _places_of(told, places)
        if number:
            after.append(advances[program, number - 1])
        name = state.path(program)
        parts.append(Part(name, "container", after=tuple(after)))
    return parts


def _places_of(units: Iterable[int], places: Mapping[int, int]) -> list[int]:
    return [places[unit] for unit in units if unit in places]


def _part(state: RunState, unit: int, after: tuple[int, ...]) -> Part:
    began, ended = span_of(state, unit)
    retries = 0
    if state.is_call(unit):
        retries = max(0, state.units[unit].attempts - 1)
    return Part(
        name=state.path(unit),
        kind=_kind_of(state, unit),
        began=began,
        ended=ended,
        after=after,
        branch=branch_of(state, unit),
        queue=state.spec_of(unit).queue,
        retries=retries,
        used=state.used.get(unit, NO_USAGE),
        error=own_error(state, unit),
    )


def _kind_of(state: RunState, unit: int) -> PartKind:
    """Return whether a unit counts as a call. One that has not begun, and one that nobody has
    called here, does not.
    """
    has_begun = state.units[unit].attempts or state.units[unit].status == RUNNING
    if not has_begun or unit in state.taken_over or unit in state.answers:
        return "container"
    if state.is_call(unit):
        return "call"
    if state.kind_of(unit) == "agent":
        return "subagent"
    return "container"


def span_of(state: RunState, unit: int) -> tuple[int, int]:
    """Return when a unit was under way: by its worker where that has said it, else from its start
    until the run has heard of its end. A call that was tried again counts from its first start.
    """
    if state.units[unit].status == RUNNING:
        began = state.units[unit].started
        return began, max(state.now, began)
    known = state.units[unit].span
    if known is not None:
        return known
    began = state.units[unit].started
    return began, began + state.units[unit].millis


def own_error(state: RunState, unit: int) -> str:
    """Return the type of a unit's own failure, "" if it has none. What a script has caught, or a
    fallback has taken the place of, has failed all the same.
    """
    note = state.notes.get(unit)
    if note is None or state.units[unit].status not in ENDED or state.units[unit].inherited_failure:
        return ""
    kind = note[0]
    if kind in (*NO_FAILURES, *_INHERITED):
        return ""
    was_stopped = kind == "Cancelled" and state.units[unit].status != FAILED
    if was_stopped or is_replaced(state, state.node_of(unit)):
        return ""
    return kind


def branch_of(state: RunState, unit: int) -> str:
    """Return to what a unit's usage is added: of a program's call the task that has made
    it, of what a tool loop calls the model call that began it, of an item its map, of
    any other node itself.
    """
    graph = state.graph
    node = state.node_of(unit)
    # The calls of a tool loop belong to the model call in front of it.
    while graph.specs[node].maker >= 0 and not graph.specs[node].call_site:
        node = graph.specs[node].maker
    path = path_and_line(graph.specs[node])[0]
    if not path:
        return graph.specs[node].id
    task = path.rpartition("/")[0]
    return task or graph.specs[graph.program_of(node)].id


def _after(state: RunState, unit: int) -> list[int]:
    """Return the units whose ends, or whose words, led to the start of this one."""
    graph = state.graph
    node = state.node_of(unit)
    if state.is_item(unit):
        before = state.before(unit)
        if before < 0:
            return []
        return [before]
    spec = graph.specs[node]
    predecessors = _ends_of(graph, graph.deps[node])
    # A join waits for those inputs that it has taken, as far as it has. These are
    # nodes, or items of a map.
    chosen = state.units[node].chosen
    if not spec.of_items:
        predecessors += _ends_of(graph, chosen or tuple(spec.inputs))
    elif chosen:
        predecessors += chosen
    elif not _maps_before(state, unit):
        predecessors += _ends_of(graph, spec.inputs)
    predecessors += state.values(node)
    if spec.maker >= 0 and graph.caller_of(node) < 0:
        predecessors.append(spec.maker)
    host = graph.predecessor.get(node)
    if host is not None:
        predecessors.append(host)
    return predecessors


def _maps_before(state: RunState, unit: int) -> list[int]:
    """Return the maps that have items and all of whose items a join of items may still take."""
    if state.is_item(unit):
        return []
    spec = state.graph.specs[unit]
    if not spec.of_items or state.units[unit].chosen:
        return []
    return [source for source in spec.inputs if state.values(source)]


def _ends_of(graph: Graph, nodes: Sequence[int]) -> list[int]:
    """Return nodes with all that may have taken over their ends: fallbacks and further turns."""
    ends: dict[int, None] = {}
    for node in nodes:
        later = node
        while later >= 0 and later not in ends:
            ends[later] = None
            later = graph.specs[later].successor
    return list(ends)


def _advance_before(state: RunState, unit: int) -> tuple[int, int] | None:
    """Return the advance of a script that has made a call, or by which a program ends: the
    program and its number.
    """
    if unit in state.sessions:
        return unit, state.sessions[unit].number
    program = -1
    if not state.is_item(unit):
        program = state.graph.caller_of(unit)
    if program < 0 or unit not in state.sessions[program].calls:
        return None
    return program, state.sessions[program].calls[unit]


def _told_before(state: RunState, program: int, number: int) -> list[int]:
    """Return what came in front of an advance: the calls of whose ends it was told, and those that
    the advance before has made itself; of the first one, what the program waited for.
    """
    if not number:
        return _ends_of(state.graph, state.graph.deps[program])
    session = state.sessions[program]
    made_before = session.advances[number - 1].told
    return [*session.told_at_begin(number), *made_before]


def _calls_in_place(state: RunState) -> dict[int, list[int]]:
    """Return what came in front of the calls of a program that an advance of it has made itself:
    those of its calls of which the script had heard by then.
    """
    graph = state.graph
    predecessors: dict[int, list[int]] = {}
    for session in state.sessions.values():
        made_in: dict[int, list[int]] = {}
        for call, number in session.calls.items():
            made_in.setdefault(number, []).append(call)
        for made in made_in.values():
            in_place = [node for node in made if graph.specs[node].in_place]
            if in_place:
                predecessors |= _heard_of(state, made, in_place)
    return predecessors


@dataclass(frozen=True, slots=True)
class _CallInPlace:
    """A call of a program, the task that has made it, and when it was under way."""

    node: int
    task: str
    began: int
    ended: int


def _heard_of(
    state: RunState, made: Sequence[int], in_place: Sequence[int]
) -> dict[int, list[int]]:
    """Return for each call that an advance has made those that had ended when the call began: in
    the same task, in one that has started that, or in one that it has started. Tasks that run side
    by side hear nothing of each other.
    """
    calls: dict[int, _CallInPlace] = {}
    for node in (*made, *in_place):
        began, end = span_of(state, node)
        task = _task_of(state.graph, node)
        calls[node] = _CallInPlace(node, task, began, end)
    ended = [calls[node] for node in in_place]
    ended.sort(key=lambda call: call.ended)
    ends = [call.ended for call in ended]

    heard: dict[int, list[int]] = {}
    for node in made:
        call = calls[node]
        heard[node] = []
        # The latest come first. One that had ended before another of its task began
        # is behind that already.
        latest_began: dict[str, int] = {}
        ended_before = ended[: bisect_right(ends, call.began)]
        for earlier in reversed(ended_before[-MAX_HEARD_CALLS:]):
            began_before = latest_began.get(earlier.task, -1)
            is_latest = earlier.ended > began_before
            if earlier.node != node and is_latest and _is_related(earlier.task, call.task):
                heard[node].append(earlier.node)
                latest_began[earlier.task] = max(began_before, earlier.began)
    return heard


def _task_of(graph: Graph, node: int) -> str:
    """Return the task of a program that has made a call: `look#3/`, "" for the script itself."""
    path, _ = path_and_line(graph.specs[node])
    task, slash, _ = path.rpartition("/")
    return task + slash


def _is_related(task: str, other: str) -> bool:
    """Whether one of two tasks is the other, or has started it, directly or not."""
    return task.startswith(other) or other.startswith(task)


def figures_page(
    state: RunState, planning: Usage, start: int, limit: int, speculated: Speculated | None = None
) -> FiguresPage:
    """Return the figures of a run, with the calls among so many units from `start` on."""
    record, units = record_of(state, planning, speculated)
    critical = dict.fromkeys(critical_path(record.parts)[0])
    end = start + limit
    calls = []
    for place in range(start, min(end, len(units))):
        part = record.parts[place]
        if part.kind != "container":
            calls.append(line_of(part, is_critical=place in critical))
    following = None
    if end < len(units):
        following = end
    return FiguresPage(
        figures=figures_of(record),
        flow=_flow(state, start, end),
        now=state.now,
        calls=tuple(calls),
        next=following,
    )


def _flow(state: RunState, start: int, end: int) -> tuple[FlowLine, ...]:
    """Return nodes with what they come after, from a place to another, and no more
    edges than fit an answer.
    """
    graph = state.graph
    shown, sources = flow_of(graph, state.sessions)
    room = MAX_FLOW_EDGES
    lines = []
    for node, after in zip(shown[start:end], sources[start:end], strict=True):
        spec = graph.specs[node]
        edges = tuple(dict.fromkeys(after))[:room]
        lines.append(FlowLine(node=spec.id, after=edges))
        room -= len(edges)
    return tuple(lines)


def line_of(part: Part, *, is_critical: bool) -> CallLine:
    """Return a call as readers of figures get it."""
    return CallLine(
        node=part.name,
        began=part.began,
        ended=part.ended,
        kind=part.kind,
        queue=part.queue,
        branch=part.branch,
        critical=is_critical,
        retries=part.retries,
        usage=UsageReport.of(part.used),
    )
