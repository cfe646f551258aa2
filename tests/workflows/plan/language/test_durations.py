"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language.limits import duration_text, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("5m", 300), ("24h", 86_400), ("30d", 2_592_000), ("1.5h", 5_400), ("0.25s", 0.25)],
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "5", "s", "-5s", "5 s", "5S", "1e3s", "5s ", "5s\n", "0s", "0.4ms", "31d", "9" * 400 + "s", 5.0, None, ["5s"]],
)
def test_anything_else_is_refused_with_the_accepted_forms(value: object) -> None:
    with pytest.raises(ValueError, match=r"30s, 5m|at most 30d"):
        parse_duration(value)


@given(st.integers(1, 30 * 86_400_000))
def test_every_duration_is_read_back_as_it_was_written(millis: int) -> None:
    assert parse_duration(format_duration(millis / 1000)) == millis / 1000


@pytest.mark.parametrize(("seconds", "text"), [(86_400, "1d"), (5_400, "90m"), (1_234.567, "1234567ms"), (90, "90s")])
def test_the_longest_unit_that_is_exact_is_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, ""),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (59_960, "1 m 00 s"),
        (125_000, "2 m 05 s"),
        (3_600_000, "1 h 00 m"),
        (90_061_000, "25 h 01 m"),
    ],
)
def test_durations_read_well(ms: float | None, text: str) -> None:
    assert duration_text(ms) == text
