"""Text fitted to a terminal, and JSON that cannot steer it."""

import json
import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sennit.starter.terminal.text import as_json, columns, fit


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


def test_columns_stand_below_each_other_whatever_their_script() -> None:
    rows = [("agent/nile", "done", "2 s"), ("agent/長さ", "failed", "14 s")]
    lines = columns(rows, ("the length of the Nile", "ナイル川の長さ"), 80).splitlines()
    before = [line.partition(word)[0] for line, word in zip(lines, ("the length", "ナイル川"), strict=True)]
    assert len({cell_len(each) for each in before}) == 1
