import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sennit.activities.programs import calculate as module
from sennit.activities.programs.calculate import CalculateArguments, calculate, evaluate
from sennit.activities.toolbox.errors import CalculationFailed, ExpressionRefused


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("6650 - 6400", 250),
        ("0.1 + 0.2", 0.3),
        ("7 // 2 + 7 % 2", 4),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("--3", 3),
        ("10 - 3 - 2", 5),
        ("6 / 4", 1.5),
        ("2 ** -1", 0.5),
        ("1_000 + .5 + 2.", 1002.5),
        ("1e3", 1000.0),
        ("2 ** 200", 2**200),
        ("(-1) ** 1000000007", -1),
        ("1 ** 10 ** 900", 1),
        ("0 ** 0", 1),
        ("2 \N{MULTIPLICATION SIGN} 3 \N{MINUS SIGN} 4 \N{DIVISION SIGN} 2", 4.0),
        ("abs(-3)", 3),
        ("min(3, 1, 2) + max([3, 1, 2])", 4),
        ("sum([1, 2, 3])", 6),
        ("sum(0.1, 0.1, 0.1)", 0.3),
        ("mean(1, 2)", 1.5),
        ("round(2.567, 2)", 2.57),
        ("round(1234, -2)", 1200),
        ("round(2.6)", 3),
        ("sqrt(2)", 1.41421356237),
        ("floor(-1.5) + ceil(1.2)", 0),
        ("log(e)", 1.0),
        ("log(8, 2)", 3.0),
        ("log10(1000)", 3.0),
        ("exp(0)", 1.0),
        ("2 * pi", 6.28318530718),
        ("0.0 * -1", 0.0),
        ("+".join(["1"] * 500), 500),
        (" ( 1 \n + 1 ) ", 2),
        ("0.1 + 0.2 == 0.3", True),
        ("6650 > 6400", True),
        ("1 < 2 < 2", False),
        ("1 != 1", False),
        ("pi >= 3", True),
    ],
)
def test_an_expression_gives_its_value_and_the_type_of_it(expression: str, value: float) -> None:
    found = evaluate(expression)
    assert found == value
    assert type(found) is type(value)
    assert math.copysign(1, found) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1 / 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("3 % 0", "division by zero"),
        ("log(2, 1)", "division by zero"),
        ("sqrt(-1)", "no real value"),
        ("log(0)", "no real value"),
        ("(-8) ** (1/3)", "not a real number"),
        ("exp(1000)", "too large"),
        ("1e308 * 10", "too large"),
        ("1 / (1e308 * 10)", "too large"),
        ("10 ** 400 * 1.0", "too large"),
        ("9 ** 9 ** 9", "power is too large"),
    ],
)
def test_what_has_no_finite_real_value_says_so(expression: str, problem: str) -> None:
    with pytest.raises(CalculationFailed, match=problem) as caught:
        evaluate(expression)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("6,650 - 6,400", "write 6650, not 6,650"),
        ("2^10", r"write \*\* for a power"),
        ("6650 km - 6400 km", "leave out units"),
        ("5kg", "without units"),
        ("nile - amazon", "'nile' is not a number"),
        ("median(1, 2)", "there is no function 'median'; there is abs, ceil"),
        ("sqrt(1, 2)", "sqrt takes 1 number, not 2"),
        ("1 + (2 < 3)", "must stand alone"),
        ("max([])", "needs at least one number"),
        ("[1, 2]", "is allowed only in min, max, sum and mean"),
        ("round(1.5, 1000)", "from -50 to 50"),
        ("1 +", "check operators"),
        ("1 is 1", "only < <= > >= == != compare"),
    ],
)
def test_what_is_refused_says_what_to_write_instead(expression: str, hint: str) -> None:
    with pytest.raises(ExpressionRefused, match=hint):
        evaluate(expression)


FORGED: list[Any] = [
    None, 7, [], {}, {"value": None}, {"value": "7"}, {"value": [7]}, {"value": math.nan}, {"value": -math.inf},
    {"value": 10**1100}, {"failure": "x"}, {"failure": 5},
]  # fmt: skip


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: str(forged)[:20])
def test_a_process_that_calculates_is_not_believed(monkeypatch: pytest.MonkeyPatch, forged: Any) -> None:
    monkeypatch.setattr(module, "_POOL", SimpleNamespace(ask=lambda _, check: check(forged)))
    with pytest.raises(CalculationFailed, match="has answered what is no value") as caught:
        evaluate("1 + 1")
    assert caught.value.retryable


def test_a_process_that_was_killed_is_a_reason_to_try_again() -> None:
    assert evaluate("1 + 1") == 2
    copies = list[psutil.Process]()
    for parent in psutil.Process().children():
        copies += [copy for copy in parent.children() if "arithmetic_service" in " ".join(copy.cmdline())]
    for copy in copies:
        copy.suspend()  # so it has not answered when it is killed
    before = free_processes()
    with ThreadPoolExecutor(1) as threads:
        calculation = threads.submit(evaluate, "1 + 1")
        while free_processes() == before:
            time.sleep(0.01)
        for copy in copies:
            copy.kill()
        with pytest.raises(CalculationFailed, match="has ended with -9") as caught:
            calculation.result(60)
    assert caught.value.retryable
    for copy in copies:
        copy.wait(60)
    assert evaluate("1 + 1") == 2


def free_processes() -> int:
    """Count them at a moment when no thread is about to take one."""
    with module._POOL._lock:
        return len(module._POOL._free)


def test_the_tool_repeats_the_expression_with_its_value() -> None:
    found = calculate(CalculateArguments(expression="6650 - 6400"))
    assert found.model_dump() == {"expression": "6650 - 6400", "value": 250}
