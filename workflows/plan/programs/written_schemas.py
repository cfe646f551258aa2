"""What a script gives as `schema=`: a type, a dict of types, or a JSON schema."""

import ast
from collections.abc import Mapping
from typing import Any

from sennit.workflows.plan.language.schema_keywords import KEYWORDS, TYPES

_CHOICES = ("anyOf", "oneOf", "allOf")
_BOUNDS = (
    "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum",
)  # fmt: skip


def is_json_schema(written: Any) -> bool:
    """Whether an object is a JSON schema, and no dict of types: it says the `type` of its
    values as JSON schemas do, or has their keywords alone, and one of them in the form that
    only a JSON schema gives it.

    So `{"title": "str", "items": "list[str]"}` is a dict of types, and `{"items": {"enum":
    [1, 2]}}` a JSON schema.
    """
    if not isinstance(written, Mapping):
        return False
    kind = written.get("type")
    if isinstance(kind, str) and kind in TYPES:
        return True
    # A list with a name that is none is most likely meant as one: it is refused by its name,
    # and not read as choices.
    if isinstance(kind, list) and _has_type(kind):
        return True
    has_other_names = not all(name in KEYWORDS for name in written)
    if has_other_names:
        return False
    return any(_is_of_schema(name, part) for name, part in written.items())


def _has_type(names: list[Any]) -> bool:
    """Whether one of several values is the name that JSON schemas have for a type."""
    texts = [name for name in names if isinstance(name, str)]
    return any(text in TYPES for text in texts)


def _is_of_schema(name: str, part: Any) -> bool:
    """Whether a field of that name can only be a keyword of a JSON schema."""
    if name == "enum":
        return isinstance(part, list)
    if name == "const":
        return True
    if name == "$ref":
        return isinstance(part, str) and part.startswith("#")
    if name in _CHOICES:
        if not isinstance(part, list):
            return False
        return any(isinstance(choice, Mapping) for choice in part)
    if name in _BOUNDS:
        return isinstance(part, int | float)
    if name == "items":
        return is_json_schema(part)
    if name in ("properties", "$defs"):
        if not isinstance(part, Mapping) or not part:
            return False
        return all(is_json_schema(schema) for schema in part.values())
    return False


def has_constant_keys(written: ast.Dict) -> bool:
    """Whether the keys of a dict are constants, and it takes up no other
    dict, as `{**fields}` does.
    """
    return all(isinstance(key, ast.Constant) for key in written.keys)


def written_value(node: ast.expr) -> Any:
    """Return what an expression gives as far as it is written as it is: a type is its text,
    as it is for a worker.
    """
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.List(items) | ast.Tuple(items):
            return [written_value(item) for item in items]
        case ast.Dict(keys, values) if has_constant_keys(node):
            fields: dict[Any, Any] = {}
            for key, part in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant):
                    fields[key.value] = written_value(part)
            return fields
    return ast.unparse(node)
