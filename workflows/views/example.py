"""An example of a gate's answer: a value that fits its schema, so that what a person is
shown can be sent as it is.
"""

from collections.abc import Iterator
from math import ceil, floor
from typing import Any

from pydantic import JsonValue

from sennit.workflows.plan.language.json_schema import choices_of, definitions, resolve, violations

PLACEHOLDER = "VALUE"
_TEXT = "yes"
_LEVELS = 8
_OPTIONAL_LEVELS = 2
"""How far down optional fields are named: in the answer itself and in the
objects directly in it.
"""
_ITEMS = 20
_VALUES, _STEPS = 200, 5_000
"""Most values in an example, and most steps to see whether it fits."""


def example_value(schema: dict[str, JsonValue] | None) -> JsonValue:
    """Return a value that fits the schema, or the word VALUE where none is found,
    such as for a `pattern`.

    It is found each time that a board is drawn, so little may be tried.
    """
    return _example(schema, 0)


def full_example(schema: dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Return an object that fits the schema and has optional fields too, in the schema's order; an
    empty one if the schema has none, or is of no object, or such a value is not found.
    """
    if schema is None:
        return {}
    resolved = resolve(schema, definitions(schema))
    if resolved.get("type") != "object":
        return {}
    full = _example(schema, _OPTIONAL_LEVELS)
    if not isinstance(full, dict) or full == example_value(schema):
        return {}
    return full


def _example(schema: dict[str, JsonValue] | None, optional: int) -> JsonValue:
    room = iter(range(_VALUES))
    try:
        value: JsonValue = _value(schema or {}, definitions(schema), 0, room, optional)
    except StopIteration:
        return PLACEHOLDER
    if not _fits(value, schema or {}):
        return PLACEHOLDER
    return value


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    return next(violations(value, schema, steps=_STEPS), None) is None


def _value(
    schema: Any, defs: dict[str, Any], level: int, room: Iterator[int], optional: int
) -> Any:
    """Return a value, whose first levels have `optional` fields. Raises StopIteration when there
    is no room for one more.
    """
    next(room)
    schema = resolve(schema, defs)
    for keyword in ("enum", "examples"):
        values = schema.get(keyword)
        if isinstance(values, list) and values:
            return values[0]
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]

    # Below the deepest level, objects and arrays are empty, and choices are not followed.
    is_deepest = level >= _LEVELS
    choices = choices_of(schema) or schema.get("allOf")
    if isinstance(choices, list) and choices and not is_deepest:
        return _value(choices[0], defs, level + 1, room, optional)
    kind = schema.get("type", "string")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    if kind == "array":
        items = schema.get("items", {})
        item = _value(items, defs, level + 1, room, optional)
        count = 0 if is_deepest else schema.get("minItems", 0)
        return [item] * min(count, _ITEMS)
    if kind != "object":
        return _scalar(schema, kind)

    properties = schema.get("properties", {})
    names: list[str] = []
    if level < optional:
        names += properties
    if not is_deepest:
        names += schema.get("required", [])
    fields: dict[str, Any] = {}
    for name in dict.fromkeys(names):
        of_field = properties.get(name, {})
        fields[name] = _value(of_field, defs, level + 1, room, optional)
    return fields


def _scalar(schema: dict[str, Any], kind: Any) -> Any:
    match kind:
        case "integer":
            return _number(schema, 1)
        case "number":
            return _number(schema, 1.5)
        case "boolean":
            return True
        case "null":
            return None
    return _text(schema)


def _number(schema: dict[str, Any], usual: float) -> float:
    """Return the usual number, or one at the schema's bounds."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    if high is None:
        high = schema.get("exclusiveMaximum")
    candidates = [usual]
    if low is not None:
        candidates += [ceil(low), floor(low) + 1]
    if high is not None:
        candidates += [floor(high), ceil(high) - 1]
    if low is not None and high is not None:
        candidates.append((low + high) / 2)
    for candidate in candidates:
        if _fits(candidate, schema):
            return candidate
    return usual


def _text(schema: dict[str, Any]) -> str:
    least = schema.get("minLength", 0)
    most = schema.get("maxLength", len(_TEXT))
    text = _TEXT.ljust(min(least, 1_000), ".")
    return text[: max(most, least)]
