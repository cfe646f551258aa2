"""Places of calls: what boxes are called, in which order calls are listed, and what belongs together."""

import pytest

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.views.call_sites import group_of, groups_of, in_order, path_and_line, short_name


def called(name: str, what: str, kind: str = "tool", inputs: tuple[int, ...] = ()) -> NodeSpec:
    site = what.partition(" ")[0] if ":" in what.partition(" ")[0] else ""
    summary = f"{name} {what}"
    return NodeSpec(name, kind, summary=summary, page="p", inputs=[*inputs], call_site=site)  # type: ignore[arg-type]


def program() -> Graph:
    """`main` starts two tasks, which call, and a model that calls a tool; then it asks."""
    graph = Graph(ExecutionPlan([NodeSpec("main", "program", summary="main program 1")], [0]))
    tasks = [called(f"m_{n}", f"look#{n}:9 {n}", "task") for n in (1, 2)]
    calls = [called(f"m_{n}_1", f"look#{n}/fetch#1/search:4 {n}") for n in (1, 2)]
    graph.append([*tasks, *calls], 0)
    graph.append([called("m_4", "llm:10 go", "llm")], 0)
    loop = [called("m_4_t1_1", 'calculate "6"'), called("m_4_t1_all", "join settled of 1", "join", (6,))]
    graph.go_on_with([*loop, called("m_4_t2", "worker go", "llm", (7,))], 5)
    graph.append([called("m_5", "ask:12 Well?", "gate")], 0)
    return graph


@pytest.mark.parametrize(
    ("what", "kind", "place", "group"),
    [
        ("look#3/search:4 tides", "tool", ("look#3/search", 4), ("look", "search:4")),
        ("look#3:9 q", "task", ("look#3", 9), ("look",)),
        ("part-1/a>b#12/llm:7", "llm", ("part-1/a>b#12/llm", 7), ("part-1", "a>b", "llm:7")),
        ("search a:4", "tool", ("", 0), ()),
        ("worker Say: a:4 b", "llm", ("", 0), ()),
    ],
)
def test_a_call_is_known_by_its_place(what: str, kind: str, place: tuple[str, int], group: tuple[str, ...]) -> None:
    assert path_and_line(called("n", what, kind)) == place
    assert group_of(called("n", what, kind).call_site, kind) == group


def test_boxes_have_short_names() -> None:
    names = [short_name(spec) for spec in program().specs]
    assert names[:5] == ["main", "look#1", "look#2", "search:4", "search:4"]
    assert names[5:] == ["llm:10", "calculate", "join", "llm", "ask:12"]


def test_calls_stand_behind_what_has_called_them() -> None:
    graph = program()
    order = ["main", "m_1", "m_1_1", "m_2", "m_2_1", "m_4", "m_4_t1_1", "m_4_t1_all", "m_4_t2", "m_5"]
    assert [graph.specs[node].id for node in in_order(graph)] == order


def test_a_tool_loop_belongs_to_the_call_that_began_it() -> None:
    graph = program()
    groups = dict(zip([spec.id for spec in graph.specs], groups_of(graph), strict=True))
    assert groups["main"] == ("main",)
    assert groups["m_2_1"] == ("look", "fetch", "search:4")
    assert groups["m_4"] == groups["m_4_t2"] == groups["m_4_t1_all"] == ("llm:10",)
    assert groups["m_4_t1_1"] == ("llm:10", "calculate")
    assert groups_of(Graph(ExecutionPlan([NodeSpec("a", "tool", summary="a search b:4")], [0]))) == [()]
