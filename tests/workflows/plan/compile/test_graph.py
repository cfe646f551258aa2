"""A plan by index, and the edges derived from it."""

from graphlib import TopologicalSorter

from doubles.plan.play import Play, join, node
from doubles.plan.strategies import execution_plans
from hypothesis import given

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph


def test_an_execution_plan_is_read_back_as_it_was_packed() -> None:
    specs = [
        NodeSpec("a", "tool", summary="a search", locks=[("repo", True)], fallback=("d", 3, {"n": 1})),
        NodeSpec("m", "map", needs=[0], over=(0, "items.length"), cap=5, item_kind="llm"),
        NodeSpec("j", "join", inputs=[0, 1], policy="quorum", quorum=1, deadline=500),
        NodeSpec(
            "g", "gate", question="which?", schema={"type": "string"}, when={"ref": "$a.n", "op": "eq", "value": 1}
        ),
    ]
    packed = ExecutionPlan(specs, [2], "fail", "off", direct=True).pack()
    again = ExecutionPlan.unpack(packed)
    assert again.pack() == packed
    assert [spec.id for spec in again.specs] == ["a", "m", "j", "g"]
    assert (again.answer, again.on_failure, again.fuse, again.direct) == ([2], "fail", "off", True)
    assert again.specs[2].policy == "quorum"


def test_summaries_are_read_back_also_those_of_stages() -> None:
    stages = [NodeSpec("a", "map", summary="m.a look up"), NodeSpec("b", "map", summary="b tells")]
    specs = [NodeSpec("m", "map", summary="m each", stages=stages), NodeSpec("n", "tool", summary="n search")]
    assert ExecutionPlan.unpack(ExecutionPlan(specs, [1]).pack()).specs == specs


def test_a_plain_node_takes_few_bytes() -> None:
    specs = [NodeSpec(f"n{index}", "tool", needs=[index - 1] if index else []) for index in range(1_000)]
    assert len(ExecutionPlan(specs, [999]).pack()) < 12_000


def test_who_reads_a_node_s_end_is_known() -> None:
    graph = Play(
        node("a", successor="s"), node("s", is_successor=True), node("b", "a"), join("j", "a", "b"), answer="j"
    ).graph
    assert graph.behind(0) == (2, 3)
    assert graph.behind(1) == (0,)


def test_a_fallback_node_comes_before_its_host() -> None:
    graph = Play(node("a", successor="s"), node("s", is_successor=True), node("b", "a"), answer="b").graph
    assert graph.place[1] < graph.place[0] < graph.place[2]


def test_what_is_below_a_join_that_may_close_early_is_known() -> None:
    nodes = (node("x"), node("a", "x"), node("b"), node("c"), join("j", "a", "b", policy="first"), node("d", "j", "c"))
    graph = Play(*nodes, answer="d").graph
    assert [graph.specs[index].id for index in sorted(graph.early)] == ["x", "a", "b"]


@given(execution_plans())
def test_every_plan_has_an_order_in_which_nothing_comes_before_what_it_waits_for(execution_plan: ExecutionPlan) -> None:
    graph = Graph(execution_plan)
    waits = {index: [*graph.deps[index], *spec.inputs] for index, spec in enumerate(execution_plan.specs)}
    for fallback, host in graph.predecessor.items():
        waits[host].append(fallback)
    assert sorted(graph.order()) == sorted(TopologicalSorter(waits).static_order())
    for node_index, before in waits.items():
        assert all(graph.place[other] < graph.place[node_index] for other in before)
