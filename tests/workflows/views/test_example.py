"""The example of an answer that a gate suggests."""

from typing import Any

import pytest

from workflows.views.example import PLACEHOLDER, example_value

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
