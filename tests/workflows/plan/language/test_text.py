"""Text made safe and short: nothing that a run says steers a terminal or fills a page."""

import unicodedata
from typing import Any

import pytest
from doubles.plan.junk import anything
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language.text import (
    clean,
    did_you_mean,
    format_name,
    format_names,
    format_value,
    nearest_or_known,
    one_line,
    printable,
)
from sennit.workflows.plan.limits import MAX_VALUE_CHARACTERS


@pytest.mark.parametrize(
    "attack",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07red",
        "\x1b]8;;http://evil\x1b\\red\x1b]8;;\x1b\\",
        "\x1bP1$r\x1b\\red",
        "\x9b31mred",
        "\x9d0;title\x9cred",
        "\x1bcred",
        "r\x08\x7fed",
        "r\u202eed\u2066",
        "\ufeffred\x00",
        "\x1b\x1b[2J[2Jred"[:0] + "\x1b[2Jred",
    ],
)
def test_escapes_leave_only_their_text(attack: str) -> None:
    assert clean(attack) == "red"


def test_an_unfinished_escape_loses_its_teeth_and_not_the_text() -> None:
    assert "\x1b" not in clean("\x1b]0;never ends")
    assert "never ends" in clean("\x1b]0;never ends")


def test_a_carriage_return_cannot_overwrite_a_line() -> None:
    assert clean("approved\rdenied\r\nend") == "approved\ndenied\nend"


@given(st.text(st.characters()))
def test_cleaned_text_has_no_control_character_but_line_breaks_and_tabs(text: str) -> None:
    cleaned = clean(text)
    assert {char for char in cleaned if unicodedata.category(char) in ("Cc", "Cs")} <= {"\n", "\t"}
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        (" a\n\tb\x1b[1m  c ", None, "a b c"),
        ("a\u200b b\u00a0c\ud800", None, "a b c"),
        ("x" * 11, 10, "x" * 9 + "…"),
        ("x" * 10, 10, "x" * 10),
        ("word " * 100, 10, "word word…"),
        (" " * 100 + "x", 10, "…"),
    ],
)
def test_one_line_is_cleaned_and_cut(text: str, limit: int | None, line: str) -> None:
    assert one_line(text, limit) == line


@given(st.text(st.characters()), st.none() | st.integers(2, 40))
def test_one_line_is_printable_whatever_the_text(text: str, limit: int | None) -> None:
    line = one_line(text, limit)
    assert line.isprintable()
    assert limit is None or len(line) <= limit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (-2.5, "-2.5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (10**100, "a number of 333 bits"),
        ("", '""'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a\nb\x1b\u202e\ud800", '"a\\nb\\x1b\\u202e\\ud800"'),
        ("x" * 61, f'"{"x" * 59}…"'),
        ("😀é", '"😀é"'),
        ([], "an empty list"),
        ([1, 2], "a list of 2"),
        ({}, "an empty object"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "an object with a, b, c and 1 more"),
        ({1: 2}, "an object with 1"),
        (b"x", "bytes"),
    ],
)
def test_a_value_is_shown_short_and_as_json(value: Any, text: str) -> None:
    assert format_value(value) == text


@given(anything)
def test_any_value_is_shown_on_one_short_line(value: Any) -> None:
    assert format_value(value).isprintable()
    assert len(format_value(value)) < 800


@given(st.text(), st.integers(2, 40))
def test_text_is_cut_and_made_printable(text: str, limit: int) -> None:
    made = printable(text, limit)
    assert made.isprintable()
    if text.isprintable():
        assert made == (text if len(text) <= limit else f"{text[: limit - 1]}…")


def test_names_are_listed_up_to_a_number() -> None:
    assert format_names([]) == "none"
    assert format_names(["a", "b"]) == "a, b"
    assert format_names([f"n{number}" for number in range(25)], 2) == "n0, n1 and 23 more"
    assert format_names(["a\nb"]) == "a\\nb"


def test_a_name_stands_in_backticks_whatever_it_holds() -> None:
    assert format_name("a b\n") == "`a b\\n`"
    assert len(format_name("x" * 1_000)) == MAX_VALUE_CHARACTERS + 2


def test_the_nearest_name_is_offered_when_there_is_one() -> None:
    assert did_you_mean("serch", ["search", "read"]) == "; did you mean `search`?"
    assert did_you_mean("zzz", ["search", "read"]) == ""
    assert did_you_mean("x" * 1_000_000, ["search"]) == ""


def test_without_a_similar_name_the_known_ones_are_listed() -> None:
    assert nearest_or_known("serch", ["search", "read"]) == "; did you mean `search`?"
    assert nearest_or_known("zzz", ["search", "read"]) == "; known: search, read"


def test_among_ten_thousand_names_one_of_about_the_same_length_is_found() -> None:
    names = [f"node_{number}" for number in range(10_000)]
    assert did_you_mean("nod_42", names).startswith("; did you mean `node_")
