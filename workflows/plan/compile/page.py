"""Pages: the nodes with which a plan goes on, cut off a longer plan and put behind the nodes of a run."""

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
    """Return which of the `old` nodes at the beginning of a plan the others name, and those others as a page: it counts
    first the old nodes that it names, then its own.
    """
    page = ExecutionPlan(whole.specs[old:], whole.answer, direct=whole.direct)
    known = sorted(dict.fromkeys(node for node in _named(page) if node < old))
    places = {node: place for place, node in enumerate(known)}
    _move(page, lambda node: places[node] if node < old else node - old + len(known))
    return known, page


def parse_page(text: str, most: int = MAX_UNPACKED_PLAN_BYTES, *, foreign: bool = False) -> ExecutionPlan:
    """Return the page, or the whole plan, in a text; every field of a `foreign` one is checked. Raises ValueError, and
    before more than `most` bytes of it are unpacked.
    """
    try:
        page = ExecutionPlan.unpack(text, most)
        if foreign:
            _SHAPE.validate_python(asdict(page))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, zlib.error) as error:
        raise ValueError(f"this is no plan: {error}") from None
    return page


def attach(page: ExecutionPlan, known: list[int], count: int) -> ExecutionPlan:
    """Return a page that names nodes by their places behind `count` nodes of a run, of which `known` are those that it
    names. Raises ValueError if it names others, or a node twice, goes round in a circle, begins a plan with no node, or
    says what only a run knows of its nodes.
    """
    check_places(page, len(known) + len(page.specs))
    is_of_run = any(spec.formerly or spec.maker >= 0 for spec in page.specs)
    is_twice = len({spec.id: None for spec in page.specs}) < len(page.specs)
    if is_of_run or is_twice or not (count or page.specs):
        raise ValueError("the page does not fit the plan")
    _move(page, lambda place: known[place] if place < len(known) else place - len(known) + count)
    waits = [[*spec.needs, *spec.watches, *spec.inputs, spec.successor] for spec in page.specs]
    topological_order([[node - count for node in each if node >= count] for each in waits])
    return page


def check_places(plan: ExecutionPlan, size: int) -> None:
    """Raise ValueError if a plan or a page names a place outside `size`, or has a condition that nobody can decide."""
    for spec in plan.specs:
        if spec.when is not None:
            check_compiled(spec.when)
        is_map = [spec.kind == "map", *(stage.kind == "map" and not stage.stages for stage in spec.stages)]
        if (spec.stages and not all(is_map)) or (spec.of_items and len(spec.inputs) != 1):
            raise ValueError("the page does not fit the plan")
        if any(len(dict(each.locks)) < len(each.locks) for each in (spec, *spec.stages)):
            raise ValueError("the page names a lock twice")
    if not all(0 <= place < size for place in _named(plan)):
        raise ValueError("the page does not fit the plan")


def _named(page: ExecutionPlan) -> list[int]:
    """Return the places of all nodes that a page names."""
    found = [*page.answer]

    def note(place: int) -> int:
        found.append(place)
        return place

    for spec in page.specs:
        spec.move(note)
    return found


def _move(page: ExecutionPlan, to: Callable[[int], int]) -> None:
    for spec in page.specs:
        spec.move(to)
    page.answer = [to(place) for place in page.answer]
