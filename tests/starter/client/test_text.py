"""Nothing that a run says steers the terminal."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from starter.client.text import as_json, clean, fit, flat


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


@given(st.text(st.characters()), st.integers(0, 40))
def test_fitted_text_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = fit(text, width)
    assert "\n" not in line
    assert cell_len(line) <= width


def test_what_is_cut_is_marked_and_wide_characters_count_twice() -> None:
    assert fit("length of the Nile", 10) == "length of…"
    assert fit("長さ長さ", 5) == "長さ…"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    )
)
def test_json_is_read_back_and_has_no_raw_control_character(value: Any) -> None:
    text = as_json(value)
    assert json.loads(text) == value
    assert not [char for char in text if unicodedata.category(char) in ("Cc", "Cs")]
    assert "\u202e" not in text


def test_flat_text_is_one_line() -> None:
    assert flat(" a\n\tb\x1b[1m  c ") == "a b c"
