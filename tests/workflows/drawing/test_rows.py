"""Rows for big graphs: groups in the order in which they began, never too many, and no node lost."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.drawing.layout import arrange
from sennit.workflows.drawing.rows import MAX_ROWS, Group, row_lines, rows_by, rows_of

X = "\N{MULTIPLICATION SIGN}"
LOOK: tuple[Group, ...] = (("main",), ("look",), ("look",), ("llm:9",), ("look", "search:4"), ("look", "search:4"))
WIDE: tuple[Group, ...] = tuple((f"f{name}", f"g:{line}") for name in range(4) for line in range(8))


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (LOOK, ["main", f"look {X}2", f"  search:4 {X}2", "llm:9"]),
        ([("a", "b", "c:1"), ("a",)], ["a", "  b/c:1"]),
        ([*WIDE, ("f0",)], ["f0", f"  g {X}8", *(f"f{name}/g {X}8" for name in range(1, 4))]),
        ([("a", "b", "c", f"d{n}:1") for n in range(20)], [f"a/b/c {X}20"]),
        (
            [(f"round-{n}", *inner) for n in range(20) for inner in [("look",), ("look", "get:1")]],
            [f"round-…/look {X}20", f"  get {X}20"],
        ),
        ([(f"round-{n}", name) for n in range(9) for name in ("one", "two")], [f"round-{n} {X}2" for n in range(9)]),
        (
            [(name,) for name in "abcdefghijklmnopqrst"],
            [*"abcdefghijklmno", "and 5 more groups"],
        ),
    ],
)
def test_groups_are_rows_as_fine_as_there_is_room_for(groups: Sequence[Group], names: list[str]) -> None:
    assert ["  " * row.depth + row.name for row in rows_by(groups)] == names


PART = st.sampled_from(["look", "round-1", "round-2", "llm:4", "llm:5", "table"])


@given(st.lists(st.lists(PART, max_size=5).map(tuple), min_size=1, max_size=80))
def test_every_node_is_in_one_row(groups: list[Group]) -> None:
    layout = arrange([[at - 1] if at else [] for at in range(len(groups))])
    rows = rows_of(layout, [f"n{at}" for at in range(len(groups))], groups)
    assert len(rows) <= MAX_ROWS
    assert sorted(node for row in rows for node in row.members) == list(range(len(groups)))


def test_a_text_counts_each_row_and_names_what_needs_a_look() -> None:
    statuses = ["running", "succeeded", "succeeded", "waiting", "succeeded", "failed"]
    names = [f"n{number}" for number in range(6)]
    assert row_lines(rows_by(LOOK), names, statuses) == [
        "main: 1 running (n0)",
        f"look {X}2: 2 succeeded (n1, n2)",
        f"  search:4 {X}2: 1 succeeded (n4), 1 failed (n5)",
        "llm:9: 1 waiting (n3)",
    ]
