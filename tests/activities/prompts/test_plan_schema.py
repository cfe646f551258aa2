"""The schema of a plan: small whatever the tools are, true to the plans that people would write, strict where asked."""

import json
from typing import Any

import pytest

from activities.prompts import planner
from activities.prompts.plan_schema import MOST_BYTES, plan_schema, size_of
from activities.providers.structured import is_strict, strict_schema
from activities.toolbox import load_tools
from workflows.plan.language.json_schema import violations

CATALOGUE = load_tools([]).catalogue()
TEXT = {"type": "string", "description": "What is meant. " * 30}
ISSUE = {
    "$defs": {"Label": {"type": "object", "properties": {"name": TEXT, "more": {"$ref": "#/$defs/Label"}}}},
    "type": "object",
    "properties": {
        "owner": TEXT,
        "repo": TEXT,
        "type": {"enum": ["bug", "task"], "description": "x" * 900},
        "labels": {"type": "array", "items": {"$ref": "#/$defs/Label"}},
        "page": {"type": "integer", "minimum": 1},
        "filter": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "body": {"type": "object", "properties": {"properties": {"type": "number"}, "items": {"type": "boolean"}}},
    },
    "required": ["owner", "repo"],
}
WIDE = {"type": "object", "properties": {f"a_rather_long_name_{n}": {"type": "integer"} for n in range(200)}}


def tools(schema: Any, count: int = 60) -> list[dict[str, Any]]:
    return [{"name": f"some_server__create_the_thing_{n}", "schema": schema} for n in range(count)]


@pytest.mark.parametrize("schema", [ISSUE, WIDE, {"type": "object"}, None], ids=["issue", "wide", "any", "none"])
def test_sixty_tools_fit_and_each_can_be_called(schema: Any) -> None:
    found = plan_schema(tools(schema))
    assert size_of(found) <= MOST_BYTES
    assert wrong(found, tool="other", arguments={})
    if schema is not ISSUE:
        assert not wrong(found, tool="some_server__create_the_thing_59", arguments={})


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"type": "task", "labels": "$1.labels", "page": "$1.items[0].page", "filter": None}, True),
        ({"labels": [{"name": "x", "more": {"name": "y"}}], "page": 2, "body": {"properties": 1.5}}, True),
        ({"page": "one"}, False),
        ({"pages": 1}, False),
        ({"type": "bugs"}, False),
        ({"owner": None}, False),
        ({"labels": [{"title": "x"}]}, False),
    ],
)
def test_arguments_fit_as_the_tool_wants_them_or_refer(more: dict[str, Any], fits: bool) -> None:
    schema = plan_schema(tools(ISSUE, 3))
    found = wrong(schema, tool="some_server__create_the_thing_1", arguments={"owner": "a", "repo": "b", **more})
    assert (found == []) is fits


def wrong(schema: dict[str, Any], **call: Any) -> list[Any]:
    return list(violations({"calls": [{"n": 1, **call}], "answer": {"text": "", "results": ["$1"]}}, schema))


def test_no_description_is_repeated_and_what_is_alike_is_said_once() -> None:
    found = json.dumps(plan_schema(tools(ISSUE)))
    assert "What is meant" not in found
    assert found.count('"bug"') == 1


@pytest.mark.parametrize("example", planner.JSON_EXAMPLES, ids=lambda example: example[1][:20])
def test_the_examples_fit(example: planner.Example) -> None:
    entries = [entry for entry in CATALOGUE if entry["name"] in example[0]]
    assert list(violations(json.loads(example[2]), plan_schema(entries))) == []


def test_a_strict_schema_requires_everything() -> None:
    found = strict_schema(plan_schema(CATALOGUE))
    assert is_strict(found)
    assert wrong(found, for_each=None, tool="search", arguments={"query": "a", "k": None}) == []
