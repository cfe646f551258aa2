"""Tool loops: what the ids of their nodes are, also when a loop or one turn of it runs again."""

from typing import Any

import pytest

from sennit.activities.toolbox.read_output import ENTRY
from sennit.workflows.plan.edits.tool_loop import READER, call_results, calls_going_on, expand_tool_calls, last_turn
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import EndedCalls, JoinNode, LlmNode, Plan, ToolNode, Turn, TurnCalls
from sennit.workflows.plan.language.parser import parse_plan

TOOLS = {"add": {"name": "add", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
CALLS: list[dict[str, Any]] = [{"id": "1", "name": "add", "arguments": {"a": 1}}]


def grown(plan: Plan, name: str, generation: int = 1) -> Plan:
    return expand_tool_calls(plan, name, generation, CALLS, "digest", TOOLS)


def new(plan: Plan, before: Plan) -> list[str]:
    return [node.id for node in plan.nodes[len(before.nodes) :]]


def test_every_turn_that_runs_again_has_ids_of_its_own() -> None:
    base = parse_plan({"nodes": [{"id": "n", "kind": "llm", "prompt": "?", "tools": ["add"]}], "answer": "$n"})
    first = grown(base, "n")
    second = grown(first, "n_t2")
    assert new(first, base) == ["n_t1_1", "n_t1_all", "n_t2"]
    assert new(second, first) == ["n_t2_1", "n_t2_all", "n_t3"]
    loop = grown(second, "n", 2)
    assert new(loop, second) == ["n_g2t1_1", "n_g2t1_all", "n_g2t2"]
    turn = grown(second, "n_t2", 2)
    third = grown(turn, "n_t2", 3)
    later = grown(third, new(third, turn)[-1])
    assert len({node.id for node in later.nodes}) == len(later.nodes)


def test_loops_whose_ids_begin_alike_have_ids_of_their_own() -> None:
    names = [f"summarise_quarterly_report_{year}" for year in range(1900, 1950)]
    nodes = [{"id": name, "kind": "llm", "prompt": "?", "tools": ["add"], "max_turns": 50} for name in names]
    plan = parse_plan({"nodes": nodes, "answer": "$goal"})
    for name in names:
        plan = expand_tool_calls(plan, name, 1, CALLS * 32, "digest", TOOLS)
    plan = expand_tool_calls(plan, names[0], 2, CALLS, "digest", TOOLS)
    ids = [node.id for node in plan.nodes]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 40
    turns = [name for name in ids if name.endswith("t2")]
    assert turns[:2] == ["summarise_quarterly_repo_t2", "summarise_quarterly_repo_xt2"]
    assert turns[6:8] == ["summarise_quarterly_repo_xxxxxxt2", "summarise_quarterly_repo_7t2"]
    assert grown(plan, turns[-1]).nodes[-1].id == f"{turns[-1][:-1]}3"


def long_input(**fields: Any) -> Plan:
    nodes = [{"id": "a", "kind": "tool", "tool": "add"}, {"id": "n", "kind": "llm", "prompt": "? ${a.text}", **fields}]
    return parse_plan({"nodes": nodes})


def test_a_model_reads_its_inputs_by_their_names_and_nothing_else() -> None:
    base = long_input(context={"over": "reference"})
    node = base.nodes[1]
    assert isinstance(node, LlmNode)
    assert not last_turn(node)
    asked = [
        {"id": "1", "name": READER, "arguments": {"node": "$a.text", "from": 5, "output": "$a.secret"}},
        {"id": "2", "name": READER, "arguments": {"node": "b"}},
        {"id": "3", "name": READER, "arguments": {"node": "a.text", "find": "$a", "characters": 0}},
        {"id": "4", "name": READER, "arguments": {"node": ["a.text"]}},
    ]
    outputs = {"a.text": "${a.text}"}
    plan = expand_tool_calls(base, "n", 1, asked, "digest", {**TOOLS, READER: ENTRY}, outputs)
    read = plan.nodes[2]
    assert isinstance(read, ToolNode)
    assert read.args == {"node": "a.text", "from": 5, "output": "${a.text}"}
    assert dependencies.links_of(read).reads == ["a"]
    turn = dependencies.turn_of(plan.nodes[-1])
    assert turn is not None
    texts = call_results(turn, asked, [{"id": "n_t1_1", "status": "succeeded", "value": "piece"}])
    assert texts[0] == ("1", [("n_t1_1", "piece")])
    assert texts[1] == ("2", [("refused", "there is no output 'b' to read; there are a.text")])
    assert "characters" in texts[2].nodes[0][1]
    assert texts[3].nodes[0][1].startswith("there is no output")
    without = expand_tool_calls(base, "n", 1, asked, "digest", {**TOOLS, READER: ENTRY})
    assert new(without, base) == ["n_t2"], "without outputs there is no such tool"


def turns(**fields: Any) -> Plan:
    node = {"id": "n", "kind": "llm", "prompt": "?", "tools": ["add"], "turn": {"quorum": 2}, **fields}
    return parse_plan({"nodes": [node], "answer": "$n"})


def asks(*calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": str(number), "name": name, "arguments": given} for number, (name, given) in enumerate(calls, 1)]


def join_of(plan: Plan, name: str) -> JoinNode:
    (found,) = (node for node in plan.nodes if node.id == name)
    assert isinstance(found, JoinNode)
    return found


def last_turn_of(plan: Plan) -> Turn:
    turn = dependencies.turn_of(plan.nodes[-1])
    assert turn is not None
    return turn


def test_a_call_that_goes_on_is_an_input_of_the_next_turn_until_that_is_told_of_it() -> None:
    first = expand_tool_calls(turns(), "n", 1, asks(("add", {"a": 1}), ("add", {"a": 2})), "digest", TOOLS)
    assert join_of(first, "n_t1_all").turn == TurnCalls(rule=EndedCalls(quorum=2), calls=2)
    more = asks(("add", {"a": 3}), ("wait_for", {"calls": ["n_t1_2"]}), ("cancel_call", {"call": "n_t1_1"}))
    running = ("n_t1_1", "n_t1_2")
    second = expand_tool_calls(first, "n_t2", 1, more, "digest", TOOLS, running=running)
    join = join_of(second, "n_t2_all")
    assert join.inputs == ("n_t2_1", "n_t1_1", "n_t1_2")
    rule = EndedCalls(quorum=2)
    assert join.turn == TurnCalls(rule=rule, calls=1, awaited=("n_t1_2",), cancelled=("n_t1_1",))
    assert new(second, first) == ["n_t2_1", "n_t2_all", "n_t3"], "to wait and to cancel are no nodes"
    assert parse_again(second) == second
    results: list[dict[str, Any]] = [
        {"id": "n_t2_1", "status": "running"},
        {"id": "n_t1_1", "status": "cancelled", "error": "Cancelled: the model has cancelled it"},
        {"id": "n_t1_2", "status": "succeeded", "value": 2},
    ]
    assert call_results(last_turn_of(second), more, results) == [
        ("1", [("n_t2_1", "still running")]),
        ("2", [("n_t1_2", "2")]),
        ("3", [("n_t1_1", "cancelled: Cancelled: the model has cancelled it")]),
    ]
    assert calls_going_on(results) == ("n_t2_1",)


def parse_again(plan: Plan) -> Plan:
    """Return the plan as it is read from the store."""
    return Plan.model_validate(plan.model_dump(mode="json", by_alias=True))


def test_a_late_result_nobody_waits_for_stands_at_the_first_call_of_the_later_turn() -> None:
    calls = asks(("add", {"a": 3}), ("add", {"a": 4}))
    turn = Turn(number=3, node="n_t2", rule="first")
    results: list[dict[str, Any]] = [
        {"id": "n_t2_1", "status": "succeeded", "value": 3},
        {"id": "n_t2_2", "status": "running"},
        {"id": "n_t1_1", "status": "running"},
        {"id": "n_t1_2", "status": "failed", "error": "Boom"},
    ]
    assert call_results(turn, calls, results) == [
        ("1", [("n_t2_1", "3"), ("n_t1_2", "failed: Boom")]),
        ("2", [("n_t2_2", "still running")]),
    ]
    assert calls_going_on(results) == ("n_t2_2", "n_t1_1")


def test_a_model_waits_for_all_running_calls_if_it_names_none() -> None:
    first = grown(turns(), "n")
    second = expand_tool_calls(first, "n_t2", 1, asks(("wait_for", {})), "digest", TOOLS, running=("n_t1_1",))
    assert join_of(second, "n_t2_all").turn == TurnCalls(rule=EndedCalls(quorum=2), calls=0, awaited=("n_t1_1",))


@pytest.mark.parametrize(
    ("name", "given", "running", "why"),
    [
        ("wait_for", {"calls": ["x"]}, ["n_t1_1"], "no call 'x' is running; there are n_t1_1"),
        ("wait_for", {"calls": {"a": 1}}, ["n_t1_1"], "name a running call; there are n_t1_1"),
        ("wait_for", {"calls": [["n_t1_1"]]}, ["n_t1_1"], "no call \"['n_t1_1']\" is running; there are n_t1_1"),
        ("wait_for", {}, [], "no call is running"),
        ("wait_for", "n_t1_1", ["n_t1_1"], "the arguments are no JSON object"),
        ("cancel_call", {}, ["n_t1_1"], "name a running call; there are n_t1_1"),
        ("cancel_call", {"call": "n_t1_9"}, ["n_t1_1"], "no call 'n_t1_9' is running; there are n_t1_1"),
    ],
)
def test_a_model_that_names_no_running_call_is_told_so(name: str, given: Any, running: list[str], why: str) -> None:
    calls = [{"id": "1", "name": name, "arguments": given}]
    plan = expand_tool_calls(grown(turns(), "n"), "n_t2", 1, calls, "digest", TOOLS, running=running)
    assert last_turn_of(plan).refused == {"1": why}


def test_nothing_goes_on_behind_the_last_turn() -> None:
    base = turns(max_turns=2)
    plan = expand_tool_calls(base, "n", 1, asks(("add", {"a": 1}), ("add", {"a": 2})), "digest", TOOLS)
    rule = join_of(plan, "n_t1_all").turn
    assert rule is not None
    assert rule.awaited == ("n_t1_1", "n_t1_2")


def test_a_loop_that_waits_for_all_calls_is_written_as_it_always_was() -> None:
    """Digests and keys of plans, and so of runs that go on, depend on it."""
    base = turns(turn="all")
    plan = expand_tool_calls(base, "n", 1, asks(("add", {"a": 1})), "digest", TOOLS)
    written = plan.model_dump(mode="json", by_alias=True)
    assert written["nodes"][0]["turn"] is None
    assert "turn" not in written["nodes"][2]
    fields = {"number": 2, "node": "n", "transcript": "digest", "results": "$n_t1_all", "refused": {}}
    assert written["nodes"][3]["turn"] == fields
    waits = expand_tool_calls(base, "n", 1, asks(("wait_for", {})), "digest", TOOLS)
    assert last_turn_of(waits).refused == {"1": "there is no tool 'wait_for'; there are add"}
