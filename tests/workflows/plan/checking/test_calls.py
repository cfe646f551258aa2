"""A call's arguments against its tool's schema, references among them by their types."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, each, llm, plan, tool

from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.language.parser import parse_plan

TYPED = {
    "name": "typed",
    "effect": "read",
    "schema": {
        "type": "object",
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        "properties": {
            "point": {"$ref": "#/$defs/Point"},
            "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}, "maxItems": 2},
            "flag": {"type": "boolean"},
            "mode": {"enum": ["fast", "slow"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]},
            "number": {"type": "number"},
            "code": {"type": "string", "pattern": "^[a-z]+$"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "additionalProperties": False,
    },
}


def messages(args: dict[str, Any]) -> list[str]:
    data = plan(tool(), llm("f"), tool("t", "typed", args), inputs={"n": {"type": "integer"}, "o": {"type": "object"}})
    return [str(item) for item in problems_of(parse_plan(data), [*CATALOGUE, TYPED])]


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"point": {"x": 1.5}, "points": [{"x": 1}, {"x": "$a.count"}], "flag": False, "mode": "slow", "either": 3},
        {"point": "$input.o", "points": "$a.items", "flag": "$f", "mode": "$f.mode", "either": "$a.count"},
        {"number": "$a.count", "code": "$$a", "map": {"k": "$input.n"}} | {"code": "abc"},
        {"mode": "$f and text", "either": "$f text", "code": "x$f"},
        {"code": "a" * 5_000},
    ],
)
def test_arguments_that_fit_pass(args: dict[str, Any]) -> None:
    assert messages(args) == []


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"point": {"x": "1"}}, 'nodes[2].args.point.x: typed: wanted number, not "1"'),
        ({"point": {}}, "nodes[2].args.point: typed: `x` is missing"),
        (
            {"points": [{"x": 1}, {"x": "$f and"}]},
            "nodes[2].args.points[1].x: typed: text with references in it is string; wanted number",
        ),
        ({"points": [{"x": 1}] * 3}, "nodes[2].args.points: typed: has 3 items; at most 2"),
        ({"points": "$a.count"}, "nodes[2].args.points: typed: `$a.count` gives integer; wanted array"),
        ({"flag": "$input.n"}, "nodes[2].args.flag: typed: `$input.n` gives integer; wanted boolean"),
        ({"mode": "fastt"}, 'typed: must be one of "fast", "slow", not "fastt"; did you mean `fast`?'),
        ({"mode": "$a.count"}, "nodes[2].args.mode: typed: `$a.count` gives integer; wanted string"),
        ({"either": "long"}, "nodes[2].args.either: typed: has 4 characters; at most 3"),
        ({"either": True}, "nodes[2].args.either: typed: wanted integer or string, not true"),
        ({"either": "$a.items"}, "typed: `$a.items` gives array; wanted integer or string"),
        ({"number": "$a.items[0].title"}, "typed: `$a.items[0].title` gives string; wanted number"),
        ({"code": "ABC"}, 'nodes[2].args.code: typed: "ABC" does not match ^[a-z]+$'),
        ({"code": "$$5"}, 'nodes[2].args.code: typed: "$$5" does not match'),
        ({"map": {"k": "$a.items"}}, "nodes[2].args.map.k: typed: `$a.items` gives array; wanted integer"),
        ({"two words\n": 1}, 'nodes[2].args["two words\\n"]: typed: `two words\\n` is unknown; known: point, points'),
    ],
)
def test_each_that_does_not_is_reported_with_tool_and_place(args: dict[str, Any], sentence: str) -> None:
    assert len(messages(args)) == 1
    assert sentence in messages(args)[0]


def test_left_out_arguments_are_missing_at_the_node() -> None:
    data = plan({"id": "a", "kind": "tool", "tool": "search"})
    assert [str(item) for item in problems_of(parse_plan(data), CATALOGUE)] == ["nodes[0]: search: `query` is missing"]


def test_a_map_checks_its_template_with_the_items_type() -> None:
    data = plan(tool(), each(do={"kind": "tool", "tool": "search", "args": {"query": "$item", "k": "$item.score"}}))
    assert [str(item) for item in problems_of(parse_plan(data), CATALOGUE)] == [
        "nodes[1].do.args.query: search: `$item` gives object; wanted string",
        "nodes[1].do.args.k: search: `$item.score` gives number; wanted integer",
    ]
