"""The types behind references, as far as schemas tell."""

from typing import Any

import pytest
from doubles.plan.samples import TOOLS, each, free, gate, join, llm, plan, tool

from sennit.workflows.plan.checking.output_types import OutputTypes
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.references import Reference, parse_reference

DATA = plan(
    tool(),
    free("f"),
    llm("text"),
    llm(
        "b",
        output_schema={
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "maybe": {"anyOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"type": "null"}]},
            },
        },
    ),
    each(),
    each("k", do={"kind": "llm", "prompt": "x"}),
    join("j", ["a", "b"]),
    join("one", ["a", "b"], policy="first"),
    gate("g", schema={"type": "array", "items": {"type": "boolean"}}),
    gate("h"),
    llm("open", output_schema={"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
    llm("enum", output_schema={"enum": ["x", 1, None]}),
    inputs={"city": {"type": "string"}, "rows": {"type": "array"}, "n": {"type": "integer", "default": None}},
)
PLAN = parse_plan(DATA)
OUTPUTS = OutputTypes(PLAN, TOOLS)


def read(text: str) -> Reference:
    found = parse_reference(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("$a", {"object"}),
        ("$a.count", {"integer"}),
        ("$a.items", {"array"}),
        ("$a.items.length", {"integer"}),
        ("$a.items[3]", {"object"}),
        ("$a.items[0].score", {"number"}),
        ("$f", set()),
        ("$f.x.y", set()),
        ("$text", set()),
        ("$b.n", {"integer"}),
        ("$b.maybe", {"object", "null"}),
        ("$b.maybe.x", set()),
        ("$m", {"array"}),
        ("$m.length", {"integer"}),
        ("$m[0].text", {"string"}),
        ("$k[0].text", set()),
        ("$j", {"array"}),
        ("$j[0].count", set()),
        ("$one.count", set()),
        ("$g[1]", {"boolean"}),
        ("$h.x", set()),
        ("$open.b", set()),
        ("$enum", {"string", "integer", "null"}),
        ("$goal", {"string"}),
        ("$input.city", {"string"}),
        ("$input.rows[0].x", set()),
        ("$input.n", {"integer", "null"}),
        ("$nobody.x", set()),
    ],
)
def test_a_reference_has_the_types_its_schema_tells(text: str, types: set[str]) -> None:
    assert OUTPUTS.types_at(read(text)) == types
    assert OUTPUTS.at(read(text))[1] is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("$a.cuont", "`${a.cuont}` has no value: `$a` has count, items; did you mean `count`?"),
        ("$a.items[0].zzz", "`${a.items[0].zzz}` has no value: `${a.items[0]}` has path, title, score"),
        ("$a.items.first", "`${a.items.first}` has no value: `${a.items}` is array"),
        ("$a[0]", "`${a[0]}` has no value: `$a` is no list but object"),
        ("$b.maybe.y", "`${b.maybe.y}` has no value: `${b.maybe}` has x"),
        ("$b.n.x", "`${b.n.x}` has no value: `${b.n}` is integer"),
        ("$m.text", "`${m.text}` has no value: `$m` is array"),
        ("$j.a", "`${j.a}` has no value: `$j` is array"),
        ("$input.city.x", "`${input.city.x}` has no value: `${input.city}` is string"),
        ("$goal[0]", "`${goal[0]}` has no value: `$goal` is no list but string"),
    ],
)
def test_a_path_that_cannot_be_is_named_with_what_there_is(text: str, sentence: str | None) -> None:
    assert OUTPUTS.at(read(text)) == (None, sentence)


def test_a_path_through_alternatives_is_wrong_when_it_is_wrong_in_each() -> None:
    schema = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {}}}]}
    outputs = OutputTypes(parse_plan(plan(llm("b", output_schema=schema))), {})
    assert outputs.at(read("$b.x")) == (None, None)
    assert outputs.at(read("$b.y"))[1] == "`${b.y}` has no value: `$b` has x"


def test_an_item_has_the_type_of_the_list_only_inside_its_map() -> None:
    reader = PLAN.nodes[4]
    assert OUTPUTS.types_at(read("$item.path"), reader) == {"string"}
    assert OUTPUTS.types_at(read("$item.path")) == frozenset()
    assert OUTPUTS.at(read("$item.zzz"), reader)[1] == "`${item.zzz}` has no value: `$item` has path, title, score"


def test_without_tools_only_the_plan_itself_tells() -> None:
    outputs = OutputTypes(PLAN, {})
    assert outputs.types_at(read("$a.count")) == frozenset()
    assert outputs.types_at(read("$b.n")) == {"integer"}


@pytest.mark.parametrize(
    "schema", [None, True, [], {"properties": 1}, {"type": 7}, {"$ref": 1}, {"anyOf": [1]}, {"items": 3}]
)
def test_a_tool_schema_that_makes_no_sense_tells_nothing(schema: Any) -> None:
    outputs = OutputTypes(PLAN, {"search": {"name": "search", "output_schema": schema}})
    assert outputs.types_at(read("$a.items[0].x")) == frozenset()
