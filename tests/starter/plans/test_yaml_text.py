"""YAML as JSON data with lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.starter.plans.yaml_text import BadSyntax, YamlText


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("nodes: []\nnodes: []", 2, "the key `nodes` is already on line 1"),
        ("nodes:\n- {id: a, id: b}", 2, "the key `id` is already on line 2"),
        ("a: .nan", 1, "is not a number a plan can hold"),
        ("a: 1\nb: -.inf", 2, "is not a number a plan can hold"),
        ("on: 1", 1, "YAML reads the key `on` as true; write it as 'on'"),
        ("a: {No: 1}", 1, "YAML reads the key `No` as false; write it as 'No'"),
        ("1: x", 1, "the key `1` is read as a value"),
        ("? [a]\n: x", 1, "a key is text"),
        ("a: !!python/object:os.system x", 1, "has no meaning in a plan"),
        ("a: !x {b: 1}", 1, "the tag `!x` has no meaning"),
        ("a: !!set {b}", 1, "the tag `set` has no meaning"),
        ("a: &a {b: 1}\nc:\n  <<: *a", 3, "merge keys"),
        ("a: &a [*a]", 1, "cannot contain itself"),
        ("a: 1\nb: *nope", 2, "undefined alias"),
        ("a: 1\n---\nb: 1", 2, "a second document"),
        ("a: [1\nb: 2", 2, "expected"),
        ("a:\n\t- b", 2, "tab"),
        ("a: 'x", 1, "quoted scalar"),
        ("", 1, "the file is empty"),
        ("# only this", 1, "the file is empty"),
        ("a: !!int x", 1, "`x` is no int"),
        ("a: " + "[" * 100_000, 1, "nested more than 100 levels"),
        ("a: \x07", 1, "no such character"),
    ],
)
def test_text_that_is_no_plan_data_is_refused_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(BadSyntax) as caught:
        YamlText(text)
    assert problem in str(caught.value)
    assert caught.value.line == line


def test_dates_stay_text_and_aliases_are_written_out() -> None:
    value = {"c": [1, 2.5, None, None, True]}
    text = "a: 2026-01-01\nb: &x {c: [1, 2.5, null, ~, true]}\nd: [*x, *x]"
    assert YamlText(text).data == {"a": "2026-01-01", "b": value, "d": [value, value]}


def test_each_part_knows_its_line() -> None:
    text = YamlText("nodes:\n- id: a\n-\n  id:\n    yes\n")
    assert [text.line(where) for where in [(), ("nodes",), ("nodes", 0, "id"), ("nodes", 1), ("nodes", 1, "id")]] == [
        1, 2, 2, 4, 5,
    ]  # fmt: skip
    assert text.line(("nodes", 7, "gone")) == 2
    assert "YAML reads `yes` as true" in text.hint(("nodes", 1, "id"))
    assert text.hint(("nodes", 0, "id")) == ""


@given(st.text(max_size=60) | st.text("{}[]:,-&*!|>'\"%@ \n\tab01.~?#", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        data = YamlText(text).data
    except BadSyntax:
        return
    json.dumps(data, allow_nan=False)
