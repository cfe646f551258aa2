"""How problems read: their place, the values in them, the nearest name."""

import time
from typing import Any

import pytest
from doubles.plan.junk import anything
from hypothesis import given
from hypothesis import strategies as st

from workflows.plan.language.problems import (
    SENTENCE_CHARACTERS,
    SHOWN_CHARACTERS,
    InvalidPlan,
    Problem,
    Where,
    listed,
    named,
    nearest,
    place_of,
    printable,
    shown,
)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ((), ""),
        (("answer",), "answer"),
        (("nodes", 3, "args", "query"), "nodes[3].args.query"),
        (("groups", 0, 1), "groups[0][1]"),
        (("nodes", 0, "args", "two words"), 'nodes[0].args["two words"]'),
        (("nodes", 0, "args", "max-items"), "nodes[0].args.max-items"),
        (("inputs", ""), 'inputs[""]'),
        (("a\nb",), '["a\\nb"]'),
        (("\u202e",), '["\\u202e"]'),
        (("x" * 200,), f'["{"x" * 59}…"]'),
        (("größe",), "größe"),
    ],
)
def test_a_place_reads_as_people_write_it(where: Where, text: str) -> None:
    assert place_of(where) == text


def test_a_problem_reads_place_first_and_an_invalid_plan_has_a_line_each() -> None:
    first, second = Problem("a", ("nodes", 0), "one"), Problem("b", (), "two")
    assert str(InvalidPlan([first, second])) == "nodes[0]: one\ntwo"
    assert InvalidPlan(iter([first])).problems == (first,)


def test_a_sentence_is_one_printable_line_of_bounded_length() -> None:
    assert Problem("a", (), "two\nlines\ud800").message == "two\\nlines\\ud800"
    assert len(Problem("a", (), "x" * 10_000).message) == SENTENCE_CHARACTERS


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
    assert shown(value) == text


@given(anything)
def test_any_value_is_shown_on_one_short_line(value: Any) -> None:
    assert shown(value).isprintable()
    assert len(shown(value)) < 800


@given(st.text(), st.integers(2, 40))
def test_text_is_cut_and_made_printable(text: str, limit: int) -> None:
    made = printable(text, limit)
    assert made.isprintable()
    if text.isprintable():
        assert made == (text if len(text) <= limit else f"{text[: limit - 1]}…")


def test_names_are_listed_up_to_a_number() -> None:
    assert listed([]) == "none"
    assert listed(["a", "b"]) == "a, b"
    assert listed([f"n{number}" for number in range(25)], 2) == "n0, n1 and 23 more"
    assert listed(["a\nb"]) == "a\\nb"


def test_a_name_stands_in_backticks_whatever_it_holds() -> None:
    assert named("a b\n") == "`a b\\n`"
    assert len(named("x" * 1_000)) == SHOWN_CHARACTERS + 2


def test_the_nearest_name_is_offered_when_there_is_one() -> None:
    assert nearest("serch", ["search", "read"]) == "; did you mean `search`?"
    assert nearest("zzz", ["search", "read"]) == ""
    assert nearest("x" * 1_000_000, ["search"]) == ""


def test_among_ten_thousand_names_the_nearest_is_found_quickly() -> None:
    names = [f"node_{number}" for number in range(10_000)]
    began = time.perf_counter()
    assert nearest("nod_42", names).startswith("; did you mean `node_")
    assert time.perf_counter() - began < 1
