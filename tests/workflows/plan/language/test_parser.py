"""Every wrong shape is a sentence at its place, and nothing but InvalidPlan comes out of the parser."""

import copy
import random
from typing import Any

import pytest
from doubles.plan.junk import anything, damage, part_at
from doubles.plan.samples import NILE, PLANS, each, gate, join, llm, plan, sample, tool
from hypothesis import given, settings

from sennit.workflows.plan.language import json_checks
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.limits import MAX_JSON_LEVELS, MAX_NODES, MAX_PARSE_PROBLEMS


def problems(data: Any) -> tuple[Problem, ...]:
    with pytest.raises(InvalidPlan) as caught:
        parse_plan(data)
    return caught.value.problems


def without(node: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name not in names}


J = join("j", ["a"])
SHAPES: list[tuple[Any, str, str, str]] = [
    # data, code, place, fragment
    ([], "shape", "", "a plan is an object with `nodes`, not an empty list"),
    ({}, "missing_field", "", "`nodes` is missing; for example `nodes: [{"),
    ({"nodes": []}, "limit", "nodes", "is empty; give at least one"),
    ({"nodes": [tool()] * (MAX_NODES + 1)}, "too_many_nodes", "nodes", "10,001 nodes; at most 10,000. Use"),
    (plan(tool(), anser="$a"), "unknown_field", "anser", "not a field of a plan; did you mean `answer`?"),
    (plan(tool(), goal="é" * 20000), "value", "goal", "40,000 bytes; at most 32,768"),
    (plan(tool(), on_failure="stop"), "choice", "on_failure", 'one of park, partial, fail, not "stop"'),
    (plan(tool(), fuse="yes"), "choice", "fuse", 'one of auto, on, off, not "yes"'),
    (plan(tool(), inputs=["city"]), "type", "inputs", "for example `inputs: {city: {type: string}}`"),
    (plan(tool(), inputs={"city": "string"}), "type", "inputs.city", 'such as {type: string}, not "string"'),
    (plan(tool(), inputs={"c": {"type": "strin"}}), "choice", "inputs.c.type", "did you mean `string`?"),
    (plan(tool(), inputs={"my city": {}}), "id", 'inputs["my city"]', '"my city" is not an id'),
    (plan(tool(), inputs={"c": {"typ": "string"}}), "unknown_field", "inputs.c.typ", "did you mean `type`?"),
    (plan(tool(), answer="$a") | {"nodes": [5]}, "type", "nodes[0]", "object with `id` and `kind`, not 5"),
    ({"nodes": [without(tool(), "kind")]}, "kind", "nodes[0]", "`kind` is missing; write one of tool, llm"),
    ({"nodes": [tool(kind="tools")]}, "kind", "nodes[0].kind", "did you mean `tool`?"),
    ({"nodes": [tool(kind=None)]}, "kind", "nodes[0].kind", "no kind null"),
    *(
        ({"nodes": [tool(kind=kind)]}, "kind", "nodes[0].kind", "for loops and branches write a `program`")
        for kind in ("loop", "route")
    ),
    ({"nodes": [without(tool(), "id")]}, "missing_field", "nodes[0]", "`id` is missing"),
    (plan(tool(), tool() | {"id": 3}), "type", "nodes[1].id", "must be a string, not 3"),
    (plan(tool("1a")), "id", "nodes[0].id", '"1a" is not an id; an id is a letter, then'),
    (plan(tool("a" * 41)), "id", "nodes[0].id", "up to 39 letters"),
    (plan(tool("a" * 1000000)), "id", "nodes[0].id", 'aaa…" is not an id'),
    (plan(tool("$a")), "id", "nodes[0].id", "write the id `a` here, without `$`"),
    (plan(tool(), tool("b", needs=["$a"])), "id", "nodes[1].needs[0]", "write the id `a`"),
    (plan(tool(), tool("b", needs="a")), "type", "nodes[1].needs", 'not "a"; for example `needs: [a, b]`'),
    (plan(llm("b") | {"promt": "x"}), "unknown_field", "nodes[0].promt", "node of kind llm; did you mean `prompt`?"),
    (
        plan(tool(zzz=1)),
        "unknown_field",
        "nodes[0].zzz",
        "not a field of a node of kind tool; it has id, kind, on_error, retry",
    ),
    (plan(llm("b", tool="x")), "unknown_field", "nodes[0].tool", "not a field of a node of kind llm"),
    (plan(tool() | {"a\nb": 1}), "unknown_field", 'nodes[0]["a\\nb"]', "`a\\nb` is not a field"),
    ({"nodes": [without(tool(), "tool")]}, "missing_field", "nodes[0]", "`tool` is missing"),
    (plan(tool() | {"args": ["x"]}), "type", "nodes[0].args", "must be an object, not a list of 1"),
    (plan(llm("b", "x" * 200001)), "limit", "nodes[0].prompt", "200,001 characters; at most 200,000"),
    (plan(llm("b", role="planer")), "choice", "nodes[0].role", "did you mean `planner`?"),
    (plan(llm("b", turn={"number": 2})), "reserved", "nodes[0].turn", "written by the engine"),
    (plan(tool(), join("j", ["a"], turn={"rule": "first", "calls": 1})), "reserved", "nodes[1].turn", "by the engine"),
    (plan(llm("b", turn="some")), "form", "nodes[0].turn", '"some" is not a valid `turn`; write all, first, {quorum'),
    (plan(llm("b", turn={"quorum": 0})), "limit", "nodes[0].turn.quorum", "must be at least 1, not 0"),
    (plan(llm("b", turn={"quorum": 33})), "limit", "nodes[0].turn.quorum", "must be at most 32, not 33"),
    (plan(llm("b", turn={"after": "0s"})), "value", "nodes[0].turn.after", "a duration is at least 1ms"),
    (plan(llm("b", turn={"after": "3d"})), "value", "nodes[0].turn.after", "is 3d; a turn waits at most 1d"),
    (
        plan(llm("b", context="reference")),
        "type",
        "nodes[0].context",
        "for example `context: {tokens: 16000, over: reference}`",
    ),
    (
        plan(llm("b", context={"over": "summarise"})),
        "choice",
        "nodes[0].context.over",
        'must be one of truncate, reference, not "summarise"',
    ),
    (plan(llm("b", context={"tokens": 10})), "limit", "nodes[0].context.tokens", "at least 200, not 10"),
    (
        plan(llm("b", context={"token": 500})),
        "unknown_field",
        "nodes[0].context.token",
        "not a field of `context`; did you mean `tokens`?",
    ),
    (plan(tool(), each(do={"kind": "gate"})), "kind", "nodes[1].do.kind", "one of tool, llm, agent"),
    (plan(tool(priority="3")), "type", "nodes[0].priority", 'whole number, not "3"; write it without quotes'),
    (plan(tool(priority=6)), "limit", "nodes[0].priority", "at most 5, not 6"),
    (plan(tool(retry=3)), "type", "nodes[0].retry", "not 3; for example `retry: {attempts: 3}`"),
    (plan(tool(retry={"attempt": 3})), "unknown_field", "nodes[0].retry.attempt", "did you mean `attempts`?"),
    (plan(tool(retry={})), "missing_field", "nodes[0].retry", "`attempts` is missing"),
    (plan(tool(locks=["repo"])), "type", "nodes[0].locks[0]", "`locks: [{name: repo, mode: exclusive}]`"),
    (plan(tool(locks=[{"name": "r", "mode": "share"}])), "choice", "nodes[0].locks[0].mode", "mean `shared`?"),
    (plan(tool(locks=[{"name": "r"}] * 9)), "limit", "nodes[0].locks", "has 9 items; at most 8"),
    (plan(tool(estimate={"seconds": -1})), "limit", "nodes[0].estimate.seconds", "at least 0"),
    (plan(tool(estimate=5)), "type", "nodes[0].estimate", "`estimate: {seconds: 20, tokens: 500}`"),
    (plan(tool(timeout=30)), "value", "nodes[0].timeout", "500ms, 30s, 5m, 24h"),
    (plan(tool(timeout="0s")), "value", "nodes[0].timeout", "at least 1ms and at most 30d"),
    (plan(tool(timeout="31d")), "value", "nodes[0].timeout", "at most 30d"),
    (plan(llm(idle_timeout=60)), "value", "nodes[0].idle_timeout", "500ms, 30s, 5m, 24h"),
    (plan(llm(first_token_timeout="soon")), "value", "nodes[0].first_token_timeout", "500ms, 30s, 5m, 24h"),
    (plan(tool(idle_timeout="60s")), "unknown_field", "nodes[0].idle_timeout", "is not a field"),
    (
        plan(tool(on_error="ignore")),
        "form",
        "nodes[0].on_error",
        '"ignore" is not a valid `on_error`; write fail, skip, {fal',
    ),
    (
        plan(tool(on_error={"falback": 1})),
        "form",
        "nodes[0].on_error",
        "an object with falback is not a valid `on_error`",
    ),
    (plan(tool(on_error={"fallback": 1, "instead": "b"})), "form", "nodes[0].on_error", "or {instead: node}"),
    (plan(tool(on_error={"instead": "$b"})), "id", "nodes[0].on_error.instead", "the id `b` here"),
    (plan(tool(), each(do=llm("", on_error=3) | {})), "form", "nodes[1].do.on_error", "3 is not a valid `on_error`"),
    (plan(tool(when=True)), "form", "nodes[0].when", "true is not a condition; write {ref: $a.count, op: gt, value"),
    (plan(tool(when={"ref": "$a", "op": "contain", "value": 3})), "choice", "nodes[0].when.op", "`contains`?"),
    (plan(tool(when={"ref": "$a"})), "missing_field", "nodes[0].when", "`op` is missing"),
    (plan(tool(when={"and": []})), "limit", "nodes[0].when.and", "is empty"),
    (
        plan(tool(when={"and": [{"not": {"or": [{"ref": 1, "op": "exists"}]}}]})),
        "type",
        "nodes[0].when.and[0].not.or[0].ref",
        "must be a string, not 1",
    ),
    (plan(tool(when={"or": ["$a"]})), "form", "nodes[0].when.or[0]", '"$a" is not a condition'),
    (
        plan(tool(when={"and": [{"ref": "$a", "op": "exists"}], "op": "eq"})),
        "unknown_field",
        "nodes[0].when.op",
        "`op` is not a field of a condition; it has and",
    ),
    (plan(without(J, "inputs")), "missing_field", "nodes[0]", "`inputs` is missing; for example `inputs: ["),
    (plan(join("j", [])), "limit", "nodes[0].inputs", "is empty; give at least one"),
    (plan(J | {"inputs": "a"}), "type", "nodes[0].inputs", 'not "a"; for example `inputs: [a, b]`'),
    (
        plan(J | {"policy": "any"}),
        "form",
        "nodes[0].policy",
        '"any" is not a valid `policy`; write all, settled, first, {qu',
    ),
    (plan(J | {"policy": {"quorum": 0}}), "value", "nodes[0].policy.quorum", "0 is no quorum; write a count such as 2"),
    (plan(J | {"policy": {"quorum": "101%"}}), "value", "nodes[0].policy.quorum", '"101%" is no quorum'),
    (plan(J | {"policy": {"quorum": "²%"}}), "value", "nodes[0].policy.quorum", "is no quorum"),
    *(
        (
            plan(J | {"policy": policy}),
            "form",
            "nodes[0].policy",
            "not a valid `policy`; write all, settled, first, {qu",
        )
        for policy in ("vote", {"best": "judge"})
    ),
    (plan(tool(), each(do=each())), "kind", "nodes[1].do.kind", 'no kind "map" here; a map repeats one of tool, llm'),
    (plan(tool(), each(do={"tool": "read"})), "kind", "nodes[1].do", "`kind` is missing; write one of tool, llm"),
    (plan(tool(), each(do="read")), "type", "nodes[1].do", 'must be an object, not "read"; for example `do: {kind'),
    (
        plan(tool(), each(do=llm("") | {"promt": 1})),
        "unknown_field",
        "nodes[1].do.promt",
        "a call of kind llm in a map; did you",
    ),
    (plan(tool(), without(each(), "do")), "missing_field", "nodes[1]", "`do` is missing; for example `do: {kind: tool"),
    (
        plan(tool(), each(as_="x")),
        "unknown_field",
        "nodes[1].as_",
        "`as_` is not a field of a node of kind map; did you mean `as`?",
    ),
    (plan(tool(), each(max_items=10001)), "limit", "nodes[1].max_items", "at most 10,000"),
    (plan(each() | {"over": ["a"]}), "type", "nodes[0].over", "must be a string, not a list of 1"),
    (plan(gate(schema="text")), "type", "nodes[0].schema", "`schema: {type: string, enum: [yes, no]}`"),
    (plan(without(gate(), "question")), "missing_field", "nodes[0]", "`question` is missing"),
    (plan(tool(args={"k": [0, float("nan")]})), "not_json", "nodes[0].args.k[1]", "NaN is no number that JSON can"),
    (plan(tool(args={"k": 10**5000})), "not_json", "nodes[0].args.k", "over 300 digits; write it as text"),
    (plan(llm("b", "x\ud800")), "not_json", "nodes[0].prompt", '"x\\ud800" holds half a surrogate pair'),
    (plan(tool(args={"\udfff": 1})), "not_json", "nodes[0].args", "the field `\\udfff` holds half a"),
    (plan(tool() | {"args": {1: 2}}), "not_json", "nodes[0].args", "names are text, so put it in quotes"),
    (plan(tool(args={"k": [("a",)]})), "not_json", "nodes[0].args.k[0]", "tuple is nothing that JSON can hold"),
]


@pytest.mark.parametrize(("data", "code", "place", "expected"), SHAPES)
def test_a_wrong_shape_is_one_sentence_at_its_place(data: Any, code: str, place: str, expected: str) -> None:
    found = problems(data)
    assert [(item.code, place_of(item.where)) for item in found if expected in item.message] == [(code, place)], found
    check_sentences(found, data)


def check_sentences(found: tuple[Problem, ...], data: Any) -> None:
    """Every problem is one printable line of bounded length, at a place that leads through the data."""
    for problem in found:
        sentence = str(problem)
        assert sentence.isprintable(), ascii(sentence)
        assert 10 < len(problem.message) <= 700, sentence
        part_at(data, problem.where)


def nested(depth: int, *, lists: bool) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("where", ["args", "answer", "when", "schema"])
def test_nesting_of_two_thousand_levels_is_refused_with_the_limit(where: str, *, lists: bool) -> None:
    deep = nested(2_000, lists=lists)
    data = plan(tool(args={"a": deep})) if where == "args" else plan(gate(**{where: deep}))
    if where == "answer":
        data = plan(tool(), answer=deep)
    (problem,) = problems(data)
    assert (problem.code, problem.message[:38]) == (
        "not_json",
        f"nested more than {MAX_JSON_LEVELS} levels deep; flatt",
    )


def test_nested_conditions_up_to_the_limit_are_read() -> None:
    condition: Any = {"ref": "$a.count", "op": "gt", "value": 1}
    for _ in range(MAX_JSON_LEVELS - 6):
        condition = {"not": condition}
    assert len(parse_plan(plan(tool(), tool("b", when=condition))).nodes) == 2


def test_data_that_contains_itself_is_refused() -> None:
    data = plan(tool())
    data["nodes"][0]["args"]["query"] = data
    assert problems(data)[0].code == "not_json"


def test_a_value_shared_over_and_over_is_refused_before_it_is_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_checks, "MAX_JSON_VALUES", 10_000)
    bomb: Any = "x"
    for _ in range(40):
        bomb = [bomb] * 10
    assert "over 10,000 values" in problems(plan(tool(args={"a": bomb})))[0].message


def test_at_most_fifty_problems_are_reported() -> None:
    assert len(problems({"nodes": [tool(priority=9)] * 200})) == MAX_PARSE_PROBLEMS
    assert len(problems({"nodes": [{"kind": "agent"}] * 200})) == MAX_PARSE_PROBLEMS


def test_problems_of_several_nodes_are_reported_together() -> None:
    found = problems({"nodes": [tool(priority=9), llm("b", ""), join("j", []), 7]})
    assert [place_of(item.where) for item in found] == [
        "nodes[0].priority",
        "nodes[1].prompt",
        "nodes[2].inputs",
        "nodes[3]",
    ]


def test_a_list_is_not_called_too_short_because_of_what_is_wrong_in_it() -> None:
    assert {item.code for item in problems({"nodes": [tool(priority=9)]})} == {"limit"}
    assert {item.code for item in problems(plan(join("j", ["1x"])))} == {"id"}


@pytest.mark.parametrize("name", PLANS)
def test_the_samples_are_read_and_written_back_equal(name: str) -> None:
    read = parse_plan(PLANS[name])
    written = read.model_dump(mode="json", by_alias=True)
    again = parse_plan(written)
    assert again == read
    assert again.model_dump(mode="json", by_alias=True) == written
    assert Plan.model_validate_json(read.model_dump_json(by_alias=True)) == read


@settings(max_examples=150, deadline=None)
@given(anything)
def test_whatever_the_data_only_an_invalid_plan_comes_out(data: Any) -> None:
    try:
        parse_plan(data)
    except InvalidPlan as invalid:
        check_sentences(invalid.problems, data)


@settings(max_examples=100, deadline=None)
@given(anything, anything)
def test_whatever_stands_in_a_node_only_an_invalid_plan_comes_out(field: Any, value: Any) -> None:
    data = copy.deepcopy(NILE)
    data["nodes"][0][field if isinstance(field, str) else "args"] = value
    data["nodes"].append(value)
    try:
        parse_plan(data)
    except InvalidPlan as invalid:
        check_sentences(invalid.problems, data)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_plans_are_refused_in_sentences_or_read(seed: int) -> None:
    chance = random.Random(seed)
    read = 0
    for round_ in range(300):
        data = sample(list(PLANS)[round_ % len(PLANS)])
        for _ in range(chance.randint(1, 4)):
            damage(data, chance)
        try:
            parse_plan(data)
            read += 1
        except InvalidPlan as invalid:
            check_sentences(invalid.problems, data)
    assert 20 < read < 280


def test_a_chain_is_written_back_as_it_was_and_one_node_alone_without_a_list() -> None:
    read = {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}}
    for do in (read, [{"id": "page", **read}, read]):
        found = parse_plan(plan(tool(), each(do=do)))
        assert parse_plan(found.model_dump(mode="json", by_alias=True)) == found
        written = found.model_dump(mode="json", by_alias=True)["nodes"][1]["do"]
        assert isinstance(written, list) == isinstance(do, list)


@pytest.mark.parametrize(
    ("do", "place", "message"),
    [
        ([tool("page", foo=1), tool()], "nodes[1].do[0].foo", "`foo` is not a field of a call of kind tool in a map"),
        ([tool("page"), 7], "nodes[1].do[1]", "must be an object, not 7"),
        ([tool("page"), {"kind": "gate"}], "nodes[1].do[1].kind", "a map repeats one of tool, llm"),
        (
            [tool("page"), tool(when={"and": [{"ref": 1, "op": "eq"}]})],
            "nodes[1].do[1].when.and[0].ref",
            "must be a string",
        ),
        ([tool("page", on_error={"instead": 5}), tool()], "nodes[1].do[0].on_error.instead", "must be a string"),
        ([tool("page")], "nodes[1].do", "a chain has two nodes or more"),
    ],
)
def test_what_is_wrong_in_a_chain_has_its_place(do: Any, place: str, message: str) -> None:
    found = problems(plan(tool(), each(do=do)))
    assert [(place_of(item.where), message in item.message) for item in found] == [(place, True)], found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"settings": {"temperature": "warm"}}, 'nodes[0].settings.temperature: must be a number, not "warm"'),
        ({"settings": {"temperature": True}}, "nodes[0].settings.temperature: must be a number, not true"),
        ({"settings": {"max_tokens": 0}}, "nodes[0].settings.max_tokens: must be at least 1, not 0"),
        ({"settings": {"top_p": 1.5}}, "nodes[0].settings.top_p: must be at most 1, not 1.5"),
        ({"settings": {"effort": "hihg"}}, "did you mean `high`?"),
        ({"settings": {"stop": []}}, "nodes[0].settings.stop: is empty; give at least one"),
        ({"settings": {"seed": 2**64}}, "nodes[0].settings.seed: must be at most"),
        ({"settings": {"max_token": 5}}, "did you mean `max_tokens`?"),
        ({"settings": 5}, "nodes[0].settings: must be an object, not 5"),
        ({"messages": [{"role": "system", "content": "x"}]}, "nodes[0].messages[0].role: must be one of user, assist"),
        ({"messages": [{"role": "user", "content": ""}]}, "nodes[0].messages[0].content: is empty"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "nodes[0].messages: the first turn is the user's"),
        ({"instructions": ["x"]}, "nodes[0].instructions: must be a string"),
    ],
)
def test_a_wrong_setting_or_turn_of_a_model_call_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPlan) as caught:
        parse_plan({"nodes": [{"id": "a", "kind": "llm", "prompt": "x", **fields}]})
    assert message in "\n".join(map(str, caught.value.problems))


def test_a_setting_that_stands_on_a_node_is_sent_to_its_place() -> None:
    node = {"id": "a", "kind": "llm", "prompt": "Sum up.", "max_tokens": 16_000, "temperature": 0}
    with pytest.raises(InvalidPlan) as caught:
        parse_plan({"nodes": [node], "answer": "$a"})
    assert [problem.message for problem in caught.value.problems] == [
        "`max_tokens` is not a field of a node of kind llm; write it under `settings`: {max_tokens: ...}",
        "`temperature` is not a field of a node of kind llm; write it under `settings`: {temperature: ...}",
    ]
