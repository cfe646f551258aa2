"""`calculate`: arithmetic over an allow-list of syntax; nothing is ever executed."""

import ast
import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from activities.toolbox.arithmetic import Evaluator, settled
from activities.toolbox.errors import CalculationFailed, ExpressionRefused
from activities.toolbox.registry import tool

_SIGNS: Final = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"})
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.,+\-*/%()\[\]<>=! \t\n]*\Z")
_NUMBER: Final = re.compile(r"(?<![\w.])[\d.][\w.]*")
_DECIMAL: Final = re.compile(r"(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE]\d*)?\Z")


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


def evaluate(expression: str) -> bool | int | float:
    """Return the value of `expression`; raises ExpressionRefused or CalculationFailed, within milliseconds."""
    body = _parse(expression.translate(_SIGNS).strip())
    try:
        return settled(Evaluator().value(body))
    except ZeroDivisionError:
        raise CalculationFailed("division by zero") from None
    except OverflowError:
        raise CalculationFailed("a value is too large") from None
    except ValueError:
        raise CalculationFailed("a function has no real value there, such as sqrt or log of a negative") from None


def _parse(expression: str) -> ast.expr:
    if not _ALLOWED.match(expression):
        bad = next(character for character in expression if not _ALLOWED.match(character))
        hint = "; write ** for a power" if bad == "^" else ""
        raise ExpressionRefused(f"{bad!r} has no place in arithmetic{hint}")
    for number in _NUMBER.findall(expression):
        if not _DECIMAL.match(number):
            raise ExpressionRefused(f"{number[:40]!r} is not a decimal number; write numbers without units")
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionRefused(
            "this is not arithmetic; check operators and parentheses, and leave out units"
        ) from None
