"""`calculate`: arithmetic over an allow-list of syntax, with every number bounded. Nothing is executed."""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from activities.toolbox.errors import CalculationFailed, ExpressionRefused
from activities.toolbox.registry import tool

Number: TypeAlias = int | float

_MOST_BITS: Final = 3400
"""Of an integer: about 1,000 decimal digits."""

_MOST_DEPTH: Final = 60
_SIGNIFICANT_DIGITS: Final = 12
_ASCII: Final = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"})
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.,+\-*/%()\[\]<>=! \t\n]*\Z")
_NUMBER: Final = re.compile(r"(?<![\w.])[\d.][\w.]*")
_DECIMAL: Final = re.compile(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE]\d*)?\Z")


class CalculateArguments(BaseModel):
    """What to calculate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expression: Annotated[str, Field(min_length=1, max_length=1000, description="Such as (6650 - 6400) / 6400 * 100")]


class Calculation(BaseModel):
    """The expression and its value: an integer, a number of 12 significant digits, or a truth value."""

    expression: str
    value: bool | int | float


@tool(effect="pure", timeout="5s")
def calculate(args: CalculateArguments) -> Calculation:
    """Calculate an arithmetic expression of numbers, + - * / // % **, parentheses, pi, e, one comparison, and
    abs min max round sqrt sum mean floor ceil log log10 exp (min, max, sum and mean take numbers or a [list]).

    Integers stay exact up to 1,000 digits; other values have 12 significant digits.
    """
    return Calculation(expression=args.expression, value=evaluate(args.expression))


def evaluate(expression: str) -> Number | bool:
    """Return the value of `expression`, within milliseconds.

    Raises ExpressionRefused for syntax outside the allow-list, CalculationFailed for values outside the bounds.
    """
    body = _parse(expression.translate(_ASCII).strip())
    try:
        return _compare(body) if isinstance(body, ast.Compare) else round_float(_number(body, 0))
    except ZeroDivisionError:
        raise CalculationFailed("division by zero") from None
    except OverflowError:
        raise CalculationFailed("a value is too large") from None
    except ValueError:
        raise CalculationFailed("there is no real value, as for sqrt or log of a negative number") from None


def round_float(value: Number) -> Number:
    """Round a float to 12 significant digits; integers stay as they are."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}") + 0.0 if isinstance(value, float) else value


def _parse(expression: str) -> ast.expr:
    if not _ALLOWED.match(expression):
        bad = next(character for character in expression if not _ALLOWED.match(character))
        hint = "; write ** for a power" if bad == "^" else ""
        raise ExpressionRefused(f"{bad!r} is not allowed in arithmetic{hint}")
    for number in _NUMBER.findall(expression):
        if not _DECIMAL.match(number):
            raise ExpressionRefused(f"{number[:40]!r} is not a decimal number; write numbers without units")
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        problem = "this is not arithmetic; check operators and parentheses, and leave out units"
        raise ExpressionRefused(problem) from None


def _compare(node: ast.Compare) -> bool:
    """Compare values as they would be shown."""
    values = [round_float(_number(each, 1)) for each in (node.left, *node.comparators)]
    true = True
    for sign, left, right in zip(node.ops, values, values[1:], strict=False):
        compare = _COMPARISONS.get(type(sign))
        if compare is None:
            raise ExpressionRefused("only < <= > >= == != compare")
        true = true and compare(left, right)
    return true


def _number(node: ast.expr, depth: int) -> Number:
    if depth > _MOST_DEPTH:
        raise ExpressionRefused(f"the expression is nested deeper than {_MOST_DEPTH}")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            return _SIGNS[type(sign)](_number(operand, depth + 1))
        case ast.BinOp():
            return _chain(node, depth)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _bounded(_call(name, arguments, depth + 1))
        case _:
            raise ExpressionRefused(_refusal(node))


def _chain(node: ast.BinOp, depth: int) -> Number:
    """Evaluate `a + b - c ...` from the left in a loop, so that a long sum is not a deep one."""
    steps: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        steps.append(first)
        first = first.left
    total = _number(first, depth + 1)
    for step in reversed(steps):
        apply = _OPERATORS.get(type(step.op))
        if apply is None:
            raise ExpressionRefused(_refusal(step))
        total = _bounded(apply(total, _number(step.right, depth + 1)))
    return total


def _call(name: str, arguments: Sequence[ast.expr], depth: int) -> object:
    if name not in _FUNCTIONS:
        raise ExpressionRefused(f"there is no function {name[:40]!r}; there is {', '.join(sorted(_FUNCTIONS))}")
    function, most = _FUNCTIONS[name]
    if most is None:
        match arguments:
            case [ast.List(elts=items)]:
                arguments = items
        if not arguments:
            raise ExpressionRefused(f"{name} needs at least one number")
    elif not 1 <= len(arguments) <= most:
        raise ExpressionRefused(f"{name} takes {'1 number' if most == 1 else '1 or 2 numbers'}, not {len(arguments)}")
    return function(*(_number(each, depth) for each in arguments))


def _bounded(value: object) -> Number:
    """Return `value` if it is a real, finite number of reasonable size; raises CalculationFailed."""
    if isinstance(value, complex):
        raise CalculationFailed("the value is not a real number")
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return value
    raise CalculationFailed("a value is too large or not finite")


def _refusal(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return f"{name[:40]!r} is not a number; the only names are pi and e"
        case ast.Tuple():
            return "a comma may separate numbers only in a function; write 6650, not 6,650"
        case ast.List():
            return "a [list] is allowed only in min, max, sum and mean"
        case ast.Compare() | ast.BoolOp():
            return "a comparison must stand alone, not inside another expression"
        case _:
            return f"{type(node).__name__} is not allowed in arithmetic"


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and (base.bit_length() - 1) * exponent > _MOST_BITS:
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


_CONSTANTS: Final[Mapping[str, float]] = {"pi": math.pi, "e": math.e}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Number, Number], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
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
_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., object], int | None]]] = {
    "min": (lambda *values: min(values), None),
    "max": (lambda *values: max(values), None),
    "sum": (_total, None),
    "mean": (lambda *values: _total(*values) / len(values), None),
    "abs": (abs, 1),
    "round": (_round, 2),
    "sqrt": (math.sqrt, 1),
    "floor": (math.floor, 1),
    "ceil": (math.ceil, 1),
    "log": (_log, 2),
    "log10": (math.log10, 1),
    "exp": (math.exp, 1),
}
"""Each with the most numbers it takes; None for any number of them, or a list."""
