"""What the processes do that calculate: they take one operation after the other, and
bound the value of each.

Standard library only. No text is evaluated: an operation is one of a table, by its name.
"""

import json
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import ceil, e, exp, floor, fsum, isfinite, log, log10, pi, sqrt
from typing import Any, Final

from sennit.activities.sandbox.computing_parent import Answer

Number = int | float

_MAX_BITS: Final = 3400  # about 1,000 decimal digits
_MAX_ROUNDED_DIGITS: Final = 50


class Refused(Exception):
    """There is no value; the message is the name of the reason."""


def prepare() -> None:
    """Nothing has to be loaded."""


def answer(request: bytes) -> Answer:
    """Calculate the steps of a request, and say the value or the name of the
    reason why there is none.
    """
    said: dict[str, Any]
    try:
        said = {"value": value_of(json.loads(request))}
    except Refused as refusal:
        said = {"failure": str(refusal)}
    except ZeroDivisionError:
        said = {"failure": "zero"}
    except (OverflowError, MemoryError):
        said = {"failure": "large"}
    except ValueError:
        said = {"failure": "not real"}
    return Answer(json.dumps(said).encode())


def value_of(request: Mapping[str, Any]) -> Number | bool:
    """Return the value of the last step, or whether the `sides`, each the place of a step,
    compare as the `signs` say.

    A step is an operation and its operands: numbers for `number`, else the
    places of steps before it.
    """
    values = list[Number]()
    for operation, operands in request["steps"]:
        if operation == "number":
            value = operands[0]
        else:
            numbers = [values[place] for place in operands]
            value = _OPERATIONS[operation](*numbers)
        values.append(_bounded(value))
    sides = [_shown(values[place]) for place in request["sides"]]
    if len(sides) == 1:
        return sides[0]
    for sign, (left, right) in zip(request["signs"], pairwise(sides), strict=True):
        if not _COMPARISONS[sign](left, right):
            return False
    return True


def _bounded(value: Any) -> Number:
    if not isinstance(value, int | float):
        raise Refused("complex")
    if not is_bounded(value):
        raise Refused("infinite")
    return value


def is_bounded(value: Number) -> bool:
    """Whether a number is finite, and has 1,000 digits at most if it is whole."""
    if isinstance(value, float):
        return isfinite(value)
    return value.bit_length() <= _MAX_BITS


def _shown(value: Number) -> Number:
    """Return a value with 12 significant digits, and no zero with a sign; a
    whole number is exact.
    """
    if not isinstance(value, float):
        return value
    return float(f"{value:.12g}") + 0.0


def _power(base: Number, exponent: Number) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        least_bits = (abs(base).bit_length() - 1) * exponent
        if least_bits > _MAX_BITS:
            raise Refused("power")
    return base**exponent


def _sum(*values: Number) -> Number:
    if any(isinstance(value, float) for value in values):
        return fsum(values)
    return sum(values)


def _mean(*values: Number) -> Number:
    return _sum(*values) / len(values)


def _least(*values: Number) -> Number:
    return min(values)


def _greatest(*values: Number) -> Number:
    return max(values)


def _round(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > _MAX_ROUNDED_DIGITS:
        raise Refused("digits")
    return round(value, digits) if digits else round(value)


_OPERATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "pi": lambda: pi,
    "e": lambda: e,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
    "plus": operator.pos,
    "minus": operator.neg,
    "min": _least,
    "max": _greatest,
    "sum": _sum,
    "mean": _mean,
    "abs": abs,
    "round": _round,
    "sqrt": sqrt,
    "floor": floor,
    "ceil": ceil,
    "log": log,
    "log10": log10,
    "exp": exp,
}
_COMPARISONS: Final[Mapping[str, Callable[[Number, Number], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
