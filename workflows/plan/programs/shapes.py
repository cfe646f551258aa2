"""The fields of a script's values, where the script says them: by the schema of a call,
or of a tool's result.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sennit.workflows.plan.language.json_schema import definitions, resolve
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.programs.classes import is_dataclass
from sennit.workflows.plan.programs.source import Function, Source, within
from sennit.workflows.plan.programs.written_schemas import (
    has_constant_keys,
    is_json_schema,
    written_value,
)

Shape = Mapping[str, Any]
"""A JSON schema, as far as fields go. That of an instance has two more keys:
`class` and `methods`.
"""
_LEVELS = 40
"""So many expressions are followed, from a value to where it comes from."""
_SHOWN_LETTERS = 40
"""A sentence shows so much of a long expression."""
_ENDS: Shape = {
    "type": "array",
    "items": {
        "properties": {"status": {}, "value": {}, "error": {}},
        "additionalProperties": False,
    },
}
_LEFT: Shape = {
    "properties": {"tokens": {}, "calls": {}, "cost_usd": {}},
    "additionalProperties": False,
}
_LOAD: Shape = {"properties": {"running": {}, "backlog": {}}, "additionalProperties": False}
_OF_WORDS = {"settled": _ENDS, "budget_left": _LEFT, "load": _LOAD}
"""The shapes of what words give, whatever their arguments are."""
_TEXT: Shape = {"type": "string"}
_NOTHING: Shape = {"type": "null"}
_CHANGES = ("update", "setdefault", "append", "extend", "insert")
"""Methods that give a dict or a list more fields or items."""


class Shapes:
    """Knows the fields of values that nothing in the script changes."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self._known: dict[ast.AST, Shape | None] = {}

    # Fields that a script reads.

    def unknown_field(self, node: ast.Subscript | ast.Attribute) -> Iterator[tuple[bool, str]]:
        """Yield whether it is certain, and the sentence, for a field that a value does not have."""
        name = _field_read(node)
        shape = self.of(node.value) if name is not None else None
        if name is None or shape is None:
            return
        shown = ast.unparse(node.value)[:_SHOWN_LETTERS]

        # Text and None have no fields, but text has its methods.
        if shape is _TEXT:
            is_method = isinstance(node, ast.Attribute) and hasattr("", name)
            if not is_method:
                yield True, f"`{shown}` is text: give the call a `schema` to get fields"
            return
        if shape is _NOTHING:
            yield True, f"`{shown}` is None: nothing is returned"
            return

        fields = shape.get("properties")
        if not isinstance(fields, Mapping):
            return
        is_instance = bool(shape.get("class"))
        if isinstance(node, ast.Attribute) and not is_instance:
            yield from self._attribute_of_dict(node, shape, shown)
        elif name not in fields and not _is_method(node, name, shape):
            is_certain = shape.get("additionalProperties") is False
            hint = nearest_or_known(name, list(fields))
            yield is_certain, f"`{shown}` has no {format_name(name)}{hint}"

    def _attribute_of_dict(
        self, node: ast.Attribute, shape: Shape, shown: str
    ) -> Iterator[tuple[bool, str]]:
        """Yield the sentence for `value.field` where the value is a dict. It has the field, or was
        an instance that had the method.
        """
        around = self.source.parents[node]
        is_called = isinstance(around, ast.Call) and around.func is node
        # A dict may have a field `items`: `value.items()` is the method nevertheless.
        is_method_of_dict = is_called and hasattr({}, node.attr)
        if node.attr in shape["properties"] and not is_method_of_dict:
            yield True, f"`{shown}` is a dict: write `{shown}[{node.attr!r}]`"
        elif node.attr in shape.get("methods", ()):
            yield (
                True,
                f"`{shown}` is a dict, without methods: tickets and tasks have instances as dicts",
            )

    # The shapes of expressions.

    def of(self, node: ast.AST, level: int = 0) -> Shape | None:
        """Return the schema of what an expression gives, None if nothing says it."""
        if level > _LEVELS:
            return None
        if node not in self._known:
            # A value may come from itself, as in `x = x["next"]`: then its shape is not known.
            self._known[node] = None
            self._known[node] = self._of(node, level + 1)
        return self._known[node]

    def _of(self, node: ast.AST, level: int) -> Shape | None:
        match node:
            case ast.Await(value=ast.Call(func=ast.Name() as function) as call):
                meaning = self.source.meaning(function)
                if meaning is None:
                    return self._called(function.id, call, level)
                return self._returned(meaning, ast.AsyncFunctionDef, level)
            case ast.Await(value=ast.Name() as name):
                return self._ticket(self.source.assigned(name), level)
            case ast.Call(func=ast.Name() as function):
                meaning = self.source.meaning(function)
                return self._returned(meaning, ast.FunctionDef, level)
            case ast.Name():
                return self._named(node, level)
            case ast.Subscript(value=value, slice=ast.Constant(value=key)):
                return _part(self.of(value, level), key)
        return None

    def _named(self, name: ast.Name, level: int) -> Shape | None:
        """Return the schema of what a name stands for, if it is bound once and
        its value is not changed.
        """
        bound = self.source.meaning(name)
        if bound is None or bound in self.source.again:
            return None
        if self._is_changed(name):
            return None
        around = self.source.parents.get(bound)
        if isinstance(around, ast.Assign) and around.targets == [bound]:
            return self.of(around.value, level)
        if isinstance(around, ast.For | ast.comprehension) and around.target is bound:
            return _part(self.of(around.iter, level), 0)
        if isinstance(bound, ast.arg):
            return self._parameter(bound, self.source.function(name))
        return None

    def _parameter(self, parameter: ast.arg, function: ast.AST) -> Shape | None:
        """Return the schema of an argument that `main` or a task gets as an instance:
        a dict when it arrives.
        """
        if parameter.annotation is None or not self.source.is_session(function):
            return None
        shape = self._typed(parameter.annotation)
        if shape is None or not shape.get("class"):
            return None
        return _as_dict(shape)

    def _is_changed(self, name: ast.Name) -> bool:
        """Whether the script may give the value more fields."""
        for use in self.source.uses.get(name.id, ()):
            around = self.source.parents[use]
            if not isinstance(around, ast.Subscript | ast.Attribute):
                continue
            is_read = isinstance(around.ctx, ast.Load)
            if not is_read:
                return True
            if isinstance(around, ast.Attribute) and around.attr in _CHANGES:
                return True
        return False

    # The shapes of what calls give.

    def _returned(self, function: ast.AST | None, kind: type[Function], level: int) -> Shape | None:
        """Return the schema of what a function of the script returns, if it does so in one place or
        nowhere, or else if it says so.
        """
        if isinstance(function, ast.ClassDef):
            is_plain_call = kind is ast.FunctionDef
            if is_plain_call and is_dataclass(function):
                return _of_class(function)
            return None
        if (
            not isinstance(function, kind)
            or function in self.source.again
            or function.decorator_list
        ):
            return None

        return self._of_function(function, level)

    def _of_function(self, function: Function, level: int) -> Shape | None:
        # A generator gives something else, and a function that only raises gives nothing.
        parts: list[ast.AST] = []
        for statement in function.body:
            parts += within(statement)
        returned: list[ast.expr] = []
        may_raise = False
        for part in parts:
            if isinstance(part, ast.Yield | ast.YieldFrom):
                return None
            if isinstance(part, ast.Raise):
                may_raise = True
            if isinstance(part, ast.Return) and part.value is not None:
                returned.append(part.value)
        if not returned:
            return None if may_raise else _NOTHING

        # The only value that a function returns says more than the type that is written for it.
        if len(returned) == 1 and isinstance(function.body[-1], ast.Return):
            shape = self.of(returned[0], level)
            if shape is not None:
                return shape
        if function.returns is not None:
            shape = self._typed(function.returns)
            if shape is not None and shape.get("class"):
                return shape
        return None

    def _ticket(self, call: ast.AST, level: int) -> Shape | None:
        """Return the schema of what a ticket gives."""
        match call:
            case ast.Call(func=ast.Name(id="task"), args=[ast.Name() as started, *_]):
                function = self.source.meaning(started)
                if function is None:
                    return _as_dict(self._called(started.id, call, level))
                return _as_dict(self._returned(function, ast.AsyncFunctionDef, level))
        return None

    def _called(self, name: str, call: ast.Call, level: int) -> Shape | None:
        """Return the schema of what a word or a tool gives."""
        if name in _OF_WORDS:
            return _OF_WORDS[name]
        if name == "task":
            return self._ticket(call, level)
        if name in ("parallel", "first") and call.args:
            one = self._one_of(call.args[0], level)
            if one is None or name == "first":
                return one
            return {"type": "array", "items": one}
        if name in ("llm", "ask"):
            return self._answered(name, call)
        return self._of_tool(name)

    def _one_of(self, tickets: ast.expr, level: int) -> Shape | None:
        """Return the schema of what each ticket of a list gives, if one call in the
        script starts all of them.
        """
        written = self.source.assigned(tickets)
        if isinstance(written, ast.ListComp):
            return self._ticket(written.elt, level)
        items = getattr(written, "elts", [])
        if len(items) == 1:
            return self._ticket(items[0], level)
        return None

    def _answered(self, word: str, call: ast.Call) -> Shape | None:
        """Return the schema of the answer of a model or a person."""
        for keyword in call.keywords:
            # A keyword without a name is `**settings`, which may hold the schema:
            # its type is not known.
            if keyword.arg is None or keyword.arg == "schema":
                return self._typed(keyword.value)
        return _TEXT if word == "llm" else None

    def _of_tool(self, name: str) -> Shape | None:
        if not isinstance(self.tools, Mapping):
            return None
        entry = self.tools.get(name)
        # The script has only a reference to a large result.
        if not isinstance(entry, Mapping) or entry.get("large"):
            return None
        output = entry.get("output_schema")
        if not output:
            return None
        defs = definitions(output)
        return {"$defs": defs, **resolve(output, defs)}

    # The shapes of types.

    def _typed(self, written: ast.expr) -> Shape | None:
        """Return the schema that a type in the script stands for, as far as fields go."""
        match written:
            case ast.Name():
                return self._named_type(written)
            case ast.Dict() if has_constant_keys(written):
                return self._of_dict(written)
            case ast.List(elts=[one]) | ast.Subscript(value=ast.Name(id="list"), slice=one):
                return {"type": "array", "items": self._typed(one) or {}}
        return None

    def _named_type(self, name: ast.Name) -> Shape | None:
        meaning = self.source.meaning(name)
        if isinstance(meaning, ast.ClassDef):
            return _of_class(meaning)
        if meaning is None or meaning in self.source.again:
            return None
        around = self.source.parents.get(meaning)
        if isinstance(around, ast.Assign):
            return self._typed(around.value)
        return None

    def _of_dict(self, written: ast.Dict) -> Shape | None:
        """Return the schema that a dict stands for: it is a JSON schema, or each of
        its fields has a type.
        """
        if is_json_schema(written_value(written)):
            try:
                schema: Shape = ast.literal_eval(written)
                return schema
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return None  # a part of it has a name: only the run knows it
        fields: dict[Any, Shape] = {}
        for key, value in zip(written.keys, written.values, strict=True):
            if isinstance(key, ast.Constant):
                fields[key.value] = self._typed(value) or {}
        return {"properties": fields, "additionalProperties": False}


def _field_read(node: ast.Subscript | ast.Attribute) -> str | None:
    """Return the name of the field that a script reads, None where it writes one or
    the name is not known.
    """
    if not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return None


def _is_method(node: ast.Subscript | ast.Attribute, name: str, shape: Shape) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    return name in shape.get("methods", ()) or name.startswith("_")


def _part(shape: Shape | None, key: Any) -> Shape | None:
    """Return the schema of a field, or of an item if the key is a number."""
    if shape is None:
        return None
    if isinstance(key, int):
        part = shape.get("items")
    else:
        part = (shape.get("properties") or {}).get(key)
    if not isinstance(part, Mapping) or not part:
        return None
    # The definitions go along: an inner part may refer to them again.
    defs = shape.get("$defs") or {}
    return {"$defs": defs, **resolve(part, defs)}


def _as_dict(shape: Shape | None) -> Shape | None:
    """Return the schema of what is left of a value outside of its session: an
    instance of a class is a dict.
    """
    if shape is None:
        return None
    if shape.get("class"):
        fields = dict(shape)
        del fields["class"]
        return fields
    if shape.get("items"):
        return {**shape, "items": _as_dict(shape["items"])}
    return shape


def _of_class(written: ast.ClassDef) -> Shape | None:
    """Return the fields of a class; those of its bases are not known."""
    for base in written.bases:
        if not isinstance(base, ast.Name) or base.id != "TypedDict":
            return None

    # A name with a type is a field. Methods, inner classes and plain assignments are no
    # fields, but may be read.
    fields: dict[str, Any] = {}
    methods: list[str] = []
    constants: list[str] = []
    for statement in written.body:
        methods.append(getattr(statement, "name", ""))
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields[statement.target.id] = {}
        elif isinstance(statement, ast.Assign):
            constants += [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if not fields:
        return None

    shape: Shape = {"properties": fields, "additionalProperties": False}
    is_typed_dict = bool(written.bases)
    if is_typed_dict:
        return shape
    return {**shape, "class": True, "methods": methods + constants}
