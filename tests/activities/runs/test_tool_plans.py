"""Plans as native tool calls: read by the server, started as they come, and in lines where a server takes none."""

import json
from typing import Any

import pytest
from doubles.planner_desk import HOME, LINES, Desk, Nodes

from sennit.testing.model_rules import Call, Reply
from sennit.workflows.messages.contracts import PlanResult

in_tools = pytest.mark.parametrize("desk", ["tools"], indirect=True)

CALLS = (
    Call("search", {"query": "Nile length"}),
    Call("search", {"query": "Amazon length", "k": "$1.count"}),
    Call("join", {"results": ["$1", "$2"], "text": "Which is longer"}),
)


async def answered(desk: Desk, *replies: Any, **fields: Any) -> tuple[PlanResult, Any, list[Nodes]]:
    """Return the result, its plan and the batches of nodes that came while the model wrote."""
    batches: list[Nodes] = []

    async def take(nodes: Nodes) -> None:
        batches.append(nodes)

    desk.server.on("", *replies)
    planned = await desk.ask(on_nodes=take, **fields)
    return planned, await desk.plan(planned), batches


@in_tools
async def test_a_plan_is_written_in_calls_of_functions(desk: Desk) -> None:
    planned, plan, batches = await answered(desk, Reply("I plan.", calls=CALLS, rate=20, characters=9))
    assert (planned.problems, plan["answer"]) == ((), "$n3")
    assert [node["id"] for node in plan["nodes"]] == ["n1", "n2", "n3"]
    assert plan["nodes"][1]["args"] == {"query": "Amazon length", "k": "$n1.count"}
    assert plan["nodes"][2]["inputs"] == ["n1", "n2"]
    assert [[node["id"] for node in nodes] for nodes in batches] == [["n1"], ["n2"], ["n3"]], "each as it is whole"
    asked = desk.server.asked[0]
    assert set(asked.tools) == {"search", "read", "llm", "agent", "map", "gate", "join"}
    assert (asked.body["tool_choice"], asked.body["parallel_tool_calls"]) == ("required", True)
    assert "by calling functions" in asked.system
    kept = await desk.library.value(HOME, planned.text)
    assert json.loads(kept)["calls"][0] == {"n": 1, "tool": "search", "arguments": {"query": "Nile length"}}


@in_tools
async def test_a_string_with_a_reference_is_allowed_for_any_type(desk: Desk) -> None:
    await answered(desk, Reply(calls=CALLS))
    functions = {each["function"]["name"]: each["function"] for each in desk.server.asked[0].body["tools"]}
    k = functions["search"]["parameters"]["properties"]["k"]
    assert {choice.get("type") for choice in k["anyOf"]} >= {"integer", "string"}
    assert "Gives {" in functions["search"]["description"]


@in_tools
async def test_a_map_is_a_function_too(desk: Desk) -> None:
    do = {"tool": "read", "arguments": {"path": "$item.path"}}
    calls = (CALLS[0], Call("map", {"over": "$1.items", "do": do}), Call("join", {"results": ["$2"]}))
    planned, plan, _ = await answered(desk, Reply(calls=calls))
    assert planned.problems == ()
    assert plan["nodes"][1]["over"] == "$n1.items"
    assert plan["nodes"][1]["do"] == {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}}


@in_tools
@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        (
            (Call("search", '{"query": '), CALLS[2]),
            "line 1: the arguments of search are no JSON object: the JSON breaks",
        ),
        ((Call("search", '{"k": NaN}'), CALLS[2]), "NaN"),
        (
            (Call("serch", {"query": "a"}), CALLS[0], CALLS[2]),
            "line 1: there is no tool `serch`; did you mean",
        ),
        ((CALLS[0], Call("join", {"results": ["$3"]})), "line 2: it refers to $3, and no line 3 stands above it"),
        ((*CALLS, CALLS[0]), "line 4: search is called behind `join`"),
        ((CALLS[0], CALLS[0], Call("join", {"results": ["$1"]})), "line 2: no line uses its result"),
    ],
)
async def test_what_is_wrong_with_calls_is_told_by_line(desk: Desk, calls: tuple[Call, ...], problem: str) -> None:
    planned, _, _ = await answered(desk, Reply(calls=calls))
    assert problem in " ".join(planned.problems)


@in_tools
async def test_a_text_is_read_where_no_function_was_called(desk: Desk) -> None:
    planned, plan, batches = await answered(desk, LINES)
    assert (planned.problems, plan["answer"]) == ((), "$n3")
    assert [node["id"] for nodes in batches for node in nodes] == ["n1", "n2", "n3"]


@in_tools
async def test_a_text_beside_calls_is_no_plan(desk: Desk) -> None:
    planned, plan, batches = await answered(desk, Reply('1. read("no.txt")\n2. answer($1)\n', calls=CALLS, rate=50))
    assert planned.problems == ()
    assert [node["tool"] for node in plan["nodes"][:2]] == ["search", "search"]
    assert {node["id"] for nodes in batches for node in nodes} == {"n1", "n2"}, "nothing starts after the doubt"


@in_tools
async def test_a_server_without_tools_falls_back_to_lines_and_is_remembered(desk: Desk) -> None:
    desk.server.refuse["tools"] = "test-model does not support tools"
    planned, plan, _ = await answered(desk, LINES)
    assert (planned.problems, plan["answer"]) == ((), "$n3")
    await desk.ask(goal="Another.")
    assert ["tools" in asked.body for asked in desk.server.asked] == [True, False, False]
    assert "1. search" in desk.server.asked[-1].system
    assert planned.warnings == (
        "openai:test-model takes no tools, so calls are written as text (test-model does not support tools)",
    )


@in_tools
async def test_a_server_that_gives_one_call_a_turn_falls_back_to_lines(desk: Desk) -> None:
    planned, plan, batches = await answered(desk, Reply(calls=CALLS[:1], usage=(900, 20)), LINES)
    assert (planned.problems, plan["answer"]) == ((), "$n3")
    assert {node["id"] for nodes in batches for node in nodes} == {"n1"}
    assert "makes one call a turn, so plans are written in lines" in planned.warnings[0]
    assert desk.attempts.spent.output_tokens == 20, "the first call is paid too"
    await desk.ask(goal="Another.")
    assert ["tools" in asked.body for asked in desk.server.asked] == [True, False, False]


@in_tools
async def test_what_was_wrong_is_shown_to_the_model_that_called(desk: Desk) -> None:
    wrong = (CALLS[0], CALLS[0], Call("join", {"results": ["$1"]}))
    planned, _, _ = await answered(desk, Reply(calls=wrong), Reply(calls=CALLS))
    assert planned.problems
    fields: dict[str, Any] = {"problems": planned.problems, "draft": planned.draft, "text": planned.text}
    again = await desk.ask(**fields)
    assert again.problems == ()
    turns = desk.server.asked[-1].turns
    assert '"tool": "search"' in turns[1][1]
    assert "line 2" in turns[2][1]
