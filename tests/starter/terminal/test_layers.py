"""Nodes arranged for a screen."""

from collections import Counter
from typing import Any

from doubles.followed import make_node
from hypothesis import given
from hypothesis import strategies as st

from sennit.starter.terminal.layers import Band, bands_of, bar_of, layers_of
from sennit.workflows.messages.views import NodeView

STATUSES = ("pending", "running", "waiting", "succeeded", "failed", "skipped", "cancelled")


def chain(length: int, at: int) -> list[NodeView]:
    states = ["succeeded"] * at + ["running"] + ["pending"] * (length - at - 1)
    return [make_node(f"n{n}", states[n], needs=(f"n{n - 1}",) if n else ()) for n in range(length)]


def rows(bands: list[Band]) -> list[tuple[str, list[str]]]:
    return [(band.name, [node.id for node in band.nodes]) for band in bands]


def test_a_node_is_a_layer_below_the_last_it_needs() -> None:
    nodes = [make_node("d", needs=("c", "a")), make_node("a"), make_node("c", needs=("b",)), make_node("b")]
    assert [[node.id for node in layer] for layer in layers_of(nodes)] == [["a", "b"], ["c"], ["d"]]


def test_needs_nobody_shows_count_for_nothing() -> None:
    assert len(layers_of([make_node("a", needs=("gone", "a"))])) == 1
    assert layers_of([make_node("a", needs=("b",)), make_node("b", needs=("a",))]), "not even a cycle holds it up"


def test_what_fits_is_listed_whole() -> None:
    bands = bands_of(chain(3, 1), 3)
    assert rows(bands) == [("1", ["n0"]), ("2", ["n1"]), ("3", ["n2"])]
    assert not any(band.folded for band in bands)


def test_a_long_chain_is_what_was_what_runs_and_what_comes() -> None:
    bands = bands_of(chain(3000, 1000), 10)
    assert rows(bands) == [("1-1000", []), ("1001", ["n1000"]), ("1002-3000", [])]
    assert [sum(band.counts.values()) for band in bands] == [1000, 1, 1999]


def test_of_a_wide_layer_failures_come_before_what_waits_and_runs() -> None:
    nodes = [make_node(f"n{n}", "running") for n in range(50)]
    nodes[40], nodes[45] = make_node("f", "failed"), make_node("w", "waiting")
    assert rows(bands_of(nodes, 4)) == [("1", ["n0", "f", "w"])]


def called(name: str, status: str, place: str, **fields: Any) -> NodeView:
    return make_node(name, status, summary="q", call_site=place, **fields)


def test_calls_of_a_program_are_arranged_by_group() -> None:
    tasks = [called(f"m_{n}", "succeeded", f"look#{n}:9", kind="task") for n in range(30)]
    calls = [called(f"m_{n}_1", "succeeded", f"look#{n}/search:4") for n in range(30)]
    calls[7] = called("m_7_1", "failed", "look#7/search:4")
    loop = [called("m_a", "running", "llm:12", kind="llm"), make_node("m_a_t1_1", "running")]
    main = make_node("main", "running", kind="program", summary="main program 1")
    bands = bands_of([main, *(node for pair in zip(tasks, calls, strict=True) for node in pair), *loop], 8)
    times = "\N{MULTIPLICATION SIGN}"
    assert rows(bands) == [
        ("main", ["main"]),
        (f"look {times}30", []),
        (f"  search:4 {times}30", ["m_7_1"]),
        (f"llm:12 {times}2", ["m_a", "m_a_t1_1"]),
    ]


@given(st.lists(st.tuples(st.sampled_from(STATUSES), st.integers(0, 5)), max_size=60), st.integers(1, 30))
def test_no_picture_is_higher_than_its_room_and_no_node_is_lost(plan: list[tuple[Any, int]], room: int) -> None:
    nodes = [
        NodeView(id=f"n{at}", kind="tool", status=status, needs=(f"n{at - back}",) if back and back <= at else ())
        for at, (status, back) in enumerate(plan)
    ]
    bands = bands_of(nodes, room)
    assert sum(len(band.nodes) + band.folded for band in bands) <= room
    assert sum((Counter(band.counts) for band in bands), Counter()) == Counter(node.status for node in nodes)


@given(st.dictionaries(st.sampled_from(STATUSES), st.integers(1, 10_000)), st.integers(8, 60))
def test_a_bar_is_as_long_as_asked_and_shows_every_status(counts: dict[str, int], width: int) -> None:
    pieces = bar_of(counts, width)
    assert {status for status, _ in pieces} == set(counts)
    assert sum(len(signs) for _, signs in pieces) == (width if counts else 0)
