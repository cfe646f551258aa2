"""A checked plan becomes the execution plan: edges by index, times, effects, facts, fallbacks."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from doubles.plan.samples import (
    PLANS,
    Drive,
    annotated,
    each,
    free,
    gate,
    join,
    llm,
    plan,
    skeleton_of,
    tool,
    wanted_facts,
)

from sennit.workflows.plan.compile.compiler import GATE_SECONDS, MODEL_ATTEMPTS, READ_ATTEMPTS, WRITE_ATTEMPTS
from sennit.workflows.plan.compile.execution_plan import APART, EXCLUSIVE, SHARED, ExecutionPlan, NodeSpec
from sennit.workflows.plan.language.limits import CALL_SECONDS
from sennit.workflows.plan.language.parser import parse_plan


def specs(*nodes: dict[str, Any], **fields: Any) -> dict[str, NodeSpec]:
    return {spec.id: spec for spec in annotated(plan(*nodes, **fields)).specs}


@pytest.mark.parametrize("name", PLANS)
def test_an_execution_plan_is_read_back_as_it_was_packed(name: str) -> None:
    execution_plan = annotated(PLANS[name])
    again = ExecutionPlan.unpack(execution_plan.pack())
    assert json.dumps(asdict(again)) == json.dumps(asdict(execution_plan))
    assert again.pack() == execution_plan.pack()


@pytest.mark.parametrize("name", PLANS)
def test_every_sample_runs_to_its_end_with_and_without_facts(name: str) -> None:
    read = parse_plan(PLANS[name])
    assert Drive(skeleton_of(read, approval="never")).run() in ("done", "partial", "failed")
    assert Drive(ExecutionPlan.unpack(skeleton_of(read).pack()), wanted_facts(read)).run() in (
        "done",
        "partial",
        "failed",
    )


def test_the_design_example_runs_every_call_once_and_is_done() -> None:
    drive = Drive(annotated(PLANS["the design's example"]))
    assert drive.run() == "done"
    assert drive.started == ["a", "b", "d", "c"]


def test_edges_become_positions() -> None:
    found = specs(
        tool("a", on_error={"instead": "s"}),
        tool("s"),
        llm("b", "$a", needs=["g"], when={"ref": "$w:status", "op": "eq", "value": "failed"}),
        gate("g"),
        free("w"),
        join("j", ["w", "a"], needs=["b"]),
    )
    assert (found["a"].successor, found["s"].is_successor, found["a"].is_successor) == (1, True, False)
    assert (found["b"].needs, found["b"].reads, found["b"].watches) == ([3, 0], [0], [4])
    assert (found["j"].inputs, found["j"].needs) == ([4, 0], [2])
    assert [spec.kind for spec in found.values()] == ["tool", "tool", "llm", "gate", "tool", "join"]


def test_times_attempts_and_effects_come_from_the_tool_unless_the_node_says_otherwise() -> None:
    found = specs(
        tool("search"),
        tool("own", timeout="500ms", retry={"attempts": 7}),
        free("unsaid"),
        tool("note", "note", {"text": "x"}),
        tool("save", "save", {"text": "x"}),
        tool("pure", "calculate", {"expression": "1"}),
        llm("model"),
        llm("quick", timeout="2s"),
        answer="$search",
    )
    assert {name: (spec.timeout, spec.attempts, spec.effect, spec.approval) for name, spec in found.items()} == {
        "search": (60_000, READ_ATTEMPTS, "read", False),
        "own": (500, 7, "read", False),
        "unsaid": (30_000, READ_ATTEMPTS, "read", False),
        "note": (30_000, WRITE_ATTEMPTS, "write", True),
        "save": (30_000, READ_ATTEMPTS, "write", True),
        "pure": (5_000, READ_ATTEMPTS, "pure", False),
        "model": (round(CALL_SECONDS * 1000), MODEL_ATTEMPTS, "read", False),
        "quick": (2_000, MODEL_ATTEMPTS, "read", False),
    }
    assert found["model"].queue == "queue.llm"


def test_a_write_that_is_not_idempotent_is_never_attempted_more_than_twice() -> None:
    retry = {"retry": {"attempts": 7}}
    found = specs(tool("note", "note", {"text": "x"}, **retry), tool("save", "save", {"text": "x"}, **retry))
    assert (found["note"].attempts, found["save"].attempts) == (WRITE_ATTEMPTS, 7)
    assert specs(tool("note", "note", {"text": "x"}, retry={"attempts": 1}))["note"].attempts == 1


def test_what_a_tool_uses_becomes_locks_beside_the_nodes_own() -> None:
    found = specs(
        tool("s", "store", {"path": "x"}, locks=[{"name": "disk", "mode": "shared"}]),
        tool("l", "load", {"path": "./x"}),
        tool("n", "note", {"text": "x"}),
    )
    assert {name: spec.locks for name, spec in found.items()} == {
        "s": [("disk", SHARED), ("file", SHARED), ("file:x", EXCLUSIVE), ("file*", APART)],
        "l": [("file", SHARED), ("file:x", SHARED)],
        "n": [],
    }  # fmt: skip


def test_a_call_says_whether_its_locks_are_those_of_the_plan_alone() -> None:
    disk = [{"name": "disk"}]
    found = specs(tool("bare", "echo"), tool("own", "echo", locks=disk), tool("s", "store", {"path": "x"}, locks=disk))
    assert {name: spec.names_no_resource for name, spec in found.items()} == {"bare": False, "own": True, "s": False}


def test_writes_need_approval_unless_the_run_says_otherwise() -> None:
    data = plan(
        tool("note", "note", {"text": "x"}),
        each("m", "$input.x", do={"kind": "tool", "tool": "note"}),
        inputs={"x": {"type": "array"}},
    )
    assert [spec.approval for spec in annotated(data, {"x": []}).specs] == [True, True]
    assert [spec.approval for spec in annotated(data, {"x": []}, approval="never").specs] == [False, False]


def test_a_sub_agent_may_write_where_one_of_its_tools_may_and_asks_for_that_itself() -> None:
    found = specs(
        {"id": "any", "kind": "agent", "goal": "x"},
        {"id": "some", "kind": "agent", "goal": "x", "tools": ["search", "note"]},
        {"id": "reads", "kind": "agent", "goal": "x", "tools": ["search"]},
        answer="$any",
    )
    assert [spec.effect for spec in found.values()] == ["write", "write", "read"]
    assert not any(spec.approval for spec in found.values())


@pytest.mark.parametrize(
    ("body", "effect"),
    [
        ("await read(path=x)", "read"),
        ("await llm(x)", "read"),
        ("await note(text=x)", "write"),
        ("await agent(x)", "write"),
        ("await \uff41gent(x)", "write"),
        ("await llm(x, tools=[x])", "write"),
        ("await llm(x, **{'to' + 'ols': [x]})", "write"),
    ],
)
def test_an_item_writes_if_its_program_can_reach_a_tool_that_does(body: str, effect: str) -> None:
    program = {"kind": "program", "script": f"async def main(x):\n    {body}\n", "arguments": {"x": "$item"}}
    assert specs(tool(), each(do=program))["m"].effect == effect


def test_an_item_writes_if_an_agent_in_its_chain_has_all_tools() -> None:
    program = {"kind": "program", "script": "async def main(x): ...", "arguments": {"x": "$y"}}
    chain = [{"id": "y", "kind": "agent", "goal": "$item"}, program]
    assert specs(tool(), each(do=chain))["m"].effect == "write"


def test_an_estimate_in_do_is_no_budget_of_an_item_that_is_a_run() -> None:
    chain = [
        {"id": "y", "kind": "llm", "prompt": "$item", "estimate": {"tokens": 700}},
        {"kind": "llm", "prompt": "$y", "tools": ["search"], "estimate": {"tokens": 500}},
    ]
    assert specs(tool(), each(do=chain))["m"].tokens == 0


@pytest.mark.parametrize(
    ("tools", "locks"),
    [
        (["load"], {"file": SHARED, "file*": SHARED}),
        (["store"], {"file": EXCLUSIVE}),
        (["load", "store"], {"file": EXCLUSIVE, "file*": SHARED}),
        (["search"], {}),
    ],
)
def test_an_item_that_is_a_run_holds_the_locks_of_the_tools_that_it_may_call(
    tools: list[str], locks: dict[str, int]
) -> None:
    loop = {"kind": "llm", "prompt": "$item", "tools": tools}
    calls = "\n".join(f"    await {name}(path='x')" for name in tools)
    program = {"kind": "program", "script": f"async def main():\n{calls}\n"}
    found = specs(tool(), each("loops", do=loop), each("programs", do=program), answer=["$loops", "$programs"])
    assert dict(found["loops"].locks) == locks
    assert dict(found["programs"].locks) == locks


def test_a_limit_never_rounds_to_none() -> None:
    found = specs(
        tool(timeout="1ms"),
        join("j", ["a"], deadline="1.4ms", policy="settled"),
        gate("g", timeout="1.2ms"),
        answer="$j",
    )
    assert (found["a"].timeout, found["j"].deadline, found["g"].deadline) == (1, 1, 1)


def test_gates_carry_question_schema_and_a_day() -> None:
    found = specs(gate("g", schema={"type": "string"}), gate("h", timeout="1m", question="$g?"))
    assert (found["g"].fills, found["h"].fills, found["h"].needs, found["h"].reads) == (False, True, [0], [0])
    assert (found["g"].question, found["g"].schema) == ("Go on?", {"type": "string"})
    assert (found["g"].deadline, found["h"].deadline) == (GATE_SECONDS * 1000, 60_000)


@pytest.mark.parametrize(
    ("policy", "count", "wanted"),
    [
        ({"quorum": 2}, 3, 2),
        ({"quorum": "60%"}, 3, 2),
        ({"quorum": "1%"}, 3, 1),
        ({"quorum": "100%"}, 7, 7),
        ({"quorum": "55%"}, 20, 11),
        ({"quorum": "34%"}, 3, 2),
    ],
)
def test_a_share_of_inputs_is_rounded_up(policy: Any, count: int, wanted: int) -> None:
    names = [f"n{number}" for number in range(count)]
    joined = specs(*(free(name) for name in names), join("j", names, policy=policy, deadline="5m"))["j"]
    assert (joined.policy, joined.quorum, joined.deadline) == ("quorum", wanted, 300_000)
    assert specs(free("a"), join("j", ["a"]))["j"].quorum == 0


def test_locks_priority_and_rank() -> None:
    data = plan(
        tool(locks=[{"name": "r"}, {"name": "s", "mode": "shared"}], priority=1),
        join("j", ["a"], priority=4),
        gate("g", needs=["j"]),
    )
    execution_plan = annotated(data)
    assert execution_plan.specs[0].locks == [("r", True), ("s", False)]
    assert [spec.priority for spec in execution_plan.specs] == [1, 4, 3]
    assert [spec.rank for spec in execution_plan.specs] == [61_050, 60_050, 60_000]


def test_fallbacks_are_kept_with_the_facts_that_others_test() -> None:
    kept: list[Any] = []

    def keep(value: Any) -> tuple[str, int]:
        kept.append(value)
        return f"digest {len(kept)}", 7

    data = plan(
        tool("a", on_error={"fallback": {"count": 2, "items": [1]}}),
        each("m", do={"kind": "llm", "prompt": "x", "on_error": {"fallback": "none"}}, on_error="skip"),
        llm("b", when={"and": [{"ref": "$a.count", "op": "gt", "value": 1}, {"ref": "$a.zzz", "op": "exists"}]}),
        llm("k", on_error={"fallback": None}),
    )
    found = {spec.id: spec for spec in annotated(data, keep=keep).specs}
    assert found["a"].fallback == ("digest 1", 7, {"count": 2, "items.length": 1})
    assert found["m"].item_fallback == ("digest 2", 7, {})
    assert (found["m"].skip_on_error, found["m"].item_skip, found["m"].fallback) == (True, False, None)
    assert found["k"].fallback == ("digest 3", 7, {})
    assert kept == [{"count": 2, "items": [1]}, "none", None]


def test_a_map_knows_where_its_length_comes_from() -> None:
    found = specs(tool(), each(max_items=5), each("k", "$a"), llm("b", "$m $k"))
    assert (found["m"].over, found["m"].cap, found["m"].item_kind) == ((0, "items.length"), 5, "tool")
    assert (found["k"].over, found["k"].length) == ((0, "length"), -1)
    data = plan(each("m", "$input.deep.rows"), inputs={"deep": {"type": "object"}})
    assert annotated(data, {"deep": {"rows": [1, 2, 3]}}).specs[0].length == 3
    assert annotated(data, {"deep": {"rows": "text"}}).specs[0].length == -1
    assert annotated(data, {"deep": {}}).specs[0].length == -1


def condition(when: dict[str, Any], inputs: Any = None, **options: Any) -> Any:
    declared = {"n": {"type": "integer", "default": 3}, "deep": {"type": "object", "default": {"x": "y"}}}
    data = plan(tool(), llm("b", when=when), inputs=declared, goal="The Nile")
    return annotated(data, inputs, **options).specs[1].when


def test_tests_of_nodes_have_the_place_of_their_fact() -> None:
    when = {
        "or": [
            {"ref": "$a.count", "op": "gt", "value": 3},
            {"not": {"ref": "$a:status", "op": "eq", "value": "failed"}},
            {"ref": "${a.items[0]}", "op": "exists"},
        ]
    }
    found = condition(when)
    assert [found["or"][0]["at"], found["or"][1]["not"]["at"], found["or"][2]["at"]] == [
        [0, "count"],
        [0, ":status"],
        [0, "?items[0]"],
    ]


@pytest.mark.parametrize(
    ("test", "inputs", "holds"),
    [
        ({"ref": "$input.n", "op": "gt", "value": 2}, {}, True),
        ({"ref": "$input.n", "op": "gt", "value": 2}, {"n": 1}, False),
        ({"ref": "${input.deep.x}", "op": "eq", "value": "y"}, {}, True),
        ({"ref": "$input.deep.z", "op": "exists"}, {}, False),
        ({"ref": "$goal", "op": "contains", "value": "Nile"}, {}, True),
        ({"ref": "${goal}", "op": "eq", "value": "x"}, {}, False),
    ],
)
def test_tests_of_inputs_are_decided_at_once(test: dict[str, Any], inputs: dict[str, Any], *, holds: bool) -> None:
    found = condition(test, inputs)
    assert found["is"] is holds
    assert "at" not in found


def test_the_goal_of_the_run_is_tested_where_it_differs_from_the_plans() -> None:
    assert condition({"ref": "$goal", "op": "contains", "value": "Po"}, goal="The Po")["is"] is True


@pytest.mark.parametrize(
    ("ref", "inputs", "goal"),
    [
        ("$input.deep.z", {}, None),
        ("$input.deep", {}, None),
        ("$input.deep.x", {"deep": {"x": "long" * 99}}, None),
        ("$goal", {}, "long" * 99),
    ],
)
def test_a_test_of_an_input_that_cannot_be_decided_fails_its_node_only_when_its_turn_comes(
    ref: str, inputs: dict[str, Any], goal: str | None
) -> None:
    data = plan(
        tool(),
        llm("b", when={"ref": ref, "op": "gt", "value": 3}),
        llm("c", when={"and": [{"ref": "$input.n", "op": "gt", "value": 9}, {"ref": ref, "op": "gt", "value": 3}]}),
        answer="$a",
        inputs={"n": {"type": "integer", "default": 3}, "deep": {"type": "object", "default": {"x": "y"}}},
        on_failure="partial",
    )
    drive = Drive(annotated(data, inputs, goal=goal))
    assert drive.run() == "done"
    assert drive.started == ["a"]
    assert drive.state.notes[1][0] == "ConditionError"
    assert drive.state.notes[2] == ("Skipped", "its condition was false")


@pytest.mark.parametrize(
    ("answer", "nodes", "direct"),
    [
        ("$b", [1], True),
        ("${a}", [0], True),
        ("$a.count", [0], False),
        ("It is $b", [1], False),
        (["$b", "$a", "$b"], [1, 0], False),
        ({"x": "$b", "y": "$input.n"}, [1], False),
    ],
)
def test_the_answer_names_its_nodes_and_whether_one_is_the_whole(
    answer: Any, nodes: list[int], *, direct: bool
) -> None:
    execution_plan = annotated(plan(tool(), llm("b"), answer=answer, inputs={"n": {"default": "x"}}))
    assert (execution_plan.answer, execution_plan.direct) == (nodes, direct)


def test_the_requests_ending_wins_over_the_plans_and_that_over_parking() -> None:
    assert annotated(plan(tool())).on_failure == "park"
    assert annotated(plan(tool(), on_failure="fail")).on_failure == "fail"
    assert annotated(plan(tool(), on_failure="fail"), on_failure="partial").on_failure == "partial"


def test_a_plan_says_whether_short_calls_share_an_activity() -> None:
    assert annotated(plan(tool())).fuse == "auto"
    assert annotated(plan(tool(), fuse="off")).fuse == "off"


def test_a_program_shows_its_inputs_and_keeps_a_script_that_is_not_long() -> None:
    node = {"id": "p", "kind": "program", "script": "async def main(a, b): ...", "arguments": {"a": "$input.x", "b": 1}}
    long = {**node, "id": "q", "script": "#" * 70_000, "arguments": {"a": "$input.no"}}
    data = plan(node, long, inputs={"x": {"type": "string"}})
    short, cut = annotated(data, inputs={"x": "tides"}).specs
    assert (short.summary, short.script) == ('p program "tides" b=1', node["script"])
    assert (cut.summary, cut.script) == ('q program "$input.no"', "")
