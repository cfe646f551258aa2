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
    """Reads numbers and lengths. `inputs` are the values of the parameters of `main`; `assumed` are
    the names of those whose numbers it has read.
    """

    def __init__(self, source: Source, inputs: Mapping[ast.AST, Any] | None = None) -> None:
        self._source = source
        self._inputs = inputs or {}
        self.assumed: set[str] = set()

    def number(self, node: ast.AST) -> int | None:
        """Return the whole number that an expression always is, None if the
        script does not say it.
        """
        number = self._number(node)
        if number is None or abs(number) >= MOST:
            return None
        return number

    def _number(self, node: ast.AST) -> int | None:
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                positive = self.number(operand)
                if positive is None:
                    return None
                return -positive
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                left_number = self.number(left)
                right_number = self.number(right)
                if left_number is None or right_number is None:
                    return None
                return _ARITHMETIC[type(op)](left_number, right_number)
            case ast.Call(func=ast.Name(id="len") as word, args=[items]) if (
                self._source.meaning(word) is None
            ):
                return self.length(items)
            case ast.Name():
                return self._number_of_name(node)
        return None

    def _number_of_name(self, name: ast.Name) -> int | None:
        value = self._value(name)
        if type(value) is int:
            # Only an input is a number here. Who uses the number must know that
            # it rests on that input.
            self.assumed.add(name.id)
            return value
        if isinstance(value, ast.expr):
            return self.number(value)
        return None

    def length(self, node: ast.AST) -> int | None:
        """Return how many items an expression always has, None if the script does not say it."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                has_stars = any(isinstance(item, ast.Starred) for item in items)
                if has_stars:
                    return None
                return len(items)
            case ast.Set(elts=items) | ast.Dict(keys=items):
                return _number_of_different(items)
            case ast.Constant(value=str(text)):
                return len(text)
            case ast.Call(func=ast.Attribute(value=items, attr=name), args=[]) if name in _VIEWS:
                return self.length(items)
            case ast.Call(func=ast.Name() as word, args=args) if self._source.meaning(word) is None:
                return self._length_of_call(word.id, args)
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return self._length_of_comprehension(generators)
            case ast.Name() if not self._is_changed(node):
                return self._length_of_name(node)
        return None

    def _length_of_name(self, name: ast.Name) -> int | None:
        value = self._value(name)
        if isinstance(value, ast.expr):
            return self.length(value)
        if isinstance(value, list | str | dict):
            return len(value)
        return None

    def _length_of_call(self, name: str, args: Sequence[ast.expr]) -> int | None:
        """Return how many items a function of Python gives."""
        if name == "range":
            return self._length_of_range(args)
        if name == "zip":
            lengths = _all_known([self.length(arg) for arg in args])
            if not lengths:
                return None
            return min(lengths)
        if name in _SAME_LENGTH and args:
            return self.length(args[0])
        return None

    def _length_of_range(self, args: Sequence[ast.expr]) -> int | None:
        numbers = _all_known([self.number(arg) for arg in args])
        if numbers is None or not 1 <= len(numbers) <= 3:
            return None
        has_no_step = numbers[2:] == [0]
        if has_no_step:
            return None
        return len(range(*numbers))

    def _length_of_comprehension(self, generators: Sequence[ast.comprehension]) -> int | None:
        lengths: list[int | None] = []
        for generator in generators:
            # An `if` may leave items out.
            if generator.ifs:
                lengths.append(None)
            else:
                lengths.append(self.length(generator.iter))
        known = _all_known(lengths)
        if known is None:
            return None
        return math.prod(known)

    def _value(self, name: ast.Name) -> Any:
        """Return the value of an input, or the expression that a name always stands
        for; None for any other.
        """
        meaning = self._source.meaning(name)
        if meaning is None or meaning in self._source.again:
            return None
        if meaning in self._inputs:
            return self._inputs[meaning]
        value = self._source.assigned(name)
        if value is name:
            return None
        return value

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
            if isinstance(around, ast.Call) and self._is_given_to_script(use, around):
                return True
        return False

    def _is_given_to_script(self, argument: ast.Name, call: ast.Call) -> bool:
        """Whether a function of the script gets a value, which it may change."""
        function = call.func
        if function is argument or not isinstance(function, ast.Name):
            return False
        return self._source.meaning(function) is not None


def _number_of_different(items: Sequence[ast.expr | None]) -> int | None:
    """Return how many items of a set or keys of a dict differ, None if one
    of them is no constant.
    """
    constants: set[Any] = set()
    for item in items:
        if not isinstance(item, ast.Constant):
            return None
        constants.add(item.value)
    return len(constants)


def _all_known(numbers: Sequence[int | None]) -> list[int] | None:
    """Return the numbers, None if one of them is not known."""
    known: list[int] = []
    for number in numbers:
        if number is None:
            return None
        known.append(number)
    return known
