"""`calculate`: arithmetic over an allow-list of syntax, every number bounded, in a process
that can only compute.
"""

import ast
import json
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.limits import (
    MAX_CALCULATION_BYTES,
    MAX_CALCULATOR_BYTES,
    MAX_EXPRESSION_LEVELS,
)
from sennit.activities.programs.arithmetic_service import is_bounded
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.computing_pool import ComputingPool
from sennit.activities.programs.reading import PARSER
from sennit.activities.sandbox.computing import NoAnswer, ProcessEnded, Service
from sennit.activities.toolbox.errors import CalculationFailed, ExpressionRefused
from sennit.activities.toolbox.registry import tool

_MODULE: Final = "sennit.activities.programs.arithmetic_service"
_SECONDS: Final = 4
"""Of processor time, within the 5 s that a call may take."""

_ASCII: Final = str.maketrans(
    {"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"}
)
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.,+\-*/%()\[\]<>=! \t\n]*\Z")
_NUMBER: Final = re.compile(r"(?<![\w.])[\d.][\w.]*")
_DECIMAL: Final = re.compile(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE]\d*)?\Z")
_OPERATORS: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**",
}  # fmt: skip
_SIGNS: Final[Mapping[type[ast.unaryop], str]] = {ast.UAdd: "plus", ast.USub: "minus"}
_COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, int | None]] = {
    "min": None, "max": None, "sum": None, "mean": None,
    "abs": 1, "round": 2, "sqrt": 1, "floor": 1, "ceil": 1, "log": 2, "log10": 1, "exp": 1,
}  # fmt: skip
"""Each with the most numbers it takes; None for any number of them, or a list."""
_TOO_LONG: Final = "it takes too long"
_FAILURES: Final = {
    "zero": "division by zero",
    "large": "a value is too large",
    "not real": "there is no real value, as for sqrt or log of a negative number",
    "complex": "the value is not a real number",
    "infinite": "a value is too large or not finite",
    "power": "the power is too large",
}
_DIGITS: Final = "digits"
_BAD_DIGITS: Final = "round takes a whole number of digits from -50 to 50"
_POOL: Final = ComputingPool(
    "calculates", Service(_MODULE, MAX_CALCULATOR_BYTES, _SECONDS, MAX_CALCULATION_BYTES)
)
"""Of this worker; its processes start with the first calculation."""


class CalculateArguments(BaseModel):
    """What to calculate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expression: Annotated[
        str, Field(min_length=1, max_length=1000, description="Such as (6650 - 6400) / 6400 * 100")
    ]


class Calculation(BaseModel):
    """The expression and its value: an integer, a number of 12 significant digits, or a truth value."""  # noqa: E501 - models read it

    expression: str
    value: bool | int | float


@tool(effect="pure", timeout="5s", typical="5ms")
def calculate(args: CalculateArguments) -> Calculation:
    """Calculate an arithmetic expression of numbers, + - * / // % **, parentheses, pi, e, one
    comparison, and abs min max round sqrt sum mean floor ceil log log10 exp (min, max, sum and mean
    take numbers or a [list]).

    Integers stay exact up to 1,000 digits; other values have 12 significant digits.
    """
    return Calculation(expression=args.expression, value=evaluate(args.expression))


def evaluate(expression: str) -> int | float | bool:
    """Return the value of `expression`. Not to be called in an event loop.

    Raises ExpressionRefused for syntax outside the allow-list, CalculationFailed for values outside
    the bounds; it is retryable if something has ended the process that calculates.
    """
    body = _parse(expression.translate(_ASCII).strip())
    request = json.dumps(_calculation(body)).encode()
    try:
        found = _POOL.ask(request, _value_of)
    except ProcessEnded as end:
        if end.status == -signal.SIGXCPU:
            raise CalculationFailed(_TOO_LONG) from end
        raise CalculationFailed(f"the calculator: {end}", retryable=True) from end
    except (NoAnswer, InterpreterCrashed) as error:
        raise CalculationFailed(f"the calculator: {error}", retryable=True) from error
    if isinstance(found, _Failure):
        if found.reason == _DIGITS:
            raise ExpressionRefused(_BAD_DIGITS)
        raise CalculationFailed(_FAILURES[found.reason])
    return found


@dataclass(frozen=True, slots=True)
class _Failure:
    """An expression has no value, for a reason that the worker knows."""

    reason: str


def _value_of(answer: Any) -> int | float | bool | _Failure:
    """Return the value in an answer, or why there is none. Raises NoAnswer: the worker believes no
    value that is none, and no failure that it does not know.
    """
    match answer:
        case {"value": bool() | int() | float() as value} if is_bounded(value):
            return value
        case {"failure": str() as reason} if reason in _FAILURES or reason == _DIGITS:
            return _Failure(reason)
    raise NoAnswer("the process has answered what is no value")


def _parse(expression: str) -> ast.expr:
    for character in expression:
        if not _ALLOWED.match(character):
            hint = "; write ** for a power" if character == "^" else ""
            raise ExpressionRefused(f"{character!r} is not allowed in arithmetic{hint}")
    for number in _NUMBER.findall(expression):
        if not _DECIMAL.match(number):
            raise ExpressionRefused(
                f"{number[:40]!r} is not a decimal number; write numbers without units"
            )
    try:
        with PARSER:
            return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        problem = "this is not arithmetic; check operators and parentheses, and leave out units"
        raise ExpressionRefused(problem) from None


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation by its name: for `number` its value, for all others what it is done to."""

    name: str
    operands: Sequence[ast.expr] = ()
    number: int | float | None = None


@dataclass(slots=True)
class _Planned:
    """A part of an expression that becomes a step, and the places of its operands in
    the list of such parts.
    """

    node: ast.expr
    depth: int
    operation: _Operation = _Operation("")
    operands: list[int] = field(default_factory=list)


def _calculation(body: ast.expr) -> dict[str, Any]:
    """Return an expression as steps, one operation each; the operands of a
    step are steps before it.

    So a long sum is not a deep one. Raises ExpressionRefused.
    """
    sides = [body]
    signs = list[str]()
    if isinstance(body, ast.Compare):
        sides = [body.left, *body.comparators]
        for sign in body.ops:
            if type(sign) not in _COMPARISONS:
                raise ExpressionRefused("only < <= > >= == != compare")
            signs.append(_COMPARISONS[type(sign)])
    planned = [_Planned(side, 0) for side in sides]
    # The list grows while it is walked: the operands of a part come after it.
    for part in planned:
        if part.depth > MAX_EXPRESSION_LEVELS:
            raise ExpressionRefused(f"the expression is nested deeper than {MAX_EXPRESSION_LEVELS}")
        part.operation = _operation(part.node)
        is_chain = isinstance(part.node, ast.BinOp)
        for number, operand in enumerate(part.operation.operands):
            part.operands.append(len(planned))
            is_next_in_chain = is_chain and number == 0
            depth = part.depth
            if not is_next_in_chain:
                depth += 1
            planned.append(_Planned(operand, depth))
    # The last part is calculated first.
    last = len(planned) - 1
    steps = list[tuple[str, list[Any]]]()
    for part in reversed(planned):
        if part.operation.name == "number":
            steps.append(("number", [part.operation.number]))
        else:
            operands = [last - place for place in part.operands]
            steps.append((part.operation.name, operands))
    places = [last - place for place in range(len(sides))]
    return {"steps": steps, "sides": places, "signs": signs}


def _operation(node: ast.expr) -> _Operation:
    """Return what a part of an expression does. Raises ExpressionRefused."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _Operation("number", number=number)
        case ast.Name(id="pi" | "e" as name):
            return _Operation(name)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            return _Operation(_SIGNS[type(sign)], [operand])
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _Operation(_OPERATORS[type(sign)], [left, right])
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _Operation(name, _arguments(name, arguments))
        case _:
            raise ExpressionRefused(_refusal(node))


def _arguments(name: str, arguments: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """Return the numbers that a function is called with. Raises ExpressionRefused."""
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS))
        raise ExpressionRefused(f"there is no function {name[:40]!r}; there is {known}")
    most = _FUNCTIONS[name]
    if most is None:
        match arguments:
            case [ast.List(elts=items)]:
                arguments = items
        if not arguments:
            raise ExpressionRefused(f"{name} needs at least one number")
    elif not 1 <= len(arguments) <= most:
        numbers = "1 number" if most == 1 else "1 or 2 numbers"
        raise ExpressionRefused(f"{name} takes {numbers}, not {len(arguments)}")
    return arguments


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
