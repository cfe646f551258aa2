"""What a script gives to tools and models that has no JSON."""

import ast
from collections.abc import Iterator

from sennit.workflows.plan.programs.source import Source

_WITHOUT = {
    "set": "a set has no JSON: write sorted(...) or list(...)",
    "frozenset": "a set has no JSON: write sorted(...) or list(...)",
    "range": "a range has no JSON: write list(...)",
    "task": "a ticket is no result yet: await it, or write `await parallel([...])`",
    "now": "a time has no JSON: write .isoformat()",
}
"""Calls whose results have no JSON."""


def without_json(source: Source, whole: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Yield the parts of a value that have no JSON, and what to write instead."""
    parts = [whole]
    for part in parts:  # which grows
        value = source.assigned(part)
        match value:
            case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                is_written_here = value is part
                if is_written_here:
                    parts += values
            case ast.ListComp(elt=each):
                parts.append(each)
        text = _no_json(source, value)
        if text:
            yield part, text


def _no_json(source: Source, value: ast.expr) -> str:
    """Return why a value has no JSON, and what to write; "" if it may have one."""
    if isinstance(value, ast.Name):
        return _no_json_by_name(source, value)
    match value:
        case ast.Call(func=ast.Name(id=name) as function) if (
            name in _WITHOUT and source.meaning(function) is None
        ):
            return _WITHOUT[name]
        case ast.Call(func=ast.Attribute(value=ast.Name("datetime"), attr="now")):
            return _WITHOUT["now"]
        case ast.Set() | ast.SetComp():
            return _WITHOUT["set"]
        case ast.Lambda():
            return "a function has no JSON: give what it returns"
        case ast.Constant(value=bytes()) | ast.Call(func=ast.Attribute(attr="encode")):
            return "bytes have no JSON: give a text"
    return ""


def _no_json_by_name(source: Source, name: ast.Name) -> str:
    """Return why what a name stands for has no JSON; "" if it may have one, or if the name
    is bound several times.
    """
    meaning = source.meaning(name)
    if meaning in source.again:
        return ""
    if isinstance(meaning, ast.FunctionDef):
        return f"the function `{meaning.name}` has no JSON: give what it returns"
    if isinstance(meaning, ast.ExceptHandler):
        return f"an exception has no JSON: write str({meaning.name})"
    return ""
