"""Finds the parts of a script that may run at all: a quote that has not counted all of them says so."""

import ast
from collections.abc import Iterator

from sennit.workflows.plan.programs.source import Function, Source

_BY_ANY_NAME = ("getattr", "vars", "globals", "locals", "__dict__", "methodcaller", "attrgetter")
"""Names that read attributes, or names of modules, by names that a script may compute."""


def reached(source: Source) -> Iterator[ast.AST]:
    """Yield each part of a script that may run when its `main` is called, also in ways that nobody can count: methods
    that a statement or an attribute calls, defaults, decorators.
    """
    methods = _methods(source)
    main = source.top.get("main")
    # The top of each module runs when it is imported.
    waiting: list[ast.AST] = []
    for tree in source.trees.values():
        waiting += [statement for statement in tree.body if not _is_definition(statement)]
    if main is not None:
        waiting.append(main)
    begun: set[ast.AST] = set()
    is_any_called = False
    while waiting:
        node = waiting.pop()
        if node in begun:
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
            if meaning is not None and _is_definition(meaning):
                waiting.append(meaning)
        elif isinstance(node, ast.alias):
            name = node.name

        # A script that handles a module as a value, or reads any name, may call anything that has a name.
        is_module = isinstance(node, ast.Name) and source.module_named(node) != ""
        if (name in _BY_ANY_NAME or is_module) and not is_any_called:
            is_any_called = True
            functions = [part for part in source.nodes if isinstance(part, Function)]
            waiting += [function for function in functions if _has_public_name(source, function)]

        waiting += _parts_reached(node)


def _parts_reached(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that run with it. A function that is defined there runs where its name is read, and is
    reached there.
    """
    children = ast.iter_child_nodes(node)
    if not isinstance(node, ast.ClassDef):
        yield from (child for child in children if not _is_definition(child))
        return
    for child in children:
        if not isinstance(child, Function) or _runs_unnamed(child):
            yield child


def _methods(source: Source) -> dict[str, list[Function]]:
    methods: dict[str, list[Function]] = {}
    for node in source.nodes:
        if isinstance(node, Function) and isinstance(source.parents[node], ast.ClassDef):
            methods.setdefault(node.name, []).append(node)
    return methods


def _has_public_name(source: Source, function: ast.AST) -> bool:
    """Whether a function is a method, or stands at the top of its module."""
    return isinstance(source.parents[function], ast.ClassDef | ast.Module)


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, Function | ast.ClassDef)


def _runs_unnamed(method: Function) -> bool:
    """Whether a method of a class may run without its name being read: as `__aenter__` does, or a property."""
    return method.name.startswith("__") or bool(method.decorator_list)
