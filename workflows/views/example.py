"""An example of a gate's answer: a value that fits its schema, so that what a person is shown can be sent as it is."""

from collections.abc import Iterator
from math import ceil, floor
from typing import Any

from pydantic import JsonValue

from sennit.workflows.plan.language.json_schema import choices_of, definitions, resolve, violations

PLACEHOLDER = "VALUE"
_TEXT = "yes"
_LEVELS = 8
_OPTIONAL_LEVELS = 2
"""How far down optional fields are named: in the answer itself and in the objects directly in it."""
_ITEMS = 20
_VALUES, _STEPS = 200, 5_000
"""Most values in an example, and most steps to see whether it fits."""


def example_value(schema: dict[str, JsonValue] | None) -> JsonValue:
    """Return a value that fits the schema, or the word VALUE where none is found, such as for a `pattern`.

    It is found each time that a board is drawn, so little may be tried.
    """
    return _example(schema, 0)


def full_example(schema: dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Return an object that fits the schema and has optional fields too, in the schema's order; an empty one if the
    schema has none, or is of no object, or such a value is not found.
    """
    is_object = isinstance(schema, dict) and resolve(schema, definitions(schema)).get("type") == "object"
    full = _example(schema, _OPTIONAL_LEVELS) if is_object else None
    return full if isinstance(full, dict) and full != example_value(schema) else {}


def _example(schema: dict[str, JsonValue] | None, optional: int) -> JsonValue:
    try:
        value: JsonValue = _value(schema or {}, definitions(schema), 0, iter(range(_VALUES)), optional)
    except StopIteration:
        return PLACEHOLDER
    return PLACEHOLDER if next(violations(value, schema or {}, steps=_STEPS), None) else value


def _value(schema: Any, defs: dict[str, Any], level: int, room: Iterator[int], optional: int) -> Any:
    """Return a value, whose first levels have `optional` fields. Raises StopIteration when there is no room for one
    more.
    """
    next(room)
    schema = resolve(schema, defs)
    for keyword in ("enum", "examples"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    every = choices_of(schema) or schema.get("allOf")
    if isinstance(every, list) and every and level < _LEVELS:
        return _value(every[0], defs, level + 1, room, optional)
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        names = schema.get("required", []) if level < _LEVELS else []
        names = dict.fromkeys([*properties, *names] if level < optional else names)
        return {name: _value(properties.get(name, {}), defs, level + 1, room, optional) for name in names}
    if kind == "array":
        count = schema.get("minItems", 0) if level < _LEVELS else 0
        return [_value(schema.get("items", {}), defs, level + 1, room, optional)] * min(count, _ITEMS)
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
