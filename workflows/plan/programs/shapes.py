"""The fields of a script's values, where the script says them: by the schema of a call, or of a tool's result."""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sennit.workflows.plan.language.json_schema import definitions, resolve
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.programs.classes import is_dataclass
from sennit.workflows.plan.programs.source import Function, Source, within
from sennit.workflows.plan.programs.written_schemas import is_json_schema, written_value

Shape = Mapping[str, Any]
_LEVELS = 40
_ENDS: Shape = {
    "type": "array",
    "items": {"properties": {"status": {}, "value": {}, "error": {}}, "additionalProperties": False},
}
_LEFT: Shape = {"properties": {"tokens": {}, "calls": {}, "cost_usd": {}}, "additionalProperties": False}
_LOAD: Shape = {"properties": {"running": {}, "backlog": {}}, "additionalProperties": False}
_OF_WORDS = {"settled": _ENDS, "budget_left": _LEFT, "load": _LOAD}
_TEXT: Shape = {"type": "string"}
_NOTHING: Shape = {"type": "null"}
_CHANGES = ("update", "setdefault", "append", "extend", "insert")


class Shapes:
    """Knows the fields of values that nothing in the script changes."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self._known: dict[ast.AST, Shape | None] = {}

    def unknown_field(self, node: ast.Subscript | ast.Attribute) -> Iterator[tuple[bool, str]]:
        """Yield whether it is certain, and the sentence, for a field that a value does not have."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
        if not isinstance(name, str) or not isinstance(node.ctx, ast.Load):
            return
        shape, value = self.of(node.value), f"{ast.unparse(node.value):.40}"
        fields = shape.get("properties") if shape is not None else None
        is_of_text = shape is _TEXT and isinstance(node, ast.Attribute) and hasattr("", name)
        if (shape is _TEXT or shape is _NOTHING) and not is_of_text:
            what = "text: give the call a `schema` to get fields" if shape is _TEXT else "None: nothing is returned"
            yield True, f"`{value}` is {what}"
        elif shape is None or not isinstance(fields, Mapping):
            return
        elif isinstance(node, ast.Attribute) and not shape.get("class"):
            around = self.source.parents[node]
            is_called = isinstance(around, ast.Call) and around.func is node
            if name in fields and not (is_called and hasattr({}, name)):
                yield True, f"`{value}` is a dict: write `{value}[{name!r}]`"
            elif name in shape.get("methods", ()):
                yield True, f"`{value}` is a dict, without methods: tickets and tasks have instances as dicts"
        elif name not in fields and not self._is_method(node, name, shape):
            is_certain = shape.get("additionalProperties") is False
            yield is_certain, f"`{value}` has no {format_name(name)}{nearest_or_known(name, list(fields))}"

    @staticmethod
    def _is_method(node: ast.Subscript | ast.Attribute, name: str, shape: Shape) -> bool:
        return isinstance(node, ast.Attribute) and (name in shape.get("methods", ()) or name.startswith("_"))

    def of(self, node: ast.AST, level: int = 0) -> Shape | None:
        """Return the schema of what an expression gives, None if nothing says it."""
        if level > _LEVELS:
            return None
        if node not in self._known:
            self._known[node] = None
            self._known[node] = self._of(node, level + 1)
        return self._known[node]

    def _of(self, node: ast.AST, level: int) -> Shape | None:
        match node:
            case ast.Await(value=ast.Call(func=ast.Name() as function) as call) if (
                self.source.meaning(function) is None
            ):
                return self._called(function.id, call, level)
            case ast.Await(value=ast.Call(func=ast.Name() as function)):
                return self._returned(self.source.meaning(function), ast.AsyncFunctionDef, level)
            case ast.Await(value=ast.Name() as name):
                return self._ticket(self.source.assigned(name), level)
            case ast.Call(func=ast.Name() as function):
                return self._returned(self.source.meaning(function), ast.FunctionDef, level)
            case ast.Name():
                return self._named(node, level)
            case ast.Subscript(value=value, slice=ast.Constant(value=key)):
                return self._part(self.of(value, level), key)
        return None

    def _returned(self, function: ast.AST | None, kind: type[Function], level: int) -> Shape | None:
        """Return the schema of what a function of the script returns, if it does so in one place or nowhere, or else if
        it says so.
        """
        if isinstance(function, ast.ClassDef):
            return _of_class(function) if kind is ast.FunctionDef and is_dataclass(function) else None
        if not isinstance(function, kind) or function in self.source.again or function.decorator_list:
            return None
        parts = [part for statement in function.body for part in within(statement)]
        returns = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts):
            return None
        if not returns:
            return None if any(isinstance(part, ast.Raise) for part in parts) else _NOTHING
        is_only = len(returns) == 1 and isinstance(function.body[-1], ast.Return)
        found = self.of(returns[0], level) if is_only else None
        said = self._typed(function.returns) if found is None and function.returns is not None else None
        return found or (said if said is not None and said.get("class") else None)

    def _ticket(self, call: ast.AST, level: int) -> Shape | None:
        """Return the schema of what a ticket gives."""
        is_task = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "task"
        if not (is_task and isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name)):
            return None
        function = self.source.meaning(call.args[0])
        if function is None:
            return _as_dict(self._called(call.args[0].id, call, level))
        return _as_dict(self._returned(function, ast.AsyncFunctionDef, level))

    def _called(self, name: str, call: ast.Call, level: int) -> Shape | None:
        if name in _OF_WORDS:
            return _OF_WORDS[name]
        if name == "task":
            return self._ticket(call, level)
        if name in ("parallel", "first") and call.args:
            tickets = self.source.assigned(call.args[0])
            one = tickets.elt if isinstance(tickets, ast.ListComp) else next(iter(getattr(tickets, "elts", [])), None)
            is_same = isinstance(tickets, ast.ListComp) or len(getattr(tickets, "elts", [])) == 1
            found = self._ticket(one, level) if one is not None and is_same else None
            return found if name == "first" or found is None else {"type": "array", "items": found}
        if name in ("llm", "ask"):
            schema = next((each.value for each in call.keywords if each.arg in ("schema", None)), None)
            return self._typed(schema) if schema is not None else _TEXT if name == "llm" else None
        entry = self.tools.get(name) if isinstance(self.tools, Mapping) else None
        output = entry.get("output_schema") if isinstance(entry, Mapping) and not entry.get("large") else None
        return {"$defs": definitions(output), **resolve(output, definitions(output))} if output else None

    def _part(self, shape: Shape | None, key: Any) -> Shape | None:
        if shape is None:
            return None
        found = shape.get("items") if isinstance(key, int) else (shape.get("properties") or {}).get(key)
        defs = shape.get("$defs") or {}
        return {"$defs": defs, **resolve(found, defs)} if isinstance(found, Mapping) and found else None

    def _named(self, name: ast.Name, level: int) -> Shape | None:
        meaning = self.source.meaning(name)
        around = self.source.parents.get(meaning) if meaning is not None else None
        if meaning is None or meaning in self.source.again or self._is_changed(name):
            return None
        if isinstance(around, ast.Assign) and around.targets == [meaning]:
            return self.of(around.value, level)
        if isinstance(around, ast.For | ast.comprehension) and around.target is meaning:
            return self._part(self.of(around.iter, level), 0)
        if isinstance(meaning, ast.arg) and meaning.annotation is not None:
            is_given = self.source.is_session(self.source.function(name))
            found = self._typed(meaning.annotation) if is_given else None
            return _as_dict(found) if found is not None and found.get("class") else None
        return None

    def _is_changed(self, name: ast.Name) -> bool:
        """Whether the script may give the value more fields."""
        for use in self.source.uses.get(name.id, ()):
            around = self.source.parents[use]
            if isinstance(around, ast.Subscript | ast.Attribute) and not isinstance(around.ctx, ast.Load):
                return True
            if isinstance(around, ast.Attribute) and around.attr in _CHANGES:
                return True
        return False

    def _typed(self, written: ast.expr) -> Shape | None:
        """Return the schema that a type in the script stands for, as far as fields go."""
        match written:
            case ast.Name():
                meaning = self.source.meaning(written)
                if isinstance(meaning, ast.ClassDef):
                    return _of_class(meaning)
                around = self.source.parents.get(meaning) if meaning is not None else None
                is_only = meaning not in self.source.again and isinstance(around, ast.Assign)
                return self._typed(around.value) if is_only and isinstance(around, ast.Assign) else None
            case ast.Dict(keys=keys) if all(isinstance(key, ast.Constant) for key in keys):
                return self._of_dict(written)
            case ast.List(elts=[one]) | ast.Subscript(value=ast.Name(id="list"), slice=one):
                return {"type": "array", "items": self._typed(one) or {}}
        return None

    def _of_dict(self, written: ast.Dict) -> Shape | None:
        names = [key.value for key in written.keys if isinstance(key, ast.Constant)]
        parts = dict(zip(names, written.values, strict=True))
        if is_json_schema(written_value(written)):
            try:
                schema: Shape = ast.literal_eval(written)
                return schema
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return None
        fields = {name: self._typed(value) or {} for name, value in parts.items()}
        return {"properties": fields, "additionalProperties": False}


def _as_dict(shape: Shape | None) -> Shape | None:
    """Return the schema of what is left of a value outside of its session: an instance of a class is a dict."""
    if shape is None or not (shape.get("class") or shape.get("items")):
        return shape
    if shape.get("class"):
        return {name: value for name, value in shape.items() if name != "class"}
    return {**shape, "items": _as_dict(shape["items"])}


def _of_class(written: ast.ClassDef) -> Shape | None:
    """Return the fields of a class; those of its bases are not known."""
    if any(not (isinstance(base, ast.Name) and base.id == "TypedDict") for base in written.bases):
        return None
    fields: dict[str, Any] = {
        each.target.id: {}
        for each in written.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    names = [getattr(each, "name", "") for each in written.body]
    names += [
        target.id
        for each in written.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    ]
    if not fields:
        return None
    shape: Shape = {"properties": fields, "additionalProperties": False}
    return shape if written.bases else {**shape, "class": True, "methods": names}
