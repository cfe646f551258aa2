"""A script as a tree in which each node knows what is around it, and each name what it stands for."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_BRACES = 20_000
"""Python 3.11 parses an f-string in quadratic time."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


@dataclass(slots=True)
class Source:
    """A script that parses."""

    tree: ast.Module
    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    bound: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)
    """For each scope the names that it binds, with where it first does."""
    read: dict[ast.AST, set[str]] = field(default_factory=dict)
    """For each scope the names that are read in it, or in what it holds."""
    again: set[ast.AST] = field(default_factory=set)
    """Where names are bound first of those that are bound again in the same scope."""
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    """Where each name is read."""

    def __post_init__(self) -> None:
        self.nodes.append(self.tree)
        for node in self.nodes:
            children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
            self.nodes.extend(children)
            self.parents.update(dict.fromkeys(children, node))
        for node in self.nodes:
            for name in _names_bound(node):
                first = self.bound.setdefault(self._scope_bound_in(node), {}).setdefault(name, node)
                if first is not node:
                    self.again.add(first)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
                for scope in self.scopes(node):
                    self.read.setdefault(scope, set()).add(node.id)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the functions and classes a node stands in, from the inside out, and the module."""
        return (scope for scope in self.around(node) if isinstance(scope, _SCOPES))

    def function(self, node: ast.AST) -> ast.AST:
        """Return the innermost function that a node stands in, or the module."""
        return next(scope for scope in self.scopes(node) if not isinstance(scope, ast.ClassDef))

    def meaning(self, name: ast.Name) -> ast.AST | None:
        """Return where the name is bound, in the innermost scope that does; None if no scope does."""
        for scope in self.scopes(name):
            if name.id in self.bound.get(scope, ()):
                return self.bound[scope][name.id]
        return None

    def is_top_level(self, node: ast.AST) -> bool:
        return self.parents.get(node) is self.tree

    def _scope_bound_in(self, node: ast.AST) -> ast.AST:
        return next(self.scopes(node), self.tree)


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def parsed(script: str) -> ast.Module:
    """Return the tree of a script. Raises SyntaxError."""
    if script.count("{") > MAX_BRACES:
        raise SyntaxError(f"it has more than {MAX_BRACES:,} `{{`; read data with tools")
    try:
        return ast.parse(script)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or "it is nested too deep") from None


def line_of(node: Any) -> int:
    return getattr(node, "lineno", 0)
