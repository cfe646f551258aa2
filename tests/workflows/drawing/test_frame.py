"""Nodes with sizes: many that are linked alike stand in a grid as wide as the page."""

from itertools import combinations

from sennit.workflows.drawing.frame import MIN_GRID, PAGE, Box, frame_of
from sennit.workflows.drawing.layout import arrange


def wide(count: int) -> list[list[int]]:
    """One node, `count` behind it, and one behind all of these."""
    return [[], *([0] for _ in range(count)), list(range(1, count + 1))]


def apart(one: Box, other: Box) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return beside or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_forty_parallel_nodes_use_the_width_of_the_page() -> None:
    names = ["start", *(f"page{number}" for number in range(40)), "all"]
    frame = frame_of(arrange(wide(40)), names, [""] * 42)
    assert 0.8 * PAGE < frame.width <= PAGE
    assert frame.height < frame.width
    assert all(apart(one, other) for one, other in combinations(frame.boxes[:42], 2))
    [grid] = frame.grids
    for box in frame.boxes[1:41]:
        assert grid.x < box.x
        assert box.x + box.width < grid.x + grid.width
        assert grid.y < box.y
        assert box.y + box.height < grid.y + grid.height
    assert sorted(frame.edges.links) == [(0, 1), (1, 41)]
    assert (frame.ends[1], frame.ends[0]) == (grid, frame.boxes[0])


def test_a_few_parallel_nodes_have_their_own_links() -> None:
    frame = frame_of(arrange(wide(MIN_GRID - 1)), ["n"] * (MIN_GRID + 1), [""] * (MIN_GRID + 1))
    assert frame.grids == []
    assert len(frame.edges.links) == 2 * (MIN_GRID - 1)
