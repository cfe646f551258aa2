"""How often a loop of a script goes round, where the script says so."""

import ast
from collections.abc import Mapping
from typing import NamedTuple

from workflows.plan.programs.source import Source

MANY = 10**18
_WORK = 100_000
_SAME_SIZE = ("list", "tuple", "sorted", "reversed", "enumerate", "parallel", "settled", "pipeline")


class Size(NamedTuple):
    """How many, from the least to the most; MANY is without a bound."""

    least: int = 0
    most: int = MANY


Values = Mapping[ast.AST, tuple[int | None, Size]]
"""What is known of the arguments of a function: which whole number each is, how many items it has."""


class TooLong(Exception):
    """The script calls too much of itself to be counted."""


class Rounds:
    """Reads numbers and sizes in a script. Raises TooLong after too many steps.

    `assumed` are those of the `inputs` whose numbers it has read.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.inputs: set[ast.AST] = set()
        self.assumed: set[str] = set()
        self._left = _WORK

    def spend(self) -> None:
        """Count a step."""
        self._left -= 1
        if not self._left:
            raise TooLong

    def number(self, node: ast.AST, values: Values) -> int | None:
        """Return the whole number that an expression always is, None if it is not known."""
        self.spend()
        match node:
            case ast.Constant(value=int(value)) if value < MANY:
                return value
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                one, other = self.number(left, values), self.number(right, values)
                if one is None or other is None:
                    return None
                made = one * other if isinstance(op, ast.Mult) else one + (other if isinstance(op, ast.Add) else -other)
                return made if abs(made) < MANY else None
            case ast.Call(func=ast.Name(id="len"), args=[items]) if self.is_free(node.func):
                size = self.size(items, values)
                return size.least if size.least == size.most else None
            case ast.Name() if (argument := self._argument(node, values)) is not None:
                if argument in self.inputs:
                    self.assumed.add(node.id)
                return values[argument][0]
            case ast.Name() if (made_of := self.assigned(node)) is not None:
                return self.number(made_of, values)
        return None

    def size(self, node: ast.AST, values: Values) -> Size:
        """Return how many items an expression has."""
        self.spend()
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return Size(*map(len, (items, items))) if not _has_stars(items) else Size()
            case ast.Call(func=ast.Name(id="range"), args=args) if self.is_free(node.func):
                numbers = [number for arg in args if (number := self.number(arg, values)) is not None]
                if len(numbers) < len(args) or numbers[2:] == [0] or not 0 < len(numbers) < 4:
                    return Size()
                steps = range(*numbers)
                return Size(len(steps), len(steps))
            case ast.Call(func=ast.Name(id=name), args=[items, *_]) if name in _SAME_SIZE and self.is_free(node.func):
                return self.size(items, values)
            case ast.Await(value=value):
                return self.size(value, values)
            case ast.ListComp(generators=[each]):
                return self.size(each.iter, values)._replace(**{"least": 0} if each.ifs else {})
            case ast.Subscript(value=items, slice=ast.Slice(lower=None, upper=ast.expr() as upper, step=None)):
                least, most = self.size(items, values)
                end = self.number(upper, values)
                return Size(0, most) if end is None or end < 0 else Size(min(least, end), min(most, end))
            case ast.Name() if (argument := self._argument(node, values)) is not None and self._only_read(node):
                return values[argument][1]
            case ast.Name() if (made_of := self.assigned(node)) is not None and self._only_read(node):
                return self.size(made_of, values)
        return Size()

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """Return what a name always stands for; None if it is no name of an assignment, or of several."""
        meaning = self.source.meaning(name)
        around = self.source.parents.get(meaning) if meaning is not None else None
        is_only = isinstance(around, ast.Assign) and around.targets == [meaning] and meaning not in self.source.again
        return around.value if isinstance(around, ast.Assign) and is_only else None

    def is_free(self, name: ast.AST) -> bool:
        """Whether a name is one of Python, a word or a tool: the script does not define it."""
        return isinstance(name, ast.Name) and self.source.meaning(name) is None

    def is_awaited(self, task: ast.AST) -> bool:
        """Whether a task is begun where `parallel` waits for it: its calls are made, unless one fails."""
        around = self.source.parents.get(task)
        while isinstance(around, ast.expr | ast.comprehension) and not isinstance(around, ast.Lambda):
            if isinstance(around, ast.Call):
                return isinstance(around.func, ast.Name) and around.func.id == "parallel" and self.is_free(around.func)
            around = self.source.parents.get(around)
        return False

    def _argument(self, name: ast.Name, values: Values) -> ast.AST | None:
        meaning = self.source.meaning(name)
        return meaning if meaning in values and meaning not in self.source.again else None

    def _only_read(self, name: ast.Name) -> bool:
        """Whether nothing in the script can change how many items a value has."""
        meaning = self.source.meaning(name)
        if meaning is None or self.source.is_top_level(self.source.parents[meaning]):
            return True
        for use in self.source.uses[name.id]:
            self.spend()
            around = self.source.parents[use]
            is_given = isinstance(around, ast.Call) and self.is_free(around.func)
            if not (is_given or isinstance(around, ast.For | ast.comprehension)):
                return False
        return True


def _has_stars(items: list[ast.expr]) -> bool:
    return any(isinstance(item, ast.Starred) for item in items)
