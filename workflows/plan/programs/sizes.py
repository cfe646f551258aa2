"""Whole numbers and lengths that stand in a script as they are, or that its inputs have."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sennit.workflows.plan.programs.source import Source

MOST = 10**18
"""Larger numbers count as unknown."""
_SAME_LENGTH = ("list", "tuple", "sorted", "reversed", "enumerate")
_VIEWS = ("items", "keys", "values")
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
}


class Sizes:
    """Reads numbers and lengths. `inputs` are the values of the parameters of `main`; `assumed` are the names of those
    whose numbers it has read.
    """

    def __init__(self, source: Source, inputs: Mapping[ast.AST, Any] | None = None) -> None:
        self._source = source
        self._inputs = inputs or {}
        self.assumed: set[str] = set()

    def number(self, node: ast.AST) -> int | None:
        """Return the whole number that an expression always is, None if the script does not say it."""
        found: int | None = None
        match node:
            case ast.Constant(value=int(value)) if type(value) is int:
                found = value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.number(operand)
                found = None if number is None else -number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                one, other = self.number(left), self.number(right)
                if one is not None and other is not None:
                    found = _ARITHMETIC[type(op)](one, other)
            case ast.Call(func=ast.Name(id="len") as word, args=[items]) if self._source.meaning(word) is None:
                found = self.length(items)
            case ast.Name():
                value = self._value(node)
                if type(value) is int:
                    self.assumed.add(node.id)
                    found = value
                elif isinstance(value, ast.expr):
                    found = self.number(value)
        if found is None or abs(found) >= MOST:
            return None
        return found

    def length(self, node: ast.AST) -> int | None:
        """Return how many items an expression always has, None if the script does not say it."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return None if any(isinstance(item, ast.Starred) for item in items) else len(items)
            case ast.Set(elts=items) | ast.Dict(keys=items):
                constants = [item.value for item in items if isinstance(item, ast.Constant)]
                return len(set(constants)) if len(constants) == len(items) else None
            case ast.Constant(value=str(text)):
                return len(text)
            case ast.Call(func=ast.Attribute(value=items, attr=name), args=[]) if name in _VIEWS:
                return self.length(items)
            case ast.Call(func=ast.Name() as word, args=args) if self._source.meaning(word) is None:
                return self._length_of_call(word.id, args)
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return self._length_of_comprehension(generators)
            case ast.Name() if not self._is_changed(node):
                value = self._value(node)
                if isinstance(value, ast.expr):
                    return self.length(value)
                return len(value) if isinstance(value, list | str | dict) else None
        return None

    def _length_of_call(self, name: str, args: Sequence[ast.expr]) -> int | None:
        if name == "range":
            numbers = [number for number in map(self.number, args) if number is not None]
            is_range = len(numbers) == len(args) and 0 < len(numbers) < 4 and numbers[2:] != [0]
            return len(range(*numbers)) if is_range else None
        if name == "zip":
            lengths = [self.length(each) for each in args]
            known = [length for length in lengths if length is not None]
            return min(known) if known and len(known) == len(lengths) else None
        return self.length(args[0]) if name in _SAME_LENGTH and args else None

    def _length_of_comprehension(self, generators: Sequence[ast.comprehension]) -> int | None:
        lengths = [self.length(each.iter) for each in generators if not each.ifs]
        known = [length for length in lengths if length is not None]
        return math.prod(known) if len(known) == len(generators) else None

    def _value(self, name: ast.Name) -> Any:
        """Return the value of an input, or the expression that a name always stands for; None for any other."""
        meaning = self._source.meaning(name)
        if meaning is None or meaning in self._source.again:
            return None
        if meaning in self._inputs:
            return self._inputs[meaning]
        value = self._source.assigned(name)
        return None if value is name else value

    def _is_changed(self, name: ast.Name) -> bool:
        """Whether the script may change how many items a value has."""
        meaning = self._source.meaning(name)
        for use in self._source.uses.get(name.id, ()):
            if self._source.meaning(use) is not meaning:
                continue
            around = self._source.parents[use]
            if isinstance(around, ast.Attribute) and around.attr not in _VIEWS:
                return True
            if isinstance(around, ast.Subscript) and not isinstance(around.ctx, ast.Load):
                return True
            # A function of the script may change what it is given.
            called = around.func if isinstance(around, ast.Call) and around.func is not use else None
            if isinstance(called, ast.Name) and self._source.meaning(called) is not None:
                return True
        return False
