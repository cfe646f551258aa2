from typing import Any

import pytest

from activities.programs.schemas import schema_of

SCRIPT = """
@dataclass
class Point:
    x: int
    label: str | None = None

@dataclass
class Line:
    ends: list[Point]

@dataclass
class Node:
    next: "Node"
"""
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("str", {"type": "string"}),
        ("list", {"type": "array"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("dict[str, float]", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("int | str | None", {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("typing.Optional[bool]", {"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        ("Literal['yes', 'no']", {"enum": ["yes", "no"]}),
        (["str"], {"type": "array", "items": {"type": "string"}}),
        (["yes", "no", None], {"enum": ["yes", "no", None]}),
        ("Point", POINT),
        ("list[Line]", {"type": "array", "items": {
            "type": "object",
            "properties": {"ends": {"type": "array", "items": POINT}},
            "required": ["ends"],
            "additionalProperties": False,
        }}),
        ("list[{'a': int}]", {"type": "array", "items": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        }}),
        ({"good": "bool", "faults": "list[str]"}, {
            "type": "object",
            "properties": {"good": {"type": "boolean"}, "faults": {"type": "array", "items": {"type": "string"}}},
            "required": ["good", "faults"],
            "additionalProperties": False,
        }),
        ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 3}),
    ],
)  # fmt: skip
def test_a_type_becomes_a_schema(written: Any, schema: Any) -> None:
    assert schema_of(written, SCRIPT) == schema


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("Pont", "Pont is no type"),
        ("Node", "contains itself"),
        ("complex[int]", "complex"),
        ("1 + 1", "no type"),
        ("not a type at all", "no type"),
        ([], "one type"),
        ({"type": "string", "maxLengthh": 3}, "maxLengthh"),
    ],
)
def test_what_is_no_type_says_so(written: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("+", r"\+")):
        schema_of(written, SCRIPT)
