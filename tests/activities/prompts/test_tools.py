"""What a planner reads of a tool's schema."""

from typing import Any

import pytest

from sennit.activities.prompts.tools import shape

_NAMES = [f"x{number}" for number in range(100)]
_TEXT = {"type": "string"}
_REF = {"$ref": "#/$defs/a"}
_WIDE = {"$defs": {"a": {"properties": dict.fromkeys(_NAMES, _REF)}}}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"n": {"type": "integer"}, "of": {"items": {"enum": ["a", 1]}}}}, "{n: integer, of: ['a'|1]}"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string|null"),
        (
            {"properties": dict.fromkeys(_NAMES, _TEXT)},
            "{" + "".join(f"{name}: string, " for name in _NAMES[:50]) + "…}",
        ),
    ],
)
def test_a_schema_is_a_few_words(schema: dict[str, Any], text: str) -> None:
    assert shape(schema, {}) == text


def test_a_schema_that_refers_to_itself_in_many_places_is_cut() -> None:
    assert len(shape(_REF, _WIDE["$defs"])) < 100_000
