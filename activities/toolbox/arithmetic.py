"""Evaluates a syntax tree of arithmetic, node by node, with every number bounded."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from activities.toolbox.errors import CalculationFailed, ExpressionRefused

Number: TypeAlias = int | float

MOST_BITS: Final = 3400
"""Of an integer, about 1,000 decimal digits."""

_MOST_DEPTH: Final = 60
_SIGNIFICANT_DIGITS: Final = 12
_CONSTANTS: Final[Mapping[str, float]] = {"pi": math.pi, "e": math.e}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Number, Number], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def settled(value: Number | bool) -> Number | bool:
    """Round a float to 12 significant digits; integers and truth values stay as they are."""
    if isinstance(value, float):
        return float(f"{value:.{_SIGNIFICANT_DIGITS}g}") + 0.0
    return value


def bounded(value: object) -> Number:
    """Return `value` if it is a real, finite number of reasonable size; raises CalculationFailed."""
    if isinstance(value, complex):
        raise CalculationFailed("the value is not a real number")
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and value.bit_length() <= MOST_BITS:
        return value
    raise CalculationFailed("a value is too large or not finite")


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and (base.bit_length() - 1) * exponent > MOST_BITS:
        raise CalculationFailed("the power is too large")
    return base**exponent


def _round(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > 50:
        raise ExpressionRefused("round takes a whole number of digits from -50 to 50")
    return round(value, digits) if digits else round(value)


def _log(value: Number, base: Number = math.e) -> float:
    return math.log(value) if base == math.e else math.log(value, base)


def _total(*values: Number) -> Number:
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


def _mean(*values: Number) -> float:
    return _total(*values) / len(values)


_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Number, Number], object]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_SIGNS: Final[Mapping[type[ast.unaryop], Callable[[Number], Number]]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_OVER_LISTS: Final[Mapping[str, Callable[..., object]]] = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "sum": _total,
    "mean": _mean,
}
_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., object], int]]] = {
    "abs": (abs, 1),
    "round": (_round, 2),
    "sqrt": (math.sqrt, 1),
    "floor": (math.floor, 1),
    "ceil": (math.ceil, 1),
    "log": (_log, 2),
    "log10": (math.log10, 1),
    "exp": (math.exp, 1),
}


class Evaluator:
    """Computes one expression. Raises ExpressionRefused for syntax outside the allow-list, CalculationFailed for
    values outside the bounds, and ZeroDivisionError, OverflowError or ValueError as arithmetic does."""

    def value(self, node: ast.expr) -> Number | bool:
        """Return the value of a whole expression: a number, or the truth of one comparison."""
        return self._comparison(node) if isinstance(node, ast.Compare) else self._number(node, 0)

    def _comparison(self, node: ast.Compare) -> bool:
        values = [settled(self._number(each, 1)) for each in (node.left, *node.comparators)]
        holds = True
        for sign, left, right in zip(node.ops, values, values[1:], strict=False):
            compare = _COMPARISONS.get(type(sign))
            if compare is None:
                raise ExpressionRefused("only < <= > >= == != compare")
            holds = holds and compare(left, right)
        return holds

    def _number(self, node: ast.expr, depth: int) -> Number:
        if depth > _MOST_DEPTH:
            raise ExpressionRefused(f"the expression is nested deeper than {_MOST_DEPTH}")
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return bounded(number)
            case ast.Name(id=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](self._number(operand, depth + 1))
            case ast.BinOp():
                return self._chain(node, depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return bounded(self._call(name, arguments, depth + 1))
            case _:
                raise ExpressionRefused(_refusal(node))

    def _chain(self, node: ast.BinOp, depth: int) -> Number:
        """Evaluate `a + b - c ...` from the left in a loop, so that a long sum is not a deep one."""
        spine: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            spine.append(first)
            first = first.left
        total = self._number(first, depth + 1)
        for step in reversed(spine):
            apply = _OPERATORS.get(type(step.op))
            if apply is None:
                raise ExpressionRefused(_refusal(step))
            total = bounded(apply(total, self._number(step.right, depth + 1)))
        return total

    def _call(self, name: str, arguments: Sequence[ast.expr], depth: int) -> object:
        if over_list := _OVER_LISTS.get(name):
            match arguments:
                case [ast.List(elts=items)]:
                    arguments = items
            if not arguments:
                raise ExpressionRefused(f"{name} needs at least one number")
            return over_list(*(self._number(each, depth) for each in arguments))
        if name not in _FUNCTIONS:
            known = ", ".join(sorted({*_OVER_LISTS, *_FUNCTIONS}))
            raise ExpressionRefused(f"there is no function {name[:40]!r}; there is {known}")
        function, most = _FUNCTIONS[name]
        if not 1 <= len(arguments) <= most:
            raise ExpressionRefused(f"{name} takes {'1' if most == 1 else '1 or 2'} numbers, not {len(arguments)}")
        return function(*(self._number(each, depth) for each in arguments))


def _refusal(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return f"{name[:40]!r} is no number; the only names are pi and e"
        case ast.Tuple():
            return "a comma separates numbers only inside a function; write 6650, not 6,650"
        case ast.List():
            return "a [list] stands only in min, max, sum and mean"
        case ast.Compare() | ast.BoolOp():
            return "a comparison stands only alone, not inside another expression"
        case _:
            return f"{type(node).__name__} has no place in arithmetic"
