from typing import Any

import pytest

from sennit.activities.programs.classes import classes_of
from sennit.activities.programs.schemas import schema_of
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.json_schema import violations

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

Size = Literal["s", "m"]
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
        (f"Literal[{10**400}]", {"enum": [10**400]}),
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
        ({"a": "Size", "b": "list[Size]"}, {
            "type": "object",
            "properties": {"a": {"enum": ["s", "m"]}, "b": {"type": "array", "items": {"enum": ["s", "m"]}}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }),
        ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 3}),
    ],
)  # fmt: skip
def test_a_type_becomes_a_schema(written: Any, schema: Any) -> None:
    assert schema_of(written, classes_of(SCRIPT)) == schema


def test_a_tuple_of_two_classes_takes_both() -> None:
    classes = {"A": [("a", "int", False)], "B": [("b", "int", False)]}
    found = schema_of("tuple[A, B]", classes)
    assert list(violations([{"a": 1}, {"b": 2}], found)) == []
    assert list(violations([{"a": 1}, {"c": 2}], found)) != []
    assert schema_of("tuple[A, Any]", classes)["items"]["anyOf"][1] == {}
    assert schema_of("tuple[list[A], list[B]]", classes)["items"].keys() == {"anyOf"}
    assert schema_of("tuple[list[A], List[A]]", classes)["items"].keys() == {"type", "items"}


def test_a_class_that_is_named_again_is_written_once() -> None:
    """So a schema is as long as the script, not twice as long with each class that names the next one twice."""
    classes = {f"C{n}": [("a", f"C{n + 1}", False), ("b", f"list[C{n + 1}]", True)] for n in range(20)}
    found = schema_of("C0", {**classes, "C20": [("a", "int", False)]})
    assert (found["required"], found["properties"]["b"]) == (["a"], {"type": "array", "items": {"$ref": "#/$defs/C1"}})
    assert list(found["$defs"]) == sorted(f"C{n}" for n in range(1, 21))
    assert found["$defs"]["C20"]["properties"] == {"a": {"type": "integer"}}
    assert list(unknown_keywords(found)) == []
    value: Any = {"a": 1}
    for _ in range(20):
        value = {"a": value}
    assert list(violations(value, found)) == []


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("Pont", "Pont is no type"),
        ("Node", "contains itself"),
        ("complex[int]", "complex"),
        ("1 + 1", "no type"),
        ("not a type at all", "no type"),
        ([], "one type"),
        ("list[()]", "no type that a model"),
        ("Optional[()]", "no type that a model"),
        ("|".join(["int"] * 3_000), "too large"),
        ("list[" * 100 + "int" + "]" * 100, "levels deep"),
        ("Literal[1e999]", "is no JSON"),
        ("Literal[b'x']", "is no JSON"),
        ({f"a{n}": "int" for n in range(3_000)}, "more than 2,000 types"),
        ({"type": "object", "properties": {f"a{n}": {} for n in range(3_000)}}, "more than 2,000 parts"),
        ({"type": "string", "maxLengthh": 3}, "maxLengthh"),
    ],
)
def test_what_is_no_type_says_so(written: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("+", r"\+")):
        schema_of(written, classes_of(SCRIPT))
