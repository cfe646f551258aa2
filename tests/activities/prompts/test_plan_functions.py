"""The functions of a plan: the tools as they are, and a reference wherever a value may be one."""

from typing import Any

import pytest

from sennit.activities.prompts.plan_functions import functions
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.language.json_schema import violations

CATALOGUE = load_tools([]).catalogue()
ISSUE = {
    "$defs": {"Label": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
    "type": "object",
    "properties": {
        "owner": {"type": "string", "description": "Whose it is."},
        "type": {"enum": ["bug", "task"]},
        "day": {"type": "string", "pattern": "^[0-9-]+$"},
        "labels": {"type": "array", "items": {"$ref": "#/$defs/Label"}},
        "page": {"type": "integer", "minimum": 1},
        "filter": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "body": {"type": "object", "properties": {"properties": {"type": "number"}, "items": {"type": "boolean"}}},
    },
    "required": ["owner"],
    "additionalProperties": False,
}


def parameters(name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(each["parameters"] for each in functions(entries) if each["name"] == name)
    return found


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"type": "task", "labels": "$1.labels", "page": "$1.items[0].page", "filter": None}, True),
        ({"type": "$1", "day": "$1.day", "body": "$2"}, True),
        ({"labels": [{"name": "x", "n": 1}, "$1", {"n": "$item.n"}], "page": 2, "body": {"properties": 1.5}}, True),
        ({"body": {"properties": "$1", "items": "$2"}}, True),
        ({"page": "one"}, False),
        ({"pages": 1}, False),
        ({"type": "bugs"}, False),
        ({"owner": None}, False),
        ({"day": "today"}, False),
        ({"labels": [{"n": "two"}]}, False),
    ],
)
def test_arguments_fit_as_the_tool_wants_them_or_refer(more: dict[str, Any], fits: bool) -> None:
    schema = parameters("make", {"name": "make", "schema": ISSUE})
    assert (list(violations({"owner": "a", **more}, schema)) == []) is fits


def test_what_a_tool_says_of_its_arguments_is_kept() -> None:
    schema = parameters("make", {"name": "make", "schema": ISSUE})
    assert schema["properties"]["owner"] == ISSUE["properties"]["owner"]  # type: ignore[index]
    assert schema["properties"]["page"]["anyOf"][0] == {"type": "integer", "minimum": 1}


@pytest.mark.parametrize("schema", [{"type": "object"}, None, {"properties": 3}])
def test_a_tool_without_arguments_can_be_called(schema: Any) -> None:
    assert isinstance(parameters("make", {"name": "make", "schema": schema}), dict)


def test_a_run_without_tools_has_the_other_calls() -> None:
    assert [each["name"] for each in functions([])] == ["llm", "map", "gate", "join"]
    assert "agent" in {each["name"] for each in functions(CATALOGUE)}
    assert list(violations({"results": ["$1", "$2"]}, parameters("join"))) == []
