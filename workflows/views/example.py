"""An example of a gate's answer: a value that fits its schema, so that what a person is shown can be sent as it is."""

from collections.abc import Iterator
from math import ceil, floor
from typing import Any

from pydantic import JsonValue

from workflows.plan.language.json_schema import choices_of, definitions, resolve, violations

PLACEHOLDER = "VALUE"
_TEXT = "yes"
_LEVELS = 8
_ITEMS = 20
_VALUES, _STEPS = 200, 5_000
"""Most values in an example, and most steps to see whether it fits."""


def example_value(schema: dict[str, JsonValue] | None) -> JsonValue:
    """Return a value that fits the schema, or the word VALUE where none is found, such as for a `pattern`.

    It is found each time that a board is drawn, so little may be tried.
    """
    try:
        value: JsonValue = _value(schema or {}, definitions(schema), 0, iter(range(_VALUES)))
    except StopIteration:
        return PLACEHOLDER
    return PLACEHOLDER if next(violations(value, schema or {}, steps=_STEPS), None) else value


def _value(schema: Any, defs: dict[str, Any], level: int, room: Iterator[int]) -> Any:
    """Return a value. Raises StopIteration when there is no room for one more."""
    next(room)
    schema = resolve(schema, defs)
    for given in ("enum", "examples"):
        if isinstance(schema.get(given), list) and schema[given]:
            return schema[given][0]
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    every = choices_of(schema) or schema.get("allOf")
    if isinstance(every, list) and every and level < _LEVELS:
        return _value(every[0], defs, level + 1, room)
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        names = schema.get("required", []) if level < _LEVELS else []
        return {name: _value(properties.get(name, {}), defs, level + 1, room) for name in names}
    if kind == "array":
        count = schema.get("minItems", 0) if level < _LEVELS else 0
        return [_value(schema.get("items", {}), defs, level + 1, room)] * min(count, _ITEMS)
    if kind in ("integer", "number"):
        return _number(schema, 1 if kind == "integer" else 1.5)
    return {"boolean": True, "null": None}.get(kind, _text(schema))


def _number(schema: dict[str, Any], usual: float) -> float:
    """Return the usual number, or one at the schema's bounds."""
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    high = schema.get("exclusiveMaximum") if high is None else high
    tried = [usual, *([ceil(low), floor(low) + 1] if low is not None else [])]
    tried += [floor(high), ceil(high) - 1] if high is not None else []
    tried += [(low + high) / 2] if low is not None and high is not None else []
    return next((number for number in tried if next(violations(number, schema, steps=_STEPS), None) is None), usual)


def _text(schema: dict[str, Any]) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(_TEXT))
    return _TEXT.ljust(min(least, 1_000), ".")[: max(most, least)]
