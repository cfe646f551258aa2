"""JSON with lines, as strict as a plan needs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starter.plans.json_text import read_json
from starter.plans.positions import Misread, find, plain

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
)


@given(_JSON, st.none() | st.integers(0, 3), st.booleans())
def test_json_reads_as_the_standard_library_reads_it(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(read_json(text)) == json.loads(text)


@given(st.text(st.characters()) | st.text('{}[]":,0123456789.eE-+ \n\\truefalsn'))
def test_whatever_the_text_it_is_read_as_json_or_refused(text: str) -> None:
    try:
        read = plain(read_json(text))
    except Misread:
        return
    assert read == json.loads(text)


def test_each_value_knows_its_line() -> None:
    root = read_json('{\n "nodes": [\n  {"id": "a"},\n  {"id":\n   "b"}\n ]\n}')
    lines = {
        path: find(root, path).line for path in [(), ("nodes",), ("nodes", 0, "id"), ("nodes", 1), ("nodes", 1, "id")]
    }
    assert list(lines.values()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"a": 1,\n "a": 2}', 2, "the key `a` is already on line 1"),
        ('{"a": NaN}', 1, "NaN is no number a plan can hold"),
        ("[1,\n-Infinity]", 2, "-Infinity is no number"),
        ('{"a": 1e999}', 1, "a number too big to keep"),
        ('{"a": ' + "9" * 5000 + "}", 1, "digits"),
        ('{"a": "\\ud800"}', 1, "half of a surrogate pair"),
        ("[" * 200, 1, "nested more than 100 levels deep"),
        ('{"a":\n\n}', 3, "expecting value"),
        ("", 1, "the text ends here"),
        ('{"a" 1}', 1, "expected `:` after the key `a`"),
        ("{a: 1}", 1, "expected a key in double quotes"),
        ("[1\n2]", 2, "expected `,` or `]`"),
        ("[1,\n]", 2, "a comma before `]`"),
        ("[yes]", 1, "`yes` is not JSON"),
        ("{}\n{}", 2, "text after the end"),
        ('"a\nb"', 1, "invalid control character"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(Misread, match=problem.replace("[", r"\[")) as caught:
        read_json(text)
    assert caught.value.line == line


def test_more_values_than_any_plan_has_are_refused() -> None:
    with pytest.raises(Misread, match="more than 500,000 values"):
        read_json("[" + "1," * 500_001 + "1]")
