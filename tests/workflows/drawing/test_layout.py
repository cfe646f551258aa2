"""Graphs in layers: nothing overlaps, every edge is there, and nothing depends on chance."""

from itertools import pairwise

from doubles.plan.play import Play, join, node
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.drawing.layout import MAX_LINKS, MAX_NODES, Layout, arrange, flow_of, layered, levels, positions


@st.composite
def sources(draw: st.DrawFn, most: int = MAX_NODES) -> list[list[int]]:
    """For each node the nodes it comes after."""
    count = draw(st.integers(1, most))
    return [draw(st.lists(st.integers(0, node - 1), max_size=3)) if node else [] for node in range(count)]


def reached(layout: Layout, source: int) -> set[int]:
    """Return the nodes that links lead to from one, through lanes."""
    found, seen = set(), [source]
    while seen:
        cell = seen.pop()
        for start, end in layout.links:
            if start == cell:
                if end < layout.count:
                    found.add(end)
                else:
                    seen.append(end)
    return found


@given(sources())
def test_every_node_stands_behind_those_it_comes_after(graph: list[list[int]]) -> None:
    level = levels(graph)
    assert all(level[node] == max((level[other] + 1 for other in some), default=0) for node, some in enumerate(graph))
    assert sorted(node for layer in layered(level) for node in layer) == list(range(len(graph)))


@given(sources(most=25))
def test_links_lead_from_layer_to_layer_and_leave_no_edge_out(graph: list[list[int]]) -> None:
    layout = arrange(graph)
    place = {cell: number for number, layer in enumerate(layout.layers) for cell in layer}
    assert all(place[end] == place[start] + 1 for start, end in layout.links)
    for index, some in enumerate(graph):
        assert all(index in reached(layout, source) for source in some)


@given(sources())
def test_cells_of_a_layer_keep_their_distance(graph: list[list[int]]) -> None:
    layout = arrange(graph)
    sizes = [30.0 if cell < layout.count else 6.0 for cell in range(sum(map(len, layout.layers)))]
    middles = positions(layout, sizes, 10)
    assert min(middle - size / 2 for middle, size in zip(middles, sizes, strict=True)) == 0
    for layer in layout.layers:
        for one, other in pairwise(layer):
            assert middles[other] - middles[one] >= (sizes[one] + sizes[other]) / 2 + 10 - 1e-6


def test_crossings_are_taken_out() -> None:
    assert arrange([[], [], [], [2], [1], [0]]).layers == [[0, 1, 2], [5, 4, 3]]


def test_long_edges_into_one_node_share_a_lane() -> None:
    chain = [[node - 1] if node else [] for node in range(10)]
    layout = arrange([*chain, list(range(10))])
    assert max(len(layer) for layer in layout.layers) == 2


def test_a_fallback_comes_after_its_node() -> None:
    play = Play(node("a", successor="z"), join("j", "a"), node("z", is_successor=True), answer="j")
    assert flow_of(play.graph)[1] == [[], [0], [0]]


def test_too_much_to_draw_is_left_in_layers() -> None:
    many = arrange([[] for _ in range(MAX_NODES + 1)])
    assert not many.whole
    assert many.layers == [list(range(MAX_NODES + 1))]
    dense = arrange([list(range(node)) for node in range(MAX_NODES)])
    assert not dense.whole
    assert len(dense.layers) == MAX_NODES
    assert len(arrange([[node - 1] if node else [] for node in range(MAX_NODES)]).links) == MAX_NODES - 1 < MAX_LINKS
