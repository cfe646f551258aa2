"""`table`: order, sums and text of rows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.activities.toolbox import ToolArgumentError, ToolContext, load_tools
from sennit.activities.toolbox.table import TableArguments, table

ROWS = [
    {"name": "a", "size": 2, "year": 2020},
    {"name": "b", "size": 12000.5, "year": 1999},
    {"name": "c", "year": None},
    {"name": "d", "size": 3, "year": 2001},
]


def made(rows: list[Any] = ROWS, **more: Any) -> Any:
    return table(TableArguments(rows=rows, **more))


def test_a_table_is_aligned_and_a_year_stays_a_year() -> None:
    assert made(sort_by="size", descending=True).text == (
        "| name |     size | year |\n"
        "| ---- | -------: | ---: |\n"
        "| b    | 12,000.5 | 1999 |\n"
        "| d    |        3 | 2001 |\n"
        "| a    |        2 | 2020 |\n"
        "| c    |          |      |"
    )


@pytest.mark.parametrize(
    ("values", "descending", "order"),
    [
        ([2, 12000.5, None, 3], False, [2, 3, 12000.5, None]),
        ([2, 12000.5, None, 3], True, [12000.5, 3, 2, None]),
        (["b", "A", 2, None, True], False, [2, "A", "b", None, True]),
    ],
)
def test_numbers_come_before_text_whatever_its_case_and_gaps_last(
    values: list[Any], descending: bool, order: list[Any]
) -> None:
    rows = made([{"v": value} for value in values], sort_by="v", descending=descending).rows
    assert [row["v"] for row in rows] == order


def test_sums_and_count_are_of_all_rows_also_of_those_left_out() -> None:
    found = made(sort_by="size", limit=1)
    assert (found.count, found.totals, len(found.rows)) == (4, {"size": 12005.5, "year": 6020}, 1)
    assert made([{"v": 0.1}, {"v": 0.2}]).totals == {"v": 0.3}


def test_without_rows_there_is_a_head_and_sums_are_nothing() -> None:
    found = made([], columns=["name", "size"], sort_by="size")
    assert (found.count, found.totals) == (0, {"name": 0, "size": 0})
    assert found.text == "| name | size |\n| ---- | ---- |"
    assert made([]).text == ""


def test_a_field_that_no_row_has_is_named_with_the_nearest() -> None:
    with pytest.raises(ToolArgumentError, match="sort_by: no row has the field 'siez'; did you mean `size`"):
        made(sort_by="siez")


def test_long_cells_lose_their_middle_until_the_table_fits() -> None:
    rows = [{"path": f"src/{'deep/' * 20}end.py", "what": "x" * 300, "n": 123456}]
    text = made(rows, width=60).text
    assert {len(line) for line in text.splitlines()} == {60}
    assert "end.py |" in text
    assert "123,456" in text


def test_a_cell_cannot_end_its_cell_or_its_line() -> None:
    text = made([{"a": "x | y\n| z |", "b": [1, {"c": "|"}], "c": True}]).text
    assert len(text.splitlines()) == 3
    assert {line.count("|") for line in text.splitlines()} == {4}


scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=40)
rows = st.lists(st.dictionaries(st.sampled_from("abcd"), scalars, min_size=1), min_size=1, max_size=8)


@given(rows, st.booleans())
def test_whatever_the_cells_hold_no_row_is_lost_and_every_line_has_all_columns(
    given_rows: list[dict[str, Any]], descending: bool
) -> None:
    first = next(iter(given_rows[0]))
    found = made(given_rows, sort_by=first, descending=descending)
    assert sorted(map(repr, found.rows)) == sorted(map(repr, given_rows))
    columns = len({name for row in given_rows for name in row})
    lines = found.text.split("\n")
    assert len(lines) == len(given_rows) + 2
    assert {line.count("|") for line in lines} == {columns + 1}


async def test_it_is_a_tool(context: ToolContext) -> None:
    found = await load_tools().get("table").call({"rows": ROWS, "columns": ["name"], "limit": 1}, context)
    assert found["text"] == "| name |\n| ---- |\n| a    |"
