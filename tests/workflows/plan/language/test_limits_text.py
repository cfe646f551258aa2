"""Limits of a budget as people write them."""

from typing import Any

import pytest
from pydantic import ValidationError

from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.language.limits_text import parse_limits

EXAMPLE = "tokens=20000"


def test_limits_are_read_by_name() -> None:
    assert parse_limits(" tokens = 20000 , cost_usd=0.5,time=10m", EXAMPLE) == Limits(
        tokens=20_000, cost_usd=0.5, time="10m"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not a limit"),
        ("1000", "'1000' is not a limit"),
        ("tokens=", "the limit `tokens` has no value"),
        ("tokens=1,tokens=2", "the limit `tokens` is given twice"),
        ("tokens=007", '`tokens`: must be a whole number, not "007"'),
        ("cost_usd=00.5", '`cost_usd`: must be a number, not "00.5"'),
        ("tokens=many", '`tokens`: must be a whole number, not "many"'),
        ("token=5", "`token`"),
        ("calls=-1", "`calls`"),
    ],
)
def test_what_is_wrong_is_said_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="write for example tokens=20000") as refused:
        parse_limits(text, EXAMPLE)
    assert problem in str(refused.value)
    assert "quotes" not in str(refused.value), "nobody has written quotes"


@pytest.mark.parametrize("value", [True, "0.5"])
def test_money_is_a_number(value: Any) -> None:
    with pytest.raises(ValidationError, match="cost_usd"):
        Limits.model_validate({"cost_usd": value})
