"""Where the arguments of a run's calls came from.

In a plan the references tell it. What a model or a script has called while it ran has only values:
there the latest call that had ended before, and that has the same value in its output or its
arguments, is taken for the source.
"""

import re
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from sennit.activities.limits import MAX_CALLS_BEHIND, MAX_COMPARED_LEAVES
from sennit.activities.nodes.binding import Unit, parse_unit
from sennit.activities.storage.artifacts import encode
from sennit.activities.storage.learned import Marks
from sennit.activities.storage.run_context import StoredPlan
from sennit.workflows.messages.trajectory import CallEnded
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import JoinNode, MapNode, Node
from sennit.workflows.plan.language.references import (
    Reference,
    Step,
    parse_reference,
    path_text,
    references_in,
)
from sennit.workflows.plan.learning.limits import MAX_SOURCES
from sennit.workflows.plan.learning.trajectory import Origin, Source

LEAST_CHARACTERS: Final = 3
LEAST_NUMBER: Final = 10
"""Shorter texts and smaller numbers are equal by chance."""
EACH: Final = "[*]"
_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_ANY: Final = "*"
_PATH_CHARACTERS: Final = 200
_Part = tuple[tuple[Step, ...], Any]
"""A path into a JSON value, and the value there."""


@dataclass(slots=True)
class Traced:
    """Where one call's arguments came from, and which earlier calls it was given
    outputs of, by their numbers.
    """

    sources: list[Source] = field(default_factory=list)
    uses: dict[int, None] = field(default_factory=dict)

    def add(
        self,
        argument: str,
        origin: Origin,
        call: int | None = None,
        path: str = "",
        mark: str | None = None,
    ) -> None:
        if origin in ("output", "text") and call is not None:
            self.uses[call] = None
        is_short = max(len(argument), len(path)) <= _PATH_CHARACTERS
        has_room = len(self.sources) < MAX_SOURCES
        if is_short and has_room and (argument + path).isprintable():
            self.sources.append(
                Source(argument=argument, origin=origin, call=call, path=path, mark=mark)
            )


class _Place(NamedTuple):
    """Where a value was at hand. Places are ordered by how well they explain the
    value in a later call.
    """

    ended: int
    """When the call had ended, in milliseconds."""
    is_output: bool
    sooner: int
    """Higher for what was known first."""
    call: int
    path: str


class CallsByNode:
    """The calls of a run by the nodes that made them, with the number of each."""

    def __init__(self, calls: Sequence[CallEnded]) -> None:
        self._by_path: dict[str, int] = {}
        self._items: dict[str, list[tuple[int, int]]] = {}
        for number, call in enumerate(calls):
            unit = parse_unit(call.node)
            self._by_path[unit.path] = number
            if unit.item is not None and not unit.stage:
                items_of_map = self._items.setdefault(unit.id, [])
                items_of_map.append((unit.item, number))

    def at(self, path: str) -> int | None:
        return self._by_path.get(path)

    def items(self, name: str) -> list[tuple[int, int]]:
        """Return (item, call) for the last call of each item of a map."""
        return self._items.get(name, [])


class SourceTracer:
    """Traces the arguments of one run's calls, which are given in the order in which they began."""

    def __init__(self, calls: Sequence[CallEnded], plan: StoredPlan, marks: Marks) -> None:
        self._calls = calls
        self._plan = plan
        self._marks = marks
        self._by_node = CallsByNode(calls)
        self._seen: dict[bytes, list[_Place]] = {}
        """The places of each value in their order, of each call at most one in its output
        and one in its arguments.
        """
        self._known = 0

    def know(self, number: int, origin: Origin, value: Any) -> None:
        """Have values of an earlier call at hand: of its `output`, or its arguments."""
        ended = self._end_of(number)
        is_output = origin == "output"
        here: dict[bytes, None] = {}
        for path, leaf in islice(leaves(value), MAX_COMPARED_LEAVES):
            if not _is_telling(leaf):
                continue
            body = encode(leaf)
            if body in here:
                continue
            here[body] = None
            self._known += 1
            text = place_text(path)
            place = _Place(ended, is_output, -self._known, number, text)
            insort(self._seen.setdefault(body, []), place)

    def of_written(self, number: int, node: Node, unit: Unit) -> Traced:
        """Trace a call that the plan has: by its references."""
        traced = Traced()
        for where, value in dependencies.arguments_of(node):
            argument = where[-1:]
            if "args" in where:
                argument = where[where.index("args") + 1 :]
            for path, leaf in leaves(value, argument):
                self._trace_leaf(traced, node, unit, place_text(path), leaf)
        for name in dependencies.inputs_of(node):
            for call, place in self._behind(Reference(name)):
                traced.add(name, "text", call, place)
        turn = dependencies.turn_of(node)
        if turn is not None:
            began = self._calls[number].began
            for reference in references_in(turn.results):
                for call, place in self._behind(reference):
                    # Of a call that went on when the turn began, a later turn has read the result.
                    if turn.rule is None or self._end_of(call) <= began:
                        traced.add("turn", "text", call, place)
        return _before(traced, number)

    def of_made(self, number: int, arguments: Any) -> Traced:
        """Trace a call that has only values: by equal ones."""
        traced = Traced()
        began = self._calls[number].began
        for path, leaf in islice(leaves(arguments), MAX_COMPARED_LEAVES):
            argument = place_text(path)
            known: Sequence[_Place] = ()
            if _is_telling(leaf):
                known = self._seen.get(encode(leaf), ())
            ended_before = bisect_right(known, began, key=_end_of)
            if ended_before:
                source = known[ended_before - 1]
                origin: Origin = "output" if source.is_output else "argument"
                traced.add(argument, origin, source.call, source.path)
            elif leaf == self._plan.goal:
                traced.add(argument, "goal")
            else:
                traced.add(argument, "constant", mark=self._marks.of(leaf))
        return _before(traced, number)

    def after(self, number: int, node: Node, traced: Traced) -> list[int]:
        """Return the calls for which a call waited because of `needs` alone."""
        found: dict[int, None] = {}
        for name in node.needs:
            for call, _ in self._behind(Reference(name)):
                if call < number and call not in traced.uses:
                    found[call] = None
        return list(found)

    def _end_of(self, number: int) -> int:
        call = self._calls[number]
        return call.began + call.millis

    def _trace_leaf(self, traced: Traced, node: Node, unit: Unit, argument: str, leaf: Any) -> None:
        references = list(references_in(leaf))
        if not references:
            traced.add(argument, "constant", mark=self._marks.of(leaf))
            return
        is_whole = isinstance(leaf, str) and parse_reference(leaf) is not None
        for reference in references:
            origin: Origin = "output"
            is_given = reference.node in ("goal", "input")
            is_own = is_given and reference.node not in dependencies.names_in(node)
            if is_own:
                origin = "goal" if reference.node == "goal" else "input"
            if not is_whole:
                origin = "text"
            if is_own:
                traced.add(argument, origin, path=_path_within(reference.path))
                continue
            sources = self._in_map(reference, node, unit) or self._behind(reference)
            for call, place in sources:
                traced.add(argument, origin, call, place)

    def _in_map(self, reference: Reference, node: Node, unit: Unit) -> list[tuple[int, str]]:
        """Return (call, place in its output) for a name that means something
        in a map's `do` alone.
        """
        if not isinstance(node, MapNode) or reference.node not in node.names:
            return []
        if reference.node != node.as_:
            path_of_stage = f"{unit.id}[{unit.item}].{reference.node}"
            stage_call = self._by_node.at(path_of_stage)
            if stage_call is None:
                return []
            return [(stage_call, _path_within(reference.path))]
        over = parse_reference(node.over)
        if over is None:
            return []
        inside = path_text(reference.path)
        sources: list[tuple[int, str]] = []
        for call, place in self._behind(over):
            sources.append((call, f"{place}{EACH}{inside}"))
        return sources

    def _behind(self, reference: Reference, levels: int = 4) -> list[tuple[int, str]]:
        """Return (call, place in its output) for what a reference means: of a join, or a
        map, those of its parts.
        """
        call = self._by_node.at(reference.node)
        if call is not None:
            return [(call, _path_within(reference.path))]
        node = self._plan.find(reference.node)
        first, rest = _first_step(reference.path)
        found: list[tuple[int, str]] = []
        if isinstance(node, MapNode):
            for item, number in self._by_node.items(node.id):
                if first is None or first == item:
                    found.append((number, _path_within(rest)))
        elif isinstance(node, JoinNode) and levels:
            names = node.inputs
            if first is not None:
                names = node.inputs[first : first + 1]
            inside = rest
            if rest[:1] == ("value",):
                inside = rest[1:]
            for name in names:
                found += self._behind(Reference(name, inside), levels - 1)
        return found[:MAX_CALLS_BEHIND]


def place_text(path: Sequence[Step]) -> str:
    """Return a path into a value: `items[0].path`. A key that is no name of a field is `*`: it may
    itself be a value, as where accounts are kept by their addresses.
    """
    steps: list[Step] = []
    for step in path:
        is_shown = isinstance(step, int) or _FIELD.fullmatch(step) is not None
        steps.append(step if is_shown else _ANY)
    return _path_within(tuple(steps))


def _path_within(path: tuple[Step, ...]) -> str:
    """Return a path as text that may stand alone: no dot comes before its first field."""
    return path_text(path).removeprefix(".")


def leaves(value: Any, path: tuple[Step, ...] = ()) -> Iterator[_Part]:
    """Yield (path, value) of each part of a JSON value that has no parts, in order."""
    waiting: list[Iterator[_Part]] = [iter([(path, value)])]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
            continue
        here, part = found
        if isinstance(part, dict | list | tuple) and part:
            waiting.append(_parts(here, part))  # one after the other: a long list is never copied
        else:
            yield here, part


def _parts(path: tuple[Step, ...], value: Any) -> Iterator[_Part]:
    """Yield (path, value) of each part that a JSON value is directly made of."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, str(name)), inner
    else:
        for place, inner in enumerate(value):
            yield (*path, place), inner


def _end_of(place: _Place) -> int:
    return place.ended


def _first_step(path: tuple[Step, ...]) -> tuple[int | None, tuple[Step, ...]]:
    """Return the index with which a path begins, None if it begins with no
    index, and the rest of it.
    """
    if path and isinstance(path[0], int):
        return path[0], path[1:]
    return None, path


def _is_telling(leaf: Any) -> bool:
    """Whether an equal value elsewhere is hardly there by chance."""
    if isinstance(leaf, str):
        return len(leaf) >= LEAST_CHARACTERS
    if isinstance(leaf, bool) or not isinstance(leaf, int | float):
        return False
    return abs(leaf) >= LEAST_NUMBER


def _before(traced: Traced, number: int) -> Traced:
    """Return what was traced without what did not come before: after a repair a call may be
    older than its source.
    """
    sources: list[Source] = []
    for source in traced.sources:
        if source.call is None or source.call < number:
            sources.append(source)
    traced.sources = sources
    traced.uses = {call: None for call in traced.uses if call < number}
    return traced
