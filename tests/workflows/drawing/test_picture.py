"""Pictures of graphs: well-formed, nothing overlaps, and the graph stands still while its nodes change."""

import re

from doubles.svg import Drawing
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sennit.workflows.drawing.diagram import Diagram, Mark, Node
from sennit.workflows.drawing.layout import arrange
from sennit.workflows.drawing.picture import picture
from sennit.workflows.drawing.styles import STYLES

STATUSES = [status for status in STYLES if status != "planned"]
TEXTS = st.text(max_size=50).map(lambda text: " ".join("".join(c for c in text if c.isprintable()).split()))
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,39}", fullmatch=True)


@st.composite
def drawings(draw: st.DrawFn, most: int = 30) -> tuple[Diagram, list[Mark]]:
    """A graph with any statuses and texts."""
    count = draw(st.integers(1, most))
    graph = [draw(st.lists(st.integers(0, node - 1), max_size=3)) if node else [] for node in range(count)]
    nodes = [Node(draw(NAMES), draw(TEXTS)) for _ in graph]
    marks = [
        Mark(draw(st.sampled_from(STATUSES)), draw(st.sampled_from(["", "59.9 s", "1000/1000"])), title=draw(TEXTS))
        for _ in graph
    ]
    return Diagram(arrange(graph), nodes), marks


def counted(marks: list[Mark]) -> dict[str, int]:
    return {status: n for status in STATUSES if (n := sum(mark.status == status for mark in marks))}


@settings(max_examples=80)
@given(drawings(), st.booleans(), st.booleans())
def test_nothing_overlaps_or_is_cut(drawn: tuple[Diagram, list[Mark]], whole: bool, alone: bool) -> None:
    sketch, marks = drawn
    drawing = Drawing(picture(sketch, marks, counts=counted(marks), whole=whole, standalone=alone))
    assert drawing.clashes() == []
    assert len(drawing.boxes) == len(marks) or not whole


@settings(max_examples=40)
@given(drawings(most=60))
def test_the_picture_stands_still(drawn: tuple[Diagram, list[Mark]]) -> None:
    sketch, marks = drawn
    assume(sketch.layout.whole)  # a row's parts move with the counts
    running = [Mark("running") for _ in marks]
    found = [sorted(Drawing(picture(sketch, some)).boxes) for some in (marks, running)]
    assert found[0] == found[1]


@settings(max_examples=20)
@given(drawings())
def test_the_same_run_gives_the_same_picture(drawn: tuple[Diagram, list[Mark]]) -> None:
    sketch, marks = drawn
    again = Diagram(sketch.layout, list(sketch.nodes))
    assert picture(sketch, marks) == picture(again, list(marks))


def test_a_status_shows_without_its_colour() -> None:
    shapes = {status: re.sub("#[0-9A-F]{6}", "", style.box + style.badge) for status, style in STYLES.items()}
    assert len(set(shapes.values())) == len(STYLES)


def test_titles_and_progress_of_a_map() -> None:
    sketch = Diagram(arrange([[], [0]]), [Node("list"), Node("m", "map read")])
    svg = picture(sketch, [Mark("succeeded"), Mark("running", "9/30", 0.3, "m <is> {running}")])
    drawing = Drawing(svg)
    assert drawing.titles == ["m <is> {running}"]
    assert "9/30" in [area.text for area in drawing.texts]
    assert "{" not in svg
    assert "<animate" in svg


def test_layers_stand_for_nodes_in_a_big_graph() -> None:
    graph = [[node - 20] if node >= 20 else [] for node in range(400)]
    marks = [Mark(STATUSES[node % 8]) for node in range(400)]
    drawing = Drawing(
        picture(Diagram(arrange(graph), [Node(f"n{n}") for n in range(400)]), marks, counts=counted(marks))
    )
    assert drawing.clashes() == []
    texts = [area.text for area in drawing.texts]
    assert "layers 1-2: n0…n39" in texts
    assert "50 waiting" in texts


def test_counts_of_three_digits_are_exact() -> None:
    marks = [Mark(STATUSES[node % 8]) for node in range(7_992)]
    drawing = Drawing(picture(Diagram(arrange([[] for _ in marks]), [Node("n") for _ in marks]), marks))
    assert drawing.clashes() == []
    assert [area.text for area in drawing.texts].count("999") == 8


def test_huge_layers_are_counted_in_thousands() -> None:
    marks = [Mark(STATUSES[node % 8]) for node in range(16_000)]
    sketch = Diagram(arrange([[] for _ in marks]), [Node("n" * 40) for _ in marks])
    drawing = Drawing(picture(sketch, marks, counts=counted(marks)))
    assert drawing.clashes() == []
    assert [area.text for area in drawing.texts].count("2k") == 8


def test_a_file_of_its_own_follows_the_page() -> None:
    svg = picture(Diagram(arrange([[]]), [Node("a")], with_badges=False), [Mark("planned")], standalone=True)
    assert "xmlns=" in svg
    assert "prefers-color-scheme:dark" in svg
