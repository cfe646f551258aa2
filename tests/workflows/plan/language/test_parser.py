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
from sennit.workflows.plan.language.parser import KINDS_TO_COME, parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.limits import MAX_JSON_LEVELS, MAX_NODES, MAX_PARSE_PROBLEMS


def problems(data: Any) -> tuple[Problem, ...]:
    with pytest.raises(InvalidPlan) as caught:
        parse_plan(data)
    return caught.value.problems


def without(node: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name not in names}


J = join("j", ["a"])
SHAPES: list[tuple[str, Any, str, str, str]] = [
    # what, data, code, place, fragments
    ("a list", [], "shape", "", "a plan is an object with `nodes`, not an empty list"),
    ("text", "Which is longer?", "shape", "", 'not "Which is longer?"'),
    ("nothing", None, "shape", "", "not null"),
    ("no nodes", {}, "missing_field", "", "`nodes` is missing; for example `nodes: [{"),
    ("empty", {"nodes": []}, "limit", "nodes", "is empty; give at least one"),
    ("nodes an object", {"nodes": {"a": tool()}}, "type", "nodes", "must be a list, not an object with a"),
    ("too many", {"nodes": [tool()] * (MAX_NODES + 1)}, "too_many_nodes", "nodes", "10,001 nodes; at most 10,000. Use"),
    (
        "field of the plan",
        plan(tool(), anser="$a"),
        "unknown_field",
        "anser",
        "not a field of a plan; did you mean `answer`?",
    ),
    ("goal a number", plan(tool(), goal=7), "type", "goal", "must be a string, not 7"),
    ("goal too long", plan(tool(), goal="é" * 20_000), "value", "goal", "40,000 bytes; at most 32,768"),
    ("on_failure", plan(tool(), on_failure="stop"), "choice", "on_failure", 'one of park, partial, fail, not "stop"'),
    ("fuse", plan(tool(), fuse="yes"), "choice", "fuse", 'one of auto, on, off, not "yes"'),
    ("groups", plan(tool(), groups=[["a"]]), "unknown_field", "groups", "not a field of a plan"),
    ("inputs a list", plan(tool(), inputs=["city"]), "type", "inputs", "for example `inputs: {city: {type: string}}`"),
    (
        "input short",
        plan(tool(), inputs={"city": "string"}),
        "type",
        "inputs.city",
        'such as {type: string}, not "string"',
    ),
    ("input type", plan(tool(), inputs={"c": {"type": "strin"}}), "choice", "inputs.c.type", "did you mean `string`?"),
    ("input name", plan(tool(), inputs={"my city": {}}), "id", 'inputs["my city"]', '"my city" is not an id'),
    (
        "input field",
        plan(tool(), inputs={"c": {"typ": "string"}}),
        "unknown_field",
        "inputs.c.typ",
        "did you mean `type`?",
    ),
    (
        "node a number",
        plan(tool(), answer="$a") | {"nodes": [5]},
        "type",
        "nodes[0]",
        "object with `id` and `kind`, not 5",
    ),
    ("node nothing", {"nodes": [None]}, "type", "nodes[0]", "not null"),
    ("node a list", {"nodes": [[tool()]]}, "type", "nodes[0]", "not a list of 1"),
    ("no kind", {"nodes": [without(tool(), "kind")]}, "kind", "nodes[0]", "`kind` is missing; write one of tool, llm"),
    ("kind unknown", {"nodes": [tool(kind="tol")]}, "kind", "nodes[0].kind", 'no kind "tol" here'),
    ("kind nearest", {"nodes": [tool(kind="tools")]}, "kind", "nodes[0].kind", "did you mean `tool`?"),
    ("kind a list", {"nodes": [tool(kind=["tool"])]}, "kind", "nodes[0].kind", "no kind a list of 1"),
    ("kind nothing", {"nodes": [tool(kind=None)]}, "kind", "nodes[0].kind", "no kind null"),
    *(
        (
            f"kind {kind}",
            {"nodes": [tool(kind=kind)]},
            "not_built",
            "nodes[0].kind",
            f"no kind `{kind}`: write a `program`",
        )
        for kind in KINDS_TO_COME
    ),
    ("no id", {"nodes": [without(tool(), "id")]}, "missing_field", "nodes[0]", "`id` is missing"),
    ("id a number", plan(tool(), tool(3)), "type", "nodes[1].id", "must be a string, not 3"),  # type: ignore[arg-type]  # the point
    ("id empty", plan(tool(""), answer="$a"), "id", "nodes[0].id", '"" is not an id'),
    ("id with a digit first", plan(tool("1a")), "id", "nodes[0].id", '"1a" is not an id; an id is a letter, then'),
    ("id of 41", plan(tool("a" * 41)), "id", "nodes[0].id", "up to 39 letters"),
    ("id with newline", plan(tool("a\n")), "id", "nodes[0].id", '"a\\n" is not an id'),
    ("id with NUL", plan(tool("a\0")), "id", "nodes[0].id", '"a\\x00" is not an id'),
    ("id right to left", plan(tool("a\u202eb")), "id", "nodes[0].id", '"a\\u202eb" is not an id'),
    ("id a path", plan(tool("../a")), "id", "nodes[0].id", '"../a" is not an id'),
    ("id of a megabyte", plan(tool("a" * 1_000_000)), "id", "nodes[0].id", 'aaa…" is not an id'),
    ("id a reference", plan(tool("$a")), "id", "nodes[0].id", "write the id `a` here, without `$`"),
    ("needs a reference", plan(tool(), tool("b", needs=["$a"])), "id", "nodes[1].needs[0]", "write the id `a`"),
    ("needs braced", plan(tool(), tool("b", needs=["${a}"])), "id", "nodes[1].needs[0]", "write the id `a`"),
    (
        "needs text",
        plan(tool(), tool("b", needs="a")),
        "type",
        "nodes[1].needs",
        'not "a"; for example `needs: [a, b]`',
    ),
    ("needs null", plan(tool(needs=[None])), "type", "nodes[0].needs[0]", "must be a string, not null"),
    (
        "field near",
        plan(llm("b") | {"promt": "x"}),
        "unknown_field",
        "nodes[0].promt",
        "node of kind llm; did you mean `prompt`?",
    ),
    ("field of another", plan(llm("b", role2=1)), "unknown_field", "nodes[0].role2", "did you mean `role`?"),
    (
        "field unlike",
        plan(tool(zzz=1)),
        "unknown_field",
        "nodes[0].zzz",
        "not a field of a node of kind tool; it has id, kind, on_error, retry",
    ),
    (
        "args on llm",
        plan(llm("b", args={})),
        "unknown_field",
        "nodes[0].args",
        "`args` is not a field of a node of kind llm; it has",
    ),
    (
        "field spelt as kind",
        plan(llm("b", tool="x")),
        "unknown_field",
        "nodes[0].tool",
        "not a field of a node of kind llm",
    ),
    ("field of odd signs", plan(tool() | {"a\nb": 1}), "unknown_field", 'nodes[0]["a\\nb"]', "`a\\nb` is not a field"),
    ("tool missing", {"nodes": [without(tool(), "tool")]}, "missing_field", "nodes[0]", "`tool` is missing"),
    ("tool empty", plan(tool(tool="")), "limit", "nodes[0].tool", "is empty"),
    ("args a list", plan(tool(args=["x"])), "type", "nodes[0].args", "must be an object, not a list of 1"),  # type: ignore[arg-type]  # the point
    (
        "prompt too long",
        plan(llm("b", "x" * 200_001)),
        "limit",
        "nodes[0].prompt",
        "200,001 characters; at most 200,000",
    ),
    ("prompt empty", plan(llm("b", "")), "limit", "nodes[0].prompt", "is empty"),
    ("role", plan(llm("b", role="planer")), "choice", "nodes[0].role", "did you mean `planner`?"),
    ("a turn", plan(llm("b", turn={"number": 2})), "not_built", "nodes[0].turn", "written by the engine"),
    (
        "context a word",
        plan(llm("b", context="reference")),
        "type",
        "nodes[0].context",
        "for example `context: {tokens: 16000, over: reference}`",
    ),
    (
        "over",
        plan(llm("b", context={"over": "summarise"})),
        "choice",
        "nodes[0].context.over",
        'must be one of truncate, reference, not "summarise"',
    ),
    ("tokens", plan(llm("b", context={"tokens": 10})), "limit", "nodes[0].context.tokens", "at least 200, not 10"),
    (
        "field of context",
        plan(llm("b", context={"token": 500})),
        "unknown_field",
        "nodes[0].context.token",
        "not a field of `context`; did you mean `tokens`?",
    ),
    ("agent in a map", plan(tool(), each(do={"kind": "agent"})), "kind", "nodes[1].do.kind", "one of tool, llm"),
    (
        "priority text",
        plan(tool(priority="3")),
        "type",
        "nodes[0].priority",
        'whole number, not "3"; write it without quotes',
    ),
    ("priority true", plan(tool(priority=True)), "type", "nodes[0].priority", "must be a whole number, not true"),
    ("priority 0", plan(tool(priority=0)), "limit", "nodes[0].priority", "at least 1, not 0"),
    ("priority 6", plan(tool(priority=6)), "limit", "nodes[0].priority", "at most 5, not 6"),
    ("priority half", plan(tool(priority=2.5)), "type", "nodes[0].priority", "must be a whole number, not 2.5"),
    ("retry a number", plan(tool(retry=3)), "type", "nodes[0].retry", "not 3; for example `retry: {attempts: 3}`"),
    ("retry 0", plan(tool(retry={"attempts": 0})), "limit", "nodes[0].retry.attempts", "at least 1"),
    ("retry 21", plan(tool(retry={"attempts": 21})), "limit", "nodes[0].retry.attempts", "at most 20"),
    ("retry text", plan(tool(retry={"attempts": "3"})), "type", "nodes[0].retry.attempts", "without quotes"),
    (
        "retry field",
        plan(tool(retry={"attempt": 3})),
        "unknown_field",
        "nodes[0].retry.attempt",
        "did you mean `attempts`?",
    ),
    ("retry empty", plan(tool(retry={})), "missing_field", "nodes[0].retry", "`attempts` is missing"),
    (
        "locks names",
        plan(tool(locks=["repo"])),
        "type",
        "nodes[0].locks[0]",
        "`locks: [{name: repo, mode: exclusive}]`",
    ),
    (
        "lock mode",
        plan(tool(locks=[{"name": "r", "mode": "share"}])),
        "choice",
        "nodes[0].locks[0].mode",
        "mean `shared`?",
    ),
    ("nine locks", plan(tool(locks=[{"name": "r"}] * 9)), "limit", "nodes[0].locks", "has 9 items; at most 8"),
    (
        "estimate",
        plan(tool(estimate={"seconds": -1})),
        "limit",
        "nodes[0].estimate.seconds",
        "at least 0",
    ),
    (
        "estimate text",
        plan(tool(estimate={"seconds": "5"})),
        "type",
        "nodes[0].estimate.seconds",
        'a number, not "5"; write',
    ),
    (
        "estimate a number",
        plan(tool(estimate=5)),
        "type",
        "nodes[0].estimate",
        "`estimate: {seconds: 20, tokens: 500}`",
    ),
    ("timeout a number", plan(tool(timeout=30)), "value", "nodes[0].timeout", "500ms, 30s, 5m, 24h"),
    ("timeout bare", plan(tool(timeout="30")), "value", "nodes[0].timeout", "is not a duration"),
    ("timeout negative", plan(tool(timeout="-5s")), "value", "nodes[0].timeout", "is not a duration"),
    ("timeout 0", plan(tool(timeout="0s")), "value", "nodes[0].timeout", "at least 1ms and at most 30d"),
    ("timeout 31 days", plan(tool(timeout="31d")), "value", "nodes[0].timeout", "at most 30d"),
    (
        "on_error word",
        plan(tool(on_error="ignore")),
        "form",
        "nodes[0].on_error",
        '"ignore" is not a valid `on_error`; write fail, skip, {fal',
    ),
    (
        "on_error null",
        plan(tool(on_error=None)),
        "form",
        "nodes[0].on_error",
        "null is not a valid `on_error`; write fail, skip, {fallb",
    ),
    (
        "on_error list",
        plan(tool(on_error=["skip"])),
        "form",
        "nodes[0].on_error",
        "a list of 1 is not a valid `on_error`",
    ),
    (
        "on_error empty",
        plan(tool(on_error={})),
        "form",
        "nodes[0].on_error",
        "an empty object is not a valid",
    ),
    (
        "on_error near",
        plan(tool(on_error={"falback": 1})),
        "form",
        "nodes[0].on_error",
        "an object with falback is not a valid `on_error`",
    ),
    (
        "on_error both",
        plan(tool(on_error={"fallback": 1, "instead": "b"})),
        "form",
        "nodes[0].on_error",
        "or {instead: node}",
    ),
    (
        "instead a number",
        plan(tool(on_error={"instead": 5})),
        "type",
        "nodes[0].on_error.instead",
        "must be a string, not 5",
    ),
    (
        "instead a reference",
        plan(tool(on_error={"instead": "$b"})),
        "id",
        "nodes[0].on_error.instead",
        "the id `b` here",
    ),
    (
        "on_error of do",
        plan(tool(), each(do=llm("", on_error=3) | {})),
        "form",
        "nodes[1].do.on_error",
        "3 is not a valid `on_error`",
    ),
    (
        "when true",
        plan(tool(when=True)),
        "form",
        "nodes[0].when",
        "true is not a condition; write {ref: $a.count, op: gt, value",
    ),
    ("when text", plan(tool(when="$a > 3")), "form", "nodes[0].when", '"$a > 3" is not a condition; write {ref'),
    (
        "when op",
        plan(tool(when={"ref": "$a", "op": ">", "value": 3})),
        "choice",
        "nodes[0].when.op",
        "one of eq, ne, lt",
    ),
    (
        "when op near",
        plan(tool(when={"ref": "$a", "op": "contain", "value": 3})),
        "choice",
        "nodes[0].when.op",
        "`contains`?",
    ),
    ("when no op", plan(tool(when={"ref": "$a"})), "missing_field", "nodes[0].when", "`op` is missing"),
    ("when no ref", plan(tool(when={"op": "exists"})), "missing_field", "nodes[0].when", "`ref` is missing"),
    ("when and empty", plan(tool(when={"and": []})), "limit", "nodes[0].when.and", "is empty"),
    (
        "when and object",
        plan(tool(when={"and": {}})),
        "type",
        "nodes[0].when.and",
        "must be a list, not an empty object",
    ),
    (
        "when deep",
        plan(tool(when={"and": [{"not": {"or": [{"ref": 1, "op": "exists"}]}}]})),
        "type",
        "nodes[0].when.and[0].not.or[0].ref",
        "must be a string, not 1",
    ),
    ("when part", plan(tool(when={"or": ["$a"]})), "form", "nodes[0].when.or[0]", '"$a" is not a condition'),
    (
        "when mixed",
        plan(tool(when={"and": [{"ref": "$a", "op": "exists"}], "op": "eq"})),
        "unknown_field",
        "nodes[0].when.op",
        "`op` is not a field of a condition; it has and",
    ),
    (
        "join without inputs",
        plan(without(J, "inputs")),
        "missing_field",
        "nodes[0]",
        "`inputs` is missing; for example `inputs: [",
    ),
    ("join of nothing", plan(join("j", [])), "limit", "nodes[0].inputs", "is empty; give at least one"),
    ("join of text", plan(join("j", "a")), "type", "nodes[0].inputs", 'not "a"; for example `inputs: [a, b]`'),  # type: ignore[arg-type]  # the point
    ("join of a number", plan(join("j", ["a", 5])), "type", "nodes[0].inputs[1]", "must be a string, not 5"),  # type: ignore[list-item]  # the point
    (
        "policy word",
        plan(J | {"policy": "any"}),
        "form",
        "nodes[0].policy",
        '"any" is not a valid `policy`; write all, settled, first, {qu',
    ),
    (
        "policy object",
        plan(J | {"policy": {"quorm": 2}}),
        "form",
        "nodes[0].policy",
        "an object with quorm is not a valid `policy`",
    ),
    (
        "quorum 0",
        plan(J | {"policy": {"quorum": 0}}),
        "value",
        "nodes[0].policy.quorum",
        "0 is no quorum; write a count such as 2",
    ),
    ("quorum text", plan(J | {"policy": {"quorum": "2"}}), "value", "nodes[0].policy.quorum", 'a share such as "60%"'),
    ("quorum 101%", plan(J | {"policy": {"quorum": "101%"}}), "value", "nodes[0].policy.quorum", '"101%" is no quorum'),
    ("quorum of odd digits", plan(J | {"policy": {"quorum": "²%"}}), "value", "nodes[0].policy.quorum", "is no quorum"),
    ("quorum true", plan(J | {"policy": {"quorum": True}}), "value", "nodes[0].policy.quorum", "true is no quorum"),
    *(
        (
            f"policy {name}",
            plan(J | {"policy": given}),
            "not_built",
            "nodes[0].policy",
            f"join policy `{name}` is not built yet",
        )
        for name, given in (("vote", "vote"), ("best", {"best": "judge"}), ("reduce", {"reduce": {}}))
    ),
    (
        "map in a map",
        plan(tool(), each(do=each())),
        "kind",
        "nodes[1].do.kind",
        'no kind "map" here; a map repeats one of tool, llm',
    ),
    (
        "do without kind",
        plan(tool(), each(do={"tool": "read"})),
        "kind",
        "nodes[1].do",
        "`kind` is missing; write one of tool, llm",
    ),
    (
        "do text",
        plan(tool(), each(do="read")),
        "type",
        "nodes[1].do",
        'must be an object, not "read"; for example `do: {kind',
    ),
    (
        "do field",
        plan(tool(), each(do=llm("") | {"promt": 1})),
        "unknown_field",
        "nodes[1].do.promt",
        "a call of kind llm in a map; did you",
    ),
    (
        "no do",
        plan(tool(), without(each(), "do")),
        "missing_field",
        "nodes[1]",
        "`do` is missing; for example `do: {kind: tool",
    ),
    (
        "as_",
        plan(tool(), each(as_="x")),
        "unknown_field",
        "nodes[1].as_",
        "`as_` is not a field of a node of kind map; did you mean `as`?",
    ),
    ("max_items text", plan(tool(), each(max_items="9")), "type", "nodes[1].max_items", "write it without quotes"),
    (
        "max_items 10,001",
        plan(tool(), each(max_items=10_001)),
        "limit",
        "nodes[1].max_items",
        "at most 10,000",
    ),
    ("over a list", plan(each(over=["a"])), "type", "nodes[0].over", "must be a string, not a list of 1"),  # type: ignore[arg-type]  # the point
    ("gate schema", plan(gate(schema="text")), "type", "nodes[0].schema", "`schema: {type: string, enum: [yes, no]}`"),
    (
        "gate answer_schema",
        plan(gate(answer_schema={})),
        "unknown_field",
        "nodes[0].answer_schema",
        "not a field of a node of kind gate",
    ),
    ("gate question", plan(without(gate(), "question")), "missing_field", "nodes[0]", "`question` is missing"),
    (
        "gate with locks",
        plan(gate(locks=[])),
        "unknown_field",
        "nodes[0].locks",
        "not a field of a node of kind gate; it has id",
    ),
    (
        "a megabyte to ask",
        plan(gate(question="x" * 1_000_000)),
        "limit",
        "nodes[0].question",
        "1,000,000 characters; at most",
    ),
    (
        "NaN",
        plan(tool(args={"k": [0, float("nan")]})),
        "not_json",
        "nodes[0].args.k[1]",
        "NaN is no number that JSON can",
    ),
    (
        "infinity",
        plan(tool(estimate={"seconds": float("inf")})),
        "not_json",
        "nodes[0].estimate.seconds",
        "Infinity is no",
    ),
    (
        "huge number",
        plan(tool(args={"k": 10**5_000})),
        "not_json",
        "nodes[0].args.k",
        "over 300 digits; write it as text",
    ),
    ("huge kind", {"nodes": [tool(kind=10**5_000)]}, "not_json", "nodes[0].kind", "over 300 digits"),
    (
        "lone surrogate",
        plan(llm("b", "x\ud800")),
        "not_json",
        "nodes[0].prompt",
        '"x\\ud800" holds half a surrogate pair',
    ),
    (
        "surrogate field",
        plan(tool(args={"\udfff": 1})),
        "not_json",
        "nodes[0].args",
        "the field `\\udfff` holds half a",
    ),
    ("number as field", plan(tool(args={1: 2})), "not_json", "nodes[0].args", "names are text, so put it in quotes"),  # type: ignore[dict-item]  # the point
    (
        "tuple",
        plan(tool(args={"k": [("a",)]})),
        "not_json",
        "nodes[0].args.k[0]",
        "tuple is nothing that JSON can hold",
    ),
    ("bytes", plan(tool(args={"k": b"x"})), "not_json", "nodes[0].args.k", "bytes is nothing that JSON can hold"),
]


@pytest.mark.parametrize(
    ("data", "code", "place", "expected"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES]
)
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
