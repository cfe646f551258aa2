"""Loops and calls of a script that can never end, and what a session returns that has no JSON."""

import ast
from collections.abc import Iterator

from sennit.workflows.plan.programs.source import Function, Source

Found = Iterator[tuple[str, ast.AST, str]]
"""The code, the place and the sentence of each problem."""
_ENDS = (ast.Break, ast.Return, ast.Raise, ast.Assert, ast.Await, ast.Call, ast.Subscript, ast.Yield, ast.YieldFrom)
_LEAVES = (ast.Break, ast.Return, ast.Raise, ast.Assert, ast.Yield)
_CONDITION = (
    ast.Name, ast.Constant, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)
_WITHOUT = {
    "set": "a set has no JSON: write sorted(...) or list(...)",
    "frozenset": "a set has no JSON: write sorted(...) or list(...)",
    "range": "a range has no JSON: write list(...)",
    "task": "a ticket is no result yet: await it, or write `await parallel([...])`",
    "now": "a time has no JSON: write .isoformat()",
}
"""Calls whose results have no JSON."""
_LAZY = ("accumulate", "chain", "dropwhile", "enumerate", "filter", "filterfalse", "map", "pairwise", "starmap", "zip")
"""What gives one value after the other for those that it is given."""
_MAYBE = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def endless_loop_in(source: Source, node: ast.While, doubt: str) -> Found:
    """Find a loop that nothing in it can end: no break, return or raise, and no call or look-up that may raise. One
    that only such an error ends, which nothing in the function catches, is a `doubt`.
    """
    if not (isinstance(node.test, ast.Constant) and node.test.value):
        yield from _unchanged(source, node)
        return
    parts = [part for statement in node.body for part in within(statement)]
    if not any(isinstance(part, _ENDS) for part in parts):
        yield "endless", node, "this loop never ends: leave it with `break` or `return`"
    is_caught = any(isinstance(around, ast.Try | ast.AsyncWith) for around in source.around(node))
    if not is_caught and isinstance(source.function(node), ast.AsyncFunctionDef):
        is_main = getattr(source.function(node), "name", "") == "main"
        if is_main and not any(isinstance(part, _LEAVES) for part in parts):
            yield doubt, node, "only an error ends this loop: leave it with `break` or `return`"


def _unchanged(source: Source, node: ast.While) -> Found:
    """Find a loop whose condition is of constants alone, and which nothing in it changes or leaves."""
    names = [part for part in ast.walk(node.test) if isinstance(part, ast.Name)]
    is_plain = all(isinstance(part, _CONDITION) for part in ast.walk(node.test))
    held = [source.assigned(name) for name in names]
    is_left = any(isinstance(part, _LEAVES) for statement in node.body for part in within(statement))
    if names and is_plain and not is_left and all(isinstance(each, ast.Constant) for each in held):
        text = f"nothing in this loop changes `{names[0].id}`: change it, or leave the loop with `break`"
        yield "endless", node, text


def read_before_bound(source: Source, node: ast.Assign | ast.AugAssign) -> Found:
    """Find a variable that a function makes only of itself."""
    function = source.function(node)
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Name) or source.meaning(target) is not target or target in source.again:
        return
    if source.is_global(target):
        return
    reads = [target] if isinstance(node, ast.AugAssign) else []
    # A function inside reads its variables only when it is called.
    reads += [part for part in within(node.value) if isinstance(part, ast.Name) and part.id == target.id]
    is_in_class = source.scope_of(target) is not function
    if reads and not is_in_class and isinstance(function, Function):
        yield "name", node, f"`{target.id}` has no value here: give it one before"


def endless_recursion_in(source: Source, node: Function) -> Found:
    """Find a function that calls itself whatever it is given."""
    for statement in node.body:
        if isinstance(statement, _BRANCHES):
            if any(isinstance(part, ast.Return | ast.Raise) for part in within(statement)):
                return
            continue
        for part in within(statement, _MAYBE):
            if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Name)):
                continue
            is_made = isinstance(node, ast.FunctionDef) or isinstance(source.parents[part], ast.Await)
            if is_made and source.meaning(part.func) is node and node not in source.again:
                yield "endless", part, f"`{node.name}` calls itself without end: return before this call in some case"
                return
        if isinstance(statement, ast.Return | ast.Raise | ast.Assert):
            return


def returned_without_json(source: Source, node: ast.Return) -> Found:
    """Find what has no JSON in what `main` or a task returns."""
    if node.value is not None and is_session(source, source.function(node)):
        yield from (("return", part, text) for part, text in without_json(source, node.value))


def without_json(source: Source, whole: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Yield the parts of a value that have no JSON, and what to write instead."""
    parts = [whole]
    for part in parts:  # which grows
        value = source.assigned(part)
        match value:
            case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                parts += values if value is part else ()
            case ast.ListComp(elt=each):
                parts.append(each)
        if text := _no_json(source, value):
            yield part, text


def _no_json(source: Source, value: ast.expr) -> str:
    """Return why a value has no JSON, and what to write; "" if it may have one."""
    meaning = source.meaning(value) if isinstance(value, ast.Name) else None
    if isinstance(meaning, ast.FunctionDef) and meaning not in source.again:
        return f"the function `{meaning.name}` has no JSON: give what it returns"
    if isinstance(meaning, ast.ExceptHandler) and meaning not in source.again:
        return f"an exception has no JSON: write str({meaning.name})"
    match value:
        case ast.Call(func=ast.Name(id=name) as function) if name in _WITHOUT and source.meaning(function) is None:
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


def is_session(source: Source, function: ast.AST) -> bool:
    """Whether a function is `main`, or one that runs as a task or a stage."""
    if not isinstance(function, ast.AsyncFunctionDef) or not source.is_top_level(function):
        return False
    is_main = function.name == "main" and source.parents[function] is source.tree
    return is_main or function in source.started


def within(node: ast.AST, but: tuple[type[ast.AST], ...] = ()) -> Iterator[ast.AST]:
    """Yield a node and what is in it, but for functions that are only defined there, and nodes of the kinds `but`."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (*_LATER, *but)):
            continue
        yield each
        waiting += reversed(list(ast.iter_child_nodes(each)))
