"""The part of JSON Schema that plans use: checks values that may still hold references.

Knows type, enum, const, anyOf, oneOf, allOf, $ref into $defs, properties, required, additionalProperties, items,
minItems, maxItems, minLength, maxLength, pattern, minimum, maximum and their exclusive forms.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from workflows.plan.problems import Where

Schema = dict[str, Any]
Fault = tuple[Where, str]
OnText = Callable[[Where, str, Schema], Iterator[Fault] | None]

_SHAPES = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "properties", "required")
_BOUNDS = ("additionalProperties", "items", "minItems", "maxItems", "minLength", "maxLength", "pattern")
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NOTES = ("title", "description", "default", "examples", "format")
KEYWORDS = frozenset((*_SHAPES, *_BOUNDS, *_RANGES, *_NOTES))
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _no_text(_where: Where, _text: str, _schema: Schema) -> None:
    return None


def unknown_keywords(schema: Any, where: Where = ()) -> Iterator[Fault]:
    """Yield each keyword that `faults` would pass over, so that none is silently ignored."""
    if not isinstance(schema, dict):
        yield where, "a schema is an object"
        return
    for name in schema:
        if name not in KEYWORDS:
            yield (*where, name), f"schema keyword `{name}` is not supported"
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            yield (*where, "type"), f"unknown type {kind!r}"
    for name, part in (schema.get("properties") or {}).items():
        yield from unknown_keywords(part, (*where, "properties", name))
    if isinstance(schema.get("items"), dict):
        yield from unknown_keywords(schema["items"], (*where, "items"))


def faults(value: Any, schema: Schema, where: Where = (), *, on_text: OnText = _no_text) -> Iterator[Fault]:
    """Yield (path, sentence) for everything in `value` that breaks `schema`.

    `on_text` may take over a string: it returns an iterator when the string holds references, else None.
    """
    yield from _faults(value, schema, schema.get("$defs") or {}, where, on_text)


def _faults(value: Any, schema: Schema, defs: dict[str, Any], where: Where, on_text: OnText) -> Iterator[Fault]:
    schema = resolve(schema, defs)
    taken = on_text(where, value, schema) if isinstance(value, str) else None
    if taken is not None:
        yield from taken
        return
    for part in schema.get("allOf", ()):
        yield from _faults(value, part, defs, where, on_text)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        tried = [list(_faults(value, choice, defs, where, on_text)) for choice in choices]
        if all(tried):
            yield min(tried, key=len)[0]
        return
    wrong = _wrong_type(value, schema)
    if wrong:
        yield where, wrong
        return
    yield from ((where, sentence) for sentence in _limits(value, schema))
    if isinstance(value, dict):
        yield from _object(value, schema, defs, where, on_text)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _faults(item, schema["items"], defs, (*where, index), on_text)


def resolve(schema: Schema, defs: dict[str, Any]) -> Schema:
    """Follow `$ref` into `$defs`, a bounded number of times."""
    for _ in range(16):
        name = schema.get("$ref")
        if not isinstance(name, str):
            break
        schema = defs.get(name.rpartition("/")[2], {})
    return schema


def types_of(schema: Schema, defs: dict[str, Any]) -> frozenset[str]:
    """Return the JSON types a schema allows; empty when it says nothing."""
    schema = resolve(schema, defs)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        parts = [types_of(choice, defs) for choice in choices]
        return frozenset().union(*parts) if all(parts) else frozenset()
    kinds = schema.get("type", [])
    return frozenset(kinds if isinstance(kinds, list) else [kinds])


def _wrong_type(value: Any, schema: Schema) -> str | None:
    if "const" in schema and value != schema["const"]:
        return f"must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"must be one of {', '.join(map(repr, schema['enum']))}"
    kinds = schema.get("type")
    if not kinds:
        return None
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if any(_is(value, kind) for kind in kinds):
        return None
    return f"must be {' or '.join(kinds)}, not {value!r:.60}"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _limits(value: Any, schema: Schema) -> Iterator[str]:
    if isinstance(value, str | list):
        low, high = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        unit = "characters" if isinstance(value, str) else "items"
        if len(value) < schema.get(low, 0):
            yield f"has {len(value)} {unit}; at least {schema[low]}"
        if high in schema and len(value) > schema[high]:
            yield f"has {len(value)} {unit}; at most {schema[high]}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{value!r:.60} does not match {schema['pattern']}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _range(value, schema)


def _range(value: float, schema: Schema) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"is {value}; at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"is {value}; at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"is {value}; must be above {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"is {value}; must be below {schema['exclusiveMaximum']}"


def _object(
    value: dict[str, Any], schema: Schema, defs: dict[str, Any], where: Where, on_text: OnText
) -> Iterator[Fault]:
    properties = schema.get("properties") or {}
    for name in schema.get("required", ()):
        if name not in value:
            yield where, f"`{name}` is missing"
    extra = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            yield from _faults(item, properties[name], defs, (*where, name), on_text)
        elif extra is False:
            known = ", ".join(properties) or "none"
            yield (*where, name), f"`{name}` is unknown; known: {known}"
        elif isinstance(extra, dict):
            yield from _faults(item, extra, defs, (*where, name), on_text)
