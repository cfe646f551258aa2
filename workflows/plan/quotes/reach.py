"""Finds the parts of a script that may run at all: a quote that has not
counted all of them says so.
"""

import ast
from collections.abc import Iterator

from sennit.workflows.plan.programs.source import Function, Source

_BY_ANY_NAME = ("getattr", "vars", "globals", "locals", "__dict__", "methodcaller", "attrgetter")
"""Names that read attributes, or names of modules, by names that a script may compute."""


def reached(source: Source) -> Iterator[ast.AST]:
    """Yield each part of a script that may run when its `main` is called, also in ways that nobody
    can count: methods that a statement or an attribute calls, defaults, decorators.
    """
    methods = _methods(source)
    main = source.top.get("main")
    waiting = _run_by_import(source)
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

        # A script that handles a module as a value, or reads any name, may call
        # anything that has a name.
        is_module = isinstance(node, ast.Name) and source.module_named(node) != ""
        if (name in _BY_ANY_NAME or is_module) and not is_any_called:
            is_any_called = True
            waiting += _public_functions(source)

        waiting += _parts_reached(node)


def _run_by_import(source: Source) -> list[ast.AST]:
    """Return what runs at the top of each module when the module is imported."""
    statements: list[ast.AST] = []
    for tree in source.trees.values():
        for statement in tree.body:
            if not _is_definition(statement):
                statements.append(statement)
    return statements


def _parts_reached(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that run with it. A function that is defined there runs where its
    name is read, and is reached there.
    """
    is_class = isinstance(node, ast.ClassDef)
    for child in ast.iter_child_nodes(node):
        if is_class:
            runs = not isinstance(child, Function) or _runs_unnamed(child)
        else:
            runs = not _is_definition(child)
        if runs:
            yield child


def _methods(source: Source) -> dict[str, list[Function]]:
    methods: dict[str, list[Function]] = {}
    for node in source.nodes:
        if isinstance(node, Function) and isinstance(source.parents[node], ast.ClassDef):
            methods.setdefault(node.name, []).append(node)
    return methods


def _public_functions(source: Source) -> list[Function]:
    """Return the functions that are methods, or stand at the top of their module."""
    functions: list[Function] = []
    for node in source.nodes:
        if isinstance(node, Function) and isinstance(
            source.parents[node], ast.ClassDef | ast.Module
        ):
            functions.append(node)
    return functions


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, Function | ast.ClassDef)


def _runs_unnamed(method: Function) -> bool:
    """Whether a method of a class may run without its name being read: as
    `__aenter__` does, or a property.
    """
    return method.name.startswith("__") or bool(method.decorator_list)
