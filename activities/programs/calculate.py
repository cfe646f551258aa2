"""`calculate`: arithmetic over an allow-list of syntax, with every number bounded. Monty computes it."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.limits import MAX_EXPRESSION_LEVELS
from sennit.activities.programs.reading import PARSER
from sennit.activities.toolbox.errors import CalculationFailed, ExpressionRefused
from sennit.activities.toolbox.registry import tool

_ASCII: Final = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"})
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.,+\-*/%()\[\]<>=! \t\n]*\Z")
_NUMBER: Final = re.compile(r"(?<![\w.])[\d.][\w.]*")
_DECIMAL: Final = re.compile(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE]\d*)?\Z")
_SIGNS: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.UAdd: "+", ast.USub: "-",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, int | None]] = {
    "min": None, "max": None, "sum": None, "mean": None,
    "abs": 1, "round": 2, "sqrt": 1, "floor": 1, "ceil": 1, "log": 2, "log10": 1, "exp": 1,
}  # fmt: skip
"""Each with the most numbers it takes; None for any number of them, or a list."""
_FAILURES: Final = {
    "ZeroDivisionError": "division by zero",
    "OverflowError": "a value is too large",
    "MemoryError": "a value is too large",
    "TimeoutError": "it takes too long",
    "ValueError": "there is no real value, as for sqrt or log of a negative number",
}
_SCRIPT: Final = """
from math import ceil, e, exp, floor, fsum, isfinite, log, log10, pi, sqrt
BITS = 3400  # about 1,000 decimal digits
def number(value):
    if not isinstance(value, (int, float)):
        raise ArithmeticError("the value is not a real number")
    if isfinite(value) if isinstance(value, float) else -(1 << BITS) < value < 1 << BITS:
        return value
    raise ArithmeticError("a value is too large or not finite")
def power(base, exponent):
    if isinstance(base, int) and isinstance(exponent, int) and (len(bin(abs(base))) - 3) * exponent > BITS:
        raise ArithmeticError("the power is too large")
    return base ** exponent
def shown(value):
    return float(f"{value:.12g}") + 0.0 if isinstance(value, float) else value
exact_sum, nearest = sum, round
def sum(values):
    return fsum(values) if [each for each in values if isinstance(each, float)] else exact_sum(values)
def mean(values):
    return sum(values) / len(values)
def round(value, digits=0):
    if not isinstance(digits, int) or abs(digits) > 50:
        raise TypeError("round takes a whole number of digits from -50 to 50")
    return nearest(value, digits) if digits else nearest(value)
"""


class CalculateArguments(BaseModel):
    """What to calculate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expression: Annotated[str, Field(min_length=1, max_length=1000, description="Such as (6650 - 6400) / 6400 * 100")]


class Calculation(BaseModel):
    """The expression and its value: an integer, a number of 12 significant digits, or a truth value."""

    expression: str
    value: bool | int | float


@tool(effect="pure", timeout="5s", typical="5ms")
def calculate(args: CalculateArguments) -> Calculation:
    """Calculate an arithmetic expression of numbers, + - * / // % **, parentheses, pi, e, one comparison, and
    abs min max round sqrt sum mean floor ceil log log10 exp (min, max, sum and mean take numbers or a [list]).

    Integers stay exact up to 1,000 digits; other values have 12 significant digits.
    """
    return Calculation(expression=args.expression, value=evaluate(args.expression))


def evaluate(expression: str) -> int | float | bool:
    """Return the value of `expression`. Not to be called in an event loop.

    Raises ExpressionRefused for syntax outside the allow-list, CalculationFailed for values outside the bounds; it is
    retryable if something has ended Monty's process.
    """
    # Only workers that calculate load Monty: that takes 90 ms.
    from sennit.activities.programs.checkouts import InterpreterCrashed
    from sennit.activities.programs.interpreter import calculator

    script = _SCRIPT + _in_steps(_parse(expression.translate(_ASCII).strip()))
    try:
        value, error = calculator.value(script)
    except InterpreterCrashed as crash:
        raise CalculationFailed(f"the interpreter has crashed: {crash}", retryable=True) from crash
    if error is None:
        return value  # type: ignore[no-any-return]
    if error.type == "TypeError":
        raise ExpressionRefused(error.message)
    raise CalculationFailed(_FAILURES.get(error.type, error.message))


def _parse(expression: str) -> ast.expr:
    if not _ALLOWED.match(expression):
        bad = next(character for character in expression if not _ALLOWED.match(character))
        hint = "; write ** for a power" if bad == "^" else ""
        raise ExpressionRefused(f"{bad!r} is not allowed in arithmetic{hint}")
    for number in _NUMBER.findall(expression):
        if not _DECIMAL.match(number):
            raise ExpressionRefused(f"{number[:40]!r} is not a decimal number; write numbers without units")
    try:
        with PARSER:
            return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        problem = "this is not arithmetic; check operators and parentheses, and leave out units"
        raise ExpressionRefused(problem) from None


def _in_steps(body: ast.expr) -> str:
    """Return a script with one operation a line, each of which is bounded; the last line is the value.

    So a long sum is not a deep one. Raises ExpressionRefused.
    """
    sides, signs = ([body.left, *body.comparators], body.ops) if isinstance(body, ast.Compare) else ([body], [])
    if not {type(sign) for sign in signs} <= _SIGNS.keys():
        raise ExpressionRefused("only < <= > >= == != compare")
    steps: list[str] = []
    waiting = [(f"side{number}", side, 0) for number, side in enumerate(sides)]
    for name, node, depth in waiting:
        if depth > MAX_EXPRESSION_LEVELS:
            raise ExpressionRefused(f"the expression is nested deeper than {MAX_EXPRESSION_LEVELS}")
        template, operands = _operation(node)
        names = [f"v{len(waiting) + number}" for number in range(len(operands))]
        steps.append(f"{name} = number({template.format(*names)})")
        is_chain = isinstance(node, ast.BinOp)
        waiting += [
            (names[place], operand, depth if is_chain and place == 0 else depth + 1)
            for place, operand in enumerate(operands)
        ]
    shown = "shown(side0)" + "".join(f"{_SIGNS[type(sign)]}shown(side{n})" for n, sign in enumerate(signs, 1))
    return "\n".join([*reversed(steps), shown])


def _operation(node: ast.expr) -> tuple[str, Sequence[ast.expr]]:
    """Return an operation with a place for each operand, and the operands. Raises ExpressionRefused."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return ast.unparse(node), ()
        case ast.Name(id="pi" | "e" as name):
            return name, ()
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            return f"{_SIGNS[type(sign)]} {{}}", (operand,)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return "power({}, {})", (left, right)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            return f"{{}} {_SIGNS[type(sign)]} {{}}", (left, right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, arguments)
        case _:
            raise ExpressionRefused(_refusal(node))


def _call(name: str, arguments: Sequence[ast.expr]) -> tuple[str, Sequence[ast.expr]]:
    if name not in _FUNCTIONS:
        raise ExpressionRefused(f"there is no function {name[:40]!r}; there is {', '.join(sorted(_FUNCTIONS))}")
    most = _FUNCTIONS[name]
    if most is None:
        match arguments:
            case [ast.List(elts=items)]:
                arguments = items
        if not arguments:
            raise ExpressionRefused(f"{name} needs at least one number")
    elif not 1 <= len(arguments) <= most:
        raise ExpressionRefused(f"{name} takes {'1 number' if most == 1 else '1 or 2 numbers'}, not {len(arguments)}")
    places = ", ".join("{}" for _ in arguments)
    return f"{name}({places})" if most else f"{name}([{places}])", arguments


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
