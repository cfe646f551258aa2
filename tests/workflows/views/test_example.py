"""The example of an answer that a gate suggests."""

from typing import Any

import pytest

from sennit.workflows.views.example import PLACEHOLDER, example_value, full_example

_NAMES = [f"x{number}" for number in range(20)]
_REF = {"$ref": "#/$defs/a"}
_WIDE: dict[str, Any] = {
    "$defs": {"a": {"type": "object", "required": _NAMES, "properties": dict.fromkeys(_NAMES, _REF)}},
    **_REF,
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, "yes"),
        ({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 7}}}, {"n": 7}),
        ({"enum": ["go", "stop"]}, "go"),
        ({"pattern": "^[0-9]+$"}, PLACEHOLDER),
        (_WIDE, PLACEHOLDER),
        ({"const": 1, "anyOf": [{"type": "string"}] * 5_000}, PLACEHOLDER),
    ],
)
def test_a_value_fits_or_none_is_named_and_little_is_tried(schema: Any, value: Any) -> None:
    assert example_value(schema) == value


_OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
_TREE: dict[str, Any] = {
    "$defs": {
        "t": {"type": "object", "required": ["n"], "properties": {"n": {"const": 1}, "t": {"$ref": "#/$defs/t"}}}
    },
    "$ref": "#/$defs/t",
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, {}),
        ({"type": "string"}, {}),
        (_OPTIONAL, {"a": 1, "b": "yes"}),
        (_OPTIONAL | {"required": ["b"]}, {"a": 1, "b": "yes"}),
        (_OPTIONAL | {"required": ["a", "b"]}, {}),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[0-9]+$"}}}, {}),
        (_TREE, {"n": 1, "t": {"n": 1, "t": {"n": 1}}}),
        (_WIDE, {}),
    ],
)
def test_a_full_value_has_what_may_be_left_out_as_far_as_it_fits(schema: Any, value: Any) -> None:
    assert full_example(schema) == value
