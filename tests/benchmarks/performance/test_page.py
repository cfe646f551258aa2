"""The page and its chart: written between their comments, complete and readable."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.performance import page
from benchmarks.performance.chart import COLOURS, LEFT, WIDTH, Lane, chart, position
from benchmarks.performance.page import CHART, PAGE, write, written
from benchmarks.performance.run import PARTS
from benchmarks.performance.table import Part, Table

SVG = "{http://www.w3.org/2000/svg}"
BLANK = "above\n<!-- measured: a -->\n<!-- end of a -->\nbelow\n"


def test_what_stands_between_the_comments_is_replaced_and_nothing_else() -> None:
    once = written(BLANK, "a", "first")
    assert once == "above\n<!-- measured: a -->\n\nfirst\n\n<!-- end of a -->\nbelow\n"
    assert written(once, "a", "second") == once.replace("first", "second")


@pytest.mark.parametrize(
    "text",
    ["", "<!-- measured: a -->", BLANK + BLANK, "<!-- end of a --><!-- measured: a -->", BLANK.replace("a", "b")],
)
def test_a_page_without_its_comments_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="end of a"):
        written(text, "a", "first")


def test_a_part_is_written_with_its_blocks_its_machine_and_its_chart(tmp_path: Path) -> None:
    text, drawn = tmp_path / "page.md", tmp_path / "chart.svg"
    text.write_text(BLANK + BLANK.replace(" a ", " faster "))
    part = Part(Table(("x", "y"), [("1", "2")]), ["A note."], more={"faster": "- nobody"}, chart="<svg/>")
    write("a", part, "Two cores.", page=text, chart=drawn)
    assert "| 1 | 2 |\n\nA note.\n\nTwo cores.\n\n<!-- end of a -->" in text.read_text()
    assert "- nobody" in text.read_text()
    assert drawn.read_text() == "<svg/>"


def test_the_page_has_a_place_for_every_part() -> None:
    text = PAGE.read_text()
    for name in (*PARTS, "faster"):
        text = written(text, name, f"figures of {name}")
    assert f"({CHART.relative_to(PAGE.parent)})" in text


def test_the_machine_is_named_with_the_versions_that_count() -> None:
    told = page.machine(with_peers=True)
    for what in ("commit", "cores", "load average", "Python", "temporalio", "Temporal server", "langgraph", "dbos"):
        assert what in told


def drawing(*lanes: Lane) -> ET.Element:
    return ET.fromstring(chart({"a & b": lanes}))


def test_the_further_a_dot_stands_the_slower_its_contender_is() -> None:
    places = [position(ratio) for ratio in (1.0, 1.01, 1.05, 1.4, 3.0, 36.0, 110.0)]
    assert places[0] == LEFT
    assert all(left < right for left, right in pairwise(places))
    assert position(0.99) == LEFT, "a clock that is a little early"
    assert position(1e9) == position(1e12) < WIDTH


def test_a_chart_has_a_dot_and_its_ratio_for_each_and_no_text_outside() -> None:
    root = drawing(Lane("one", 1.04), Lane("two", 1e6))
    texts = {text.text: text for text in root.iter(f"{SVG}text")}
    assert {"a & b", "1.04", "1000000", "one", "two"} <= texts.keys()
    assert "bold" in texts["1000000"].attrib["class"], "the last one stands out"
    assert len(list(root.iter(f"{SVG}circle"))) == 4, "two, and two in the legend"
    assert all(0 <= float(each.attrib["x"]) < WIDTH - 40 for each in texts.values())


def test_lanes_do_not_overlap() -> None:
    root = ET.fromstring(chart({name: [Lane(f"c{index}", 2.0) for index in range(6)] for name in "ab"}))
    middles = sorted(float(dot.attrib["cy"]) for dot in root.iter(f"{SVG}circle") if float(dot.attrib["cx"]) > LEFT)
    lanes = [middle for middle in middles if middle > 78]
    assert len(lanes) == 12
    assert all(right - left >= 12 for left, right in pairwise(lanes))
    assert float(root.attrib["height"]) > lanes[-1]


def test_every_contender_has_a_colour_of_its_own() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    with pytest.raises(ValueError, match="7 contenders"):
        drawing(*(Lane(f"c{index}", 2.0) for index in range(7)))
