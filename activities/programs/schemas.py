"""From the types that a script writes to JSON schemas: `list[str]`, `int | None`, `{"good": bool}`, a dataclass.

A type arrives as Monty writes it, as text; a dict or a list of types as one.
"""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from workflows.plan.checking.schemas import unknown_keywords
from workflows.plan.language.json_schema import TYPES
from workflows.plan.language.problems import Problem

Schema = dict[str, Any]

_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "NoneType": {"type": "null"},
    "list": {"type": "array"},
    "tuple": {"type": "array"},
    "set": {"type": "array"},
    "dict": {"type": "object"},
    "object": {},
    "Any": {},
}
_LISTS = ("list", "tuple", "set", "frozenset", "List", "Sequence")
_OBJECTS = ("dict", "Dict", "Mapping")


def schema_of(written: Any, script: str) -> Schema:
    """Return the JSON schema of a type; an object that is one already is left as it is. Raises ValueError."""
    if isinstance(written, dict) and isinstance(kind := written.get("type"), str) and kind in TYPES:
        for where, sentence in unknown_keywords(written):
            raise ValueError(f"schema {Problem('schema', where, sentence)}")
        return written
    return _of(written, script, ())


def _of(written: Any, script: str, inside: tuple[str, ...]) -> Schema:
    if written is None:
        return {"type": "null"}
    if isinstance(written, dict):
        return _object({name: _of(part, script, inside) for name, part in written.items()})
    if isinstance(written, list):
        return _list(written, [_of(part, script, inside) for part in written] if len(written) == 1 else [])
    text = _CLASS.sub(r"\1", written if isinstance(written, str) else str(written))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"schema {text[:80]!r} is no type; write one such as list[str]") from None
    return _Reader(script, inside).read(tree)


def _object(properties: Mapping[str, Schema], required: list[str] | None = None) -> Schema:
    wanted = list(properties) if required is None else required
    return {"type": "object", "properties": dict(properties), "required": wanted, "additionalProperties": False}


def _list(values: list[Any], items: list[Schema]) -> Schema:
    if items:
        return {"type": "array", "items": items[0]}
    if not values or not all(isinstance(value, str | int | float | None) for value in values):
        raise ValueError(f"schema {values!r:.80}: a list has one type, such as [str], or the values to choose from")
    return {"enum": values}


class _Reader:
    """Reads one type. `inside` are the classes that it is a part of."""

    def __init__(self, script: str, inside: tuple[str, ...]) -> None:
        self._script = script
        self._inside = inside

    def read(self, tree: ast.expr) -> Schema:
        match tree:
            case ast.Name(name) | ast.Attribute(attr=name):
                return _PLAIN[name] if name in _PLAIN else self._class(name)
            case ast.Constant(None):
                return {"type": "null"}
            case ast.Constant(str(text)):
                return _of(text, self._script, self._inside)
            case ast.BinOp(left, ast.BitOr(), right):
                return _either(self.read(left), self.read(right))
            case ast.Subscript(ast.Name(name) | ast.Attribute(attr=name), of):
                return self._generic(name, of.elts if isinstance(of, ast.Tuple) else [of])
            case ast.Dict(keys, values) if all(isinstance(key, ast.Constant) for key in keys):
                names = [str(key.value) for key in keys if isinstance(key, ast.Constant)]
                return _object(dict(zip(names, map(self.read, values), strict=True)))
            case ast.List([one]) if not isinstance(one, ast.Constant):
                return {"type": "array", "items": self.read(one)}
        raise ValueError(f"schema {ast.unparse(tree)[:80]!r} is no type that a model can answer with")

    def _generic(self, name: str, parts: list[ast.expr]) -> Schema:
        if name in _LISTS:
            return {"type": "array", "items": self.read(parts[0])}
        if name in _OBJECTS and len(parts) == 2:
            return {"type": "object", "additionalProperties": self.read(parts[1])}
        if name == "Optional":
            return _either(self.read(parts[0]), {"type": "null"})
        if name == "Union":
            return _either(*map(self.read, parts))
        if name == "Literal":
            return {"enum": [ast.literal_eval(part) for part in parts]}
        raise ValueError(f"schema: {name}[...] is no type that a model can answer with; write list, dict or a union")

    def _class(self, name: str) -> Schema:
        fields = _classes(self._script).get(name)
        if fields is None or name in self._inside:
            why = "contains itself" if fields is not None else "is no type"
            raise ValueError(f"schema: {name} {why}; write str, int, list[...], a dict of types or a dataclass")
        reader = _Reader(self._script, (*self._inside, name))
        properties = {field: reader.read(annotation) for field, annotation, _ in fields}
        return _object(properties, [field for field, _, is_optional in fields if not is_optional])


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": [part for schema in schemas for part in schema.get("anyOf", [schema])]}


@lru_cache(maxsize=16)
def _classes(script: str) -> dict[str, list[tuple[str, ast.expr, bool]]]:
    """Return the fields of a script's classes: name, type, whether there is a default."""
    classes = [node for node in ast.parse(script).body if isinstance(node, ast.ClassDef)]
    return {
        found.name: [
            (field.target.id, field.annotation, field.value is not None)
            for field in found.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        ]
        for found in classes
    }
