"""Pages: the nodes with which a plan goes on, cut off a longer plan and put
behind the nodes of a run.
"""

import zlib
from collections.abc import Callable
from dataclasses import asdict

from pydantic import TypeAdapter

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.language.conditions import check_compiled
from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.limits import MAX_UNPACKED_PLAN_BYTES

_SHAPE = TypeAdapter(ExecutionPlan)


def page_behind(whole: ExecutionPlan, old: int) -> tuple[list[int], ExecutionPlan]:
    """Return which of the `old` nodes at the beginning of a plan the others name, and those others
    as a page: it counts first the old nodes that it names, then its own.
    """
    page = ExecutionPlan(whole.specs[old:], whole.answer, direct=whole.direct)
    older: dict[int, None] = {}
    for node in _named(page):
        if node < old:
            older[node] = None
    known = sorted(older)
    places = {node: place for place, node in enumerate(known)}

    def place_in_page(node: int) -> int:
        if node < old:
            return places[node]
        return node - old + len(known)

    _move(page, place_in_page)
    return known, page


def parse_page(
    text: str, most: int = MAX_UNPACKED_PLAN_BYTES, *, foreign: bool = False
) -> ExecutionPlan:
    """Return the page, or the whole plan, in a text; every field of a `foreign` one is checked.
    Raises ValueError, and before more than `most` bytes of it are unpacked.
    """
    try:
        page = ExecutionPlan.unpack(text, most)
        if foreign:
            _SHAPE.validate_python(asdict(page))
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
        zlib.error,
    ) as error:
        raise ValueError(f"this is no plan: {error}") from None
    return page


def attach(page: ExecutionPlan, known: list[int], count: int) -> ExecutionPlan:
    """Return a page that names nodes by their places behind `count` nodes of a run, of which
    `known` are those that it names. Raises ValueError if it names others, or a node twice, goes
    round in a circle, begins a plan with no node, or says what only a run knows of its nodes.
    """
    check_places(page, len(known) + len(page.specs))
    if not count and not page.specs:
        raise ValueError("the page does not fit the plan")
    ids: dict[str, None] = {}
    for spec in page.specs:
        if spec.maker >= 0 or spec.id in ids:
            raise ValueError("the page does not fit the plan")
        ids[spec.id] = None

    def place_in_run(place: int) -> int:
        if place < len(known):
            return known[place]
        return place - len(known) + count

    # Only nodes of the page can go round in a circle: older ones wait for none of them.
    _move(page, place_in_run)
    waits: list[list[int]] = []
    for spec in page.specs:
        nodes = (*spec.needs, *spec.watches, *spec.inputs, spec.successor)
        own = [node - count for node in nodes if node >= count]
        waits.append(own)
    topological_order(waits)
    return page


def check_places(plan: ExecutionPlan, size: int) -> None:
    """Raise ValueError if a plan or a page names a place outside `size`, or has a condition
    that nobody can decide.
    """
    for spec in plan.specs:
        if spec.when is not None:
            check_compiled(spec.when)
        if spec.of_items and len(spec.inputs) != 1:
            raise ValueError("the page does not fit the plan")
        for stage in spec.stages:
            if spec.kind != "map" or stage.kind != "map" or stage.stages:
                raise ValueError("the page does not fit the plan")
        for part in (spec, *spec.stages):
            if len(dict(part.locks)) < len(part.locks):
                raise ValueError("the page names a lock twice")
    for place in _named(plan):
        if not 0 <= place < size:
            raise ValueError("the page does not fit the plan")


def _named(page: ExecutionPlan) -> list[int]:
    """Return the places of all nodes that a page names."""
    places = [*page.answer]

    def note(place: int) -> int:
        places.append(place)
        return place

    for spec in page.specs:
        spec.move(note)
    return places


def _move(page: ExecutionPlan, to: Callable[[int], int]) -> None:
    for spec in page.specs:
        spec.move(to)
    page.answer = [to(place) for place in page.answer]
