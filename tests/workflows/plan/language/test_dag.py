"""A cycle is found exactly when there is one, and named as a path."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language.dag import first_cycle


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(0, 8))
    return [draw(st.lists(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


@given(graphs())
def test_a_path_that_closes_is_returned_or_the_graph_can_be_ordered(after: list[list[int]]) -> None:
    cycle = first_cycle(after)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(there in after[here] for here, there in pairwise(cycle))
        return
    left = dict(enumerate(after))
    while left:
        done = [vertex for vertex, others in left.items() if not any(other in left for other in others)]
        assert done
        for vertex in done:
            del left[vertex]


def test_depth_costs_no_stack() -> None:
    count = 50_000
    assert first_cycle([[vertex + 1] if vertex < count - 1 else [] for vertex in range(count)]) is None
    cycle = first_cycle([[(vertex + 1) % count] for vertex in range(count)])
    assert cycle is not None
    assert len(cycle) == count + 1
