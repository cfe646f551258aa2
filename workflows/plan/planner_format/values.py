"""The values in a call's arguments: JSON, Python literals, references, expressions of
them, and single words.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from warnings import catch_warnings, simplefilter

from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import format_name, format_value
from sennit.workflows.plan.planner_format.call_text import DOLLAR, with_dollars
from sennit.workflows.plan.planner_format.json_text import Unreadable

Tools = Mapping[str, Schema]
_NODE = re.compile(r"n\d{1,9}", re.ASCII)
_CONSTANTS = {"true": True, "false": False, "null": None}
_NOT_IN_EXPRESSIONS = (
    ast.JoinedStr, ast.Lambda, ast.Starred, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp, ast.NamedExpr,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call was given, in order and by name."""

    ordered: list[Any] = field(default_factory=list)
    by_name: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a line's call is read with: `call_name` gives the known call of a name or "", `results`
    are the names that earlier lines have given their results, `resolve` writes references by line
    as references by node, `tools` are argument schemas by name, and `loose` the nodes that an
    answer takes when it names none.
    """

    call_name: Callable[[str], str]
    results: Mapping[str, int]
    resolve: Callable[[str], str]
    tools: Tools
    loose: Iterable[str]


def parse_call(python: str) -> ast.Call:
    """Return the arguments of a call as Python reads them, or as the inside of an
    object. Raises Unreadable.
    """
    try:
        return _parsed(f"f({python}\n)")
    except SyntaxError as error:
        wrong = error.msg
    try:
        return _parsed(f"f(**{{{python}\n}})")
    except SyntaxError:
        pass
    shown = format_value(" ".join(with_dollars(python).split()))
    raise Unreadable(
        f'{shown} cannot be read ({wrong}); put text in double quotes, and write \\" for a quote '
        "inside"
    )


def _parsed(text: str) -> ast.Call:
    try:
        with catch_warnings():
            simplefilter("error")  # `1or` is a warning to Python, and nothing that a model means
            call = ast.parse(text, mode="eval").body
    except (ValueError, RecursionError, MemoryError):
        raise _too_long() from None
    assert isinstance(call, ast.Call)
    return call


def arguments_of(call: ast.Call, scope: Scope, *, may_call: bool = False) -> Arguments:
    """Return the arguments of a call; a call among them, where one may be, as it
    is. Raises Unreadable.
    """
    arguments = Arguments()
    reader = _Reader(scope)

    def read(node: ast.expr) -> Any:
        if may_call and reader.called(node):
            return node
        return reader.value(node)

    try:
        arguments.ordered.extend(map(read, call.args))
        for keyword in _flat(call.keywords):
            if keyword.arg is None or keyword.arg in arguments.by_name:
                wrong = f"{format_name(keyword.arg or '**')} is given twice or as a whole"
                raise Unreadable(f"{wrong}; give each argument once")
            arguments.by_name[keyword.arg] = read(keyword.value)
    except RecursionError:
        raise _too_long() from None
    return arguments


def _too_long() -> Unreadable:
    return Unreadable("its arguments are too long or too deep; write less in one line")


def _flat(keywords: list[ast.keyword]) -> list[ast.keyword]:
    """Return keywords with the fields of `**{...}` as such."""
    flat = []
    for keyword in keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Dict):
            pairs = zip(keyword.value.keys, keyword.value.values, strict=True)
            for key, value in pairs:
                flat.append(ast.keyword(_name(key), value))
        else:
            flat.append(keyword)
    return flat


def _name(key: ast.expr | None) -> str:
    """Return a key of an object. Raises Unreadable."""
    match key:
        case ast.Constant(value):
            return str(value)
        case ast.Name(name):
            return name
    raise Unreadable("an object needs names as keys; put them in double quotes")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns what Python has read into JSON. Brackets nest at most `MAX_DEPTH` deep,
    so recursion is bounded.
    """

    scope: Scope

    def called(self, node: ast.expr) -> str:
        """Return the known tool or form that an expression calls, or ""."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            return ""
        return self.scope.call_name(ast.unparse(node.func))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression. Raises Unreadable."""
        match node:
            case ast.List(elts) | ast.Tuple(elts):
                return [self.value(item) for item in elts]
            case ast.Dict(keys, values):
                return {
                    _name(key): self.value(item) for key, item in zip(keys, values, strict=True)
                }
            case ast.Constant(str() as text):
                return self.scope.resolve(text)
            case ast.Constant(None | bool() | int() as constant):
                return constant
            case ast.Constant(float() as number) if isfinite(number):
                return number
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float())):
                return -self.value(node.operand)
            case ast.Name(name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.BinOp(op=ast.Add()) if any(map(_is_text, _added(node))):
                return self.scope.resolve(self._joined(node))
        return self.scope.resolve(self._expression(node))

    def _joined(self, node: ast.expr) -> str:
        """Return the text of a sum of texts and expressions."""
        texts: list[str] = []
        for part in _added(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                texts.append(part.value)
            else:
                texts.append(self._expression(part))
        return "".join(texts)

    def _expression(self, node: ast.expr) -> str:
        """Return the text of references, numbers and names with signs between them."""
        indices = {id(part.slice) for part in ast.walk(node) if isinstance(part, ast.Subscript)}
        for part in ast.walk(node):
            name = ""
            if isinstance(part, ast.expr):
                name = self.called(part)
            if name:
                raise Unreadable(
                    f"a call of {name} stands inside it; write that on a line above, and here $ "
                    "and its number"
                )
            if not _may_be_in_expression(part, indices):
                text = format_value(with_dollars(ast.unparse(node)))
                raise Unreadable(
                    f"{text} is no value; write a text in double quotes, with references such as "
                    "$1 in it"
                )
            if isinstance(part, ast.Name) and (
                part.id in self.scope.results or _NODE.fullmatch(part.id)
            ):
                part.id = f"{DOLLAR}{part.id}"
        return with_dollars(ast.unparse(node))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _may_be_in_expression(node: ast.AST, indices: set[int]) -> bool:
    if isinstance(node, ast.Constant):
        return _is_plain(node, indices)
    return not isinstance(node, _NOT_IN_EXPRESSIONS)


def _is_plain(node: ast.Constant, indices: set[int]) -> bool:
    """Whether a constant may stand in an expression: a number, or the name in `$1["name"]`."""
    if isinstance(node.value, float):
        return isfinite(node.value)
    if isinstance(node.value, str):
        return id(node) in indices
    return isinstance(node.value, int | None)


def _added(node: ast.expr) -> list[ast.expr]:
    """Return what a sum adds up, in order."""
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]
