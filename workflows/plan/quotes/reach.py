"""What of a script may run at all: a quote that has not counted all of it says so."""

import ast
from collections.abc import Collection, Iterator

from sennit.workflows.plan.programs.source import Function, Source

_BY_ANY_NAME = ("getattr", "vars", "__dict__", "methodcaller", "attrgetter")
"""What reads attributes by names that a script may compute."""


def reached(source: Source, skipped: Collection[ast.AST]) -> Iterator[ast.AST]:
    """Yield each part of a script that may run when its `main` is called, also in ways that nobody can count: methods
    that a statement or an attribute calls, defaults, decorators. What is `skipped` is left out with all in it.
    """
    methods = _methods(source)
    main = source.top.get("main")
    # The top of each module runs when it is imported.
    statements = [statement for tree in source.trees.values() for statement in tree.body]
    waiting: list[ast.AST] = [statement for statement in statements if not _is_definition(statement)]
    waiting += [main] if main is not None else []
    begun = set[ast.AST]()
    while waiting:
        node = waiting.pop()
        if node in begun or node in skipped:
            continue
        begun.add(node)
        yield node
        name = ""
        if isinstance(node, ast.Attribute):
            name = node.attr
            waiting += methods.get(name, ())
        elif isinstance(node, ast.Name):
            name = node.id
            meaning = source.meaning(node)
            waiting += [meaning] if meaning is not None and _is_definition(meaning) else []
        elif isinstance(node, ast.alias):
            name = node.name
        if name in _BY_ANY_NAME:
            waiting += [method for named in methods.values() for method in named]
        # A function that is defined here runs where its name is read, and is found there.
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.ClassDef):
            waiting += [child for child in children if not isinstance(child, Function) or _runs_unnamed(child)]
        else:
            waiting += [child for child in children if not _is_definition(child)]


def _methods(source: Source) -> dict[str, list[Function]]:
    methods: dict[str, list[Function]] = {}
    for node in source.nodes:
        if isinstance(node, Function) and isinstance(source.parents[node], ast.ClassDef):
            methods.setdefault(node.name, []).append(node)
    return methods


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, Function | ast.ClassDef)


def _runs_unnamed(method: Function) -> bool:
    """Whether a method of a class may run without its name being read: as `__aenter__` does, or a property."""
    return method.name.startswith("__") or bool(method.decorator_list)
