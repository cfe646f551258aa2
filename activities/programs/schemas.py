"""From the types that a script writes to JSON schemas: `list[str]`, `int | None`,
`{"good": bool}`, a dataclass.

A type arrives as it is written, as text; a dict or a list of types as one.
"""

import ast
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sennit.activities.limits import MAX_SCHEMA_PARTS
from sennit.activities.programs.classes import Classes
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.json_schema import parts_of
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.parsing import TooLarge, expression
from sennit.workflows.plan.programs.written_schemas import is_json_schema

Schema = dict[str, Any]

_LEVELS = 60
_CHARACTERS = 100
"""Of a type: so many take as long as one part."""
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
_LISTS = ("list", "tuple", "Tuple", "set", "frozenset", "List", "Sequence")
_OBJECTS = ("dict", "Dict", "Mapping")


def schema_of(written: Any, classes: Classes) -> Schema:
    """Return the JSON schema of a type; an object that is one already is left as it is. A class
    that it names more than once is in `$defs`. Raises ValueError for a dict that is neither.
    """
    if is_json_schema(written):
        return _checked(written)
    reader = _Reader(classes)
    return reader.whole(reader.of(written))


def _checked(schema: Schema) -> Schema:
    """Return a JSON schema as it is. Raises ValueError."""
    if _is_long(schema):
        raise ValueError(f"schema has more than {MAX_SCHEMA_PARTS:,} parts; write a simpler one")
    for where, sentence in unknown_keywords(schema):
        raise ValueError(f"schema {Problem('schema', where, sentence)}")
    return schema


def _is_long(schema: Any) -> bool:
    count, pending = 0, [schema]
    while pending and count <= MAX_SCHEMA_PARTS:
        count += 1
        pending += parts_of(pending.pop())
    return count > MAX_SCHEMA_PARTS


def _object(properties: Mapping[str, Schema], required: list[str] | None = None) -> Schema:
    wanted = list(properties) if required is None else required
    return {
        "type": "object",
        "properties": dict(properties),
        "required": wanted,
        "additionalProperties": False,
    }


def _choice(values: list[Any]) -> Schema:
    """Return the schema of one of some values. Raises ValueError for a list that has none,
    or others than JSON has.
    """
    are_values = all(isinstance(value, str | int | float | None) for value in values)
    if not values or not are_values:
        raise ValueError(
            f"schema {values!r:.80}: a list has one type, such as [str], or the values to choose "
            "from"
        )
    return {"enum": values}


class _Reader:
    """Reads one type. Each class that it names is read once, however often it is named."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._left = MAX_SCHEMA_PARTS
        self._level = 0
        self._inside: list[str] = []
        self._known: dict[str, Schema] = {}
        self._uses: Counter[str] = Counter()

    def of(self, written: Any) -> Schema:
        self._take()
        if written is None:
            return {"type": "null"}
        if is_json_schema(written):
            return self._part(written)
        if isinstance(written, dict):
            properties = {name: self.of(part) for name, part in written.items()}
            return _object(properties)
        if isinstance(written, list) and len(written) == 1:
            return {"type": "array", "items": self.of(written[0])}
        if isinstance(written, list):
            return _choice(written)
        text = _CLASS.sub(r"\1", str(written))
        self._take(len(text) // _CHARACTERS)
        try:
            tree = expression(text.strip())
        except TooLarge as error:
            raise ValueError(f"schema {text[:80]!r} is too large: {error.msg}") from None
        except SyntaxError:
            raise ValueError(
                f"schema {text[:80]!r} is no type; write one such as list[str]"
            ) from None
        return self._read(tree)

    def _part(self, schema: Schema) -> Schema:
        """Return a JSON schema that stands in a dict of types. Raises ValueError."""
        if "$defs" in schema:
            raise ValueError(
                "schema: a JSON schema with `$defs` stands by itself, not in a dict of types"
            )
        return _checked(schema)

    def whole(self, schema: Schema) -> Schema:
        """Return what was read with each class in its place, or in `$defs` if it
        is named more than once.
        """
        shared = {name for name, count in self._uses.items() if count > 1}

        def placed(part: Any) -> Any:
            if isinstance(part, list):
                return [placed(item) for item in part]
            if isinstance(part, _Named) and part.name in shared:
                return {"$ref": f"#/$defs/{part.name}"}
            if isinstance(part, _Named):
                return placed(self._known[part.name])
            if isinstance(part, dict):
                return {key: placed(value) for key, value in part.items()}
            return part

        found: Schema = placed(schema)
        if shared:
            found["$defs"] = {name: placed(self._known[name]) for name in sorted(shared)}
        return found

    def _take(self, parts: int = 1) -> None:
        self._left -= parts
        if self._left < 0:
            raise ValueError(
                f"schema has more than {MAX_SCHEMA_PARTS:,} types; write a simpler one"
            )

    def _read(self, tree: ast.expr) -> Schema:
        self._take()
        self._level += 1
        if self._level > _LEVELS:
            raise ValueError(
                f"schema is nested more than {_LEVELS} levels deep; write a simpler one"
            )
        found = self._type(tree)
        self._level -= 1
        return found

    def _type(self, tree: ast.expr) -> Schema:
        if isinstance(tree, ast.Attribute):
            whole_name = ast.unparse(tree)
            if whole_name in self._classes:
                return self._class(whole_name)
        match tree:
            case ast.Name(name) | ast.Attribute(attr=name):
                if name in _PLAIN:
                    return dict(_PLAIN[name])
                return self._class(name)
            case ast.Constant(None):
                return {"type": "null"}
            case ast.Constant(str(text)):
                return self.of(text)
            case ast.BinOp(op=ast.BitOr()):
                return _either(*map(self._read, _alternatives(tree)))
            case ast.Subscript(ast.Name(name) | ast.Attribute(attr=name), of):
                parts = of.elts if isinstance(of, ast.Tuple) else [of]
                return self._generic(name, parts)
            case ast.Dict(keys, values):
                names = _names_of(keys)
                if names is not None:
                    properties = dict(zip(names, map(self._read, values), strict=True))
                    return _object(properties)
            case ast.List([one]) if not isinstance(one, ast.Constant):
                return {"type": "array", "items": self._read(one)}
        raise ValueError(
            f"schema {ast.unparse(tree)[:80]!r} is no type that a model can answer with"
        )

    def _generic(self, name: str, parts: list[ast.expr]) -> Schema:
        if name in ("tuple", "Tuple") and parts and not isinstance(parts[-1], ast.Constant):
            read = list(map(self._read, parts))
            one = read[0]
            if not all(part == one for part in read):
                one = _either(*read)
            return {"type": "array", "items": one, "minItems": len(read), "maxItems": len(read)}
        if name in _LISTS and parts:
            return {"type": "array", "items": self._read(parts[0])}
        if name in _OBJECTS and len(parts) == 2:
            return {"type": "object", "additionalProperties": self._read(parts[1])}
        if name == "Optional" and parts:
            return _either(self._read(parts[0]), {"type": "null"})
        if name == "Union" and parts:
            return _either(*map(self._read, parts))
        if name == "Literal" and parts:
            values = list(map(_literal, parts))
            return {"enum": values}
        raise ValueError(
            f"schema: {name}[...] is no type that a model can answer with; write list, dict or a "
            "union"
        )

    def _class(self, name: str) -> Schema:
        fields = self._classes.get(name)
        if fields is None or name in self._inside:
            why = "contains itself" if fields is not None else "is no type"
            raise ValueError(
                f"schema: {name} {why}; write str, int, list[...], a dict of types or a dataclass"
            )
        if len(fields) == 1:
            field, annotation, _ = fields[0]
            if field == "":  # a name for a type, or an enum
                self._inside.append(name)
                found = self.of(annotation)
                self._inside.pop()
                return found
        self._uses[name] += 1
        if name not in self._known:
            self._inside.append(name)
            properties = dict[str, Schema]()
            required = list[str]()
            for field, annotation, is_optional in fields:
                properties[field] = self.of(annotation)
                if not is_optional:
                    required.append(field)
            self._inside.pop()
            self._known[name] = _object(properties, required)
        return _Named(name)


class _Named(Schema):
    """Stands for the schema of a class."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and other.name == self.name

    __hash__ = None


def _alternatives(tree: ast.expr) -> list[ast.expr]:
    """Return the types of a union from left to right."""
    types = list[ast.expr]()
    pending = [tree]
    while pending:
        match pending.pop():
            case ast.BinOp(left, ast.BitOr(), right):
                pending += [right, left]
            case one:
                types.append(one)
    return types


def _names_of(keys: list[ast.expr | None]) -> list[str] | None:
    """Return the keys of a dict that is written, None if one of them is no constant."""
    names = list[str]()
    for key in keys:
        if not isinstance(key, ast.Constant):
            return None
        names.append(str(key.value))
    return names


def _literal(tree: ast.expr) -> Any:
    match tree:
        case ast.Constant(value):
            number: Any = value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            number = -value
        case _:
            number = ...
    if number is None or isinstance(number, str):
        return number
    # An int may be too large to be tested as a float.
    if isinstance(number, int) or (isinstance(number, float) and math.isfinite(number)):
        return number
    raise ValueError(
        f"schema: Literal[{ast.unparse(tree)[:40]}] is no JSON; write texts, numbers, true and "
        "false"
    )


def _either(*schemas: Schema) -> Schema:
    """Return the schema of a union. A union in it becomes a part of it."""
    options = list[Schema]()
    for schema in schemas:
        options += schema.get("anyOf", [schema])
    return {"anyOf": options}
