"""Tool loops: what the ids of their nodes are, also when a loop or one turn of it runs again."""

from typing import Any

from sennit.activities.toolbox.read_output import ENTRY
from sennit.workflows.plan.edits.tool_loop import READER, call_results, expand_tool_calls, last_turn
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import LlmNode, Plan, ToolNode
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
    assert texts[0] == ("1", "n_t1_1", "piece")
    assert texts[1] == ("2", "refused", "there is no output 'b' to read; there are a.text")
    assert "characters" in texts[2][2]
    assert texts[3][2].startswith("there is no output")
    without = expand_tool_calls(base, "n", 1, asked, "digest", {**TOOLS, READER: ENTRY})
    assert new(without, base) == ["n_t2"], "without outputs there is no such tool"
