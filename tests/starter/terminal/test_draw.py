"""Plans as pictures."""

from typing import Any

import pytest
from doubles.svg import Drawing
from rich.cells import cell_len

from sennit.starter.terminal.draw import mermaid, sources_of, svg, text_picture
from sennit.workflows.plan.language.nodes import NODES
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.summary import DRAWINGS

PLAN = parse_plan(
    {
        "goal": "Which is longer, the Nile or the Amazon?",
        "nodes": [
            {"id": "a", "kind": "tool", "tool": "search", "args": {"query": "length of the Nile", "k": 3}},
            {
                "id": "b",
                "kind": "tool",
                "tool": "calculate",
                "args": {"expression": "1 < 2"},
                "on_error": {"instead": "z"},
            },
            {"id": "both", "kind": "join", "inputs": ["a", "b"], "policy": {"quorum": "60%"}},
            {
                "id": "m",
                "kind": "map",
                "over": "$a.items",
                "do": {"kind": "tool", "tool": "read", "args": {"p": "$item"}},
            },
            {"id": "ok", "kind": "gate", "question": 'Is "it" right? ' * 20, "needs": ["both"]},
            {
                "id": "c",
                "kind": "llm",
                "prompt": "Compare $both $m",
                "when": {"ref": "$ok:status", "op": "eq", "value": "x"},
            },
            {"id": "z", "kind": "tool", "tool": "list_files"},
        ],
    }
)


def test_a_picture_shows_layers_kinds_and_arrows() -> None:
    assert text_picture(PLAN, 100).splitlines() == [
        "goal    Which is longer, the Nile or the Amazon?",
        "",
        '  a     tool  search "length of the Nile" k=3',
        '  b     tool  calculate "1 < 2"',
        "  │",
        "  ▼",
        "  both  join  quorum 60% of 2  <- a, b",
        '  m     map   read "$item" over $a.items  <- a',
        "  z     tool  list_files  <- b",
        "  │",
        "  ▼",
        '  ok    gate  Is "it" right? Is "it" right? Is "it" right? Is "it" right? Is "it" right? I…  <- both',
        "  │",
        "  ▼",
        "  c     llm   worker Compare $both $m  <- both, m, ok",
        "  │",
        "  ▼",
        "answer  $c",
    ]


def test_a_gate_stands_behind_what_its_question_refers_to() -> None:
    nodes = [{"id": "draft", "kind": "tool", "tool": "t"}, {"id": "ok", "kind": "gate", "question": "Publish $draft?"}]
    drawn = text_picture(parse_plan({"nodes": nodes}), 80).splitlines()
    assert drawn[:4] == ["  draft  tool  t", "  │", "  ▼", "  ok     gate  Publish $draft?  <- draft"]


@pytest.mark.parametrize("width", [80, 200])
def test_a_picture_fits_the_terminal(width: int) -> None:
    wide: list[dict[str, Any]] = [{"id": f"node_{n}", "kind": "tool", "tool": "t" * 70} for n in range(40)]
    wide.append({"id": "all", "kind": "join", "inputs": [node["id"] for node in wide]})
    drawn = text_picture(parse_plan({"nodes": wide}), width)
    assert max(map(cell_len, drawn.splitlines())) <= width
    assert "+3" in drawn


def test_a_flowchart_has_every_node_and_edge_and_quotes_text() -> None:
    chart = mermaid(PLAN).splitlines()
    assert chart[0] == "flowchart TD"
    assert '  n_b["b: calculate #quot;1 #lt; 2#quot;"]' in chart
    assert "  n_a --> n_both" in chart
    assert "  n_b -. instead .-> n_z" in chart
    assert sum("-->" in line for line in chart) == 7
    assert not [line for line in chart if line.count('"') not in (0, 2)]


def test_an_svg_file_has_every_node_with_what_it_does() -> None:
    text = svg(PLAN)
    drawing = Drawing(text)
    assert drawing.clashes() == []
    texts = [area.text for area in drawing.texts]
    assert {"a", "both", "join quorum 60% of 2", 'calculate "1 < 2"'} < set(texts)
    assert len(drawing.boxes) == len(PLAN.nodes)
    assert text.count("stroke-dasharray='2 5'") == 1
    assert text.startswith("<svg ")
    assert "xmlns='http://www.w3.org/2000/svg'" in text


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "tool", "tool": "t"},
        {"kind": "llm", "prompt": "p"},
        {"kind": "agent", "goal": "g"},
        {"kind": "program", "script": '"""Look it up."""\nasync def main():\n    return 1'},
        {"kind": "map", "over": "$input.list", "do": {"kind": "tool", "tool": "t"}},
        {"kind": "join", "inputs": ["a"]},
        {"kind": "gate", "question": "q"},
    ],
    ids=lambda node: node["kind"],
)
def test_every_kind_of_node_is_drawn_in_every_way(node: dict[str, Any]) -> None:
    first = {"id": "a", "kind": "tool", "tool": "t"}
    plan = parse_plan({"inputs": {"list": {"type": "array"}}, "nodes": [first, {"id": "n", **node}]})
    (line,) = [line for line in mermaid(plan).splitlines() if line.startswith("  n_n")]
    assert line.endswith(DRAWINGS[node["kind"]].closing)
    assert f"  {node['kind']}" in text_picture(plan, 100)
    about = "Look it up." if node["kind"] == "program" else ""
    assert about in line
    assert about in text_picture(plan, 100)
    assert len(Drawing(svg(plan)).boxes) == 2


def test_every_kind_has_its_drawing() -> None:
    """A task is no node of a plan: the board of a program draws it."""
    assert [*NODES] == [kind for kind in DRAWINGS if kind != "task"]


def test_a_long_chain_is_drawn_at_once() -> None:
    nodes = [{"id": f"n{n}", "kind": "tool", "tool": "t", "needs": [f"n{n - 1}"] if n else []} for n in range(5000)]
    plan = parse_plan({"nodes": nodes})
    assert sources_of(plan)[-1] == [4998]
    assert len(text_picture(plan, 80).splitlines()) == 3 * 5000 + 1
