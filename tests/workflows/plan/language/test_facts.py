"""Facts: what a condition may read of an output."""

import pytest

from sennit.workflows.plan.language.facts import FactTooLarge, facts_of

OUTPUT = {"count": 3, "items": [{"name": "Nile"}, {"name": "Amazon"}], "note": None, "deep": {"length": 7}}


def test_a_fact_is_the_scalar_at_its_path() -> None:
    wanted = ["count", "items[0].name", "note", "deep.length"]
    assert facts_of(OUTPUT, wanted) == {"count": 3, "items[0].name": "Nile", "note": None, "deep.length": 7}


def test_the_length_of_a_list_is_a_fact() -> None:
    assert facts_of(OUTPUT, ["items.length"]) == {"items.length": 2}
    assert facts_of([1, 2, 3], ["length"]) == {"length": 3}


def test_a_dot_is_the_whole_value() -> None:
    assert facts_of("text", ["."]) == {".": "text"}


def test_a_path_that_is_not_there_is_no_fact() -> None:
    assert facts_of(OUTPUT, ["missing", "items[9]", "count.length", "note.x", "items.name"]) == {}


def test_a_question_mark_only_asks_whether_the_path_exists() -> None:
    assert facts_of(OUTPUT, ["?items", "?note", "?missing"]) == {"?items": True, "?note": True}


@pytest.mark.parametrize("output", ["x" * 257, "é" * 129, ["a"], {"a": 1}, "\ud800" * 100])
def test_what_is_no_small_scalar_is_refused_with_its_path(output: object) -> None:
    with pytest.raises(FactTooLarge, match=r"`here`"):
        facts_of({"here": output}, ["here"])


def test_text_of_256_bytes_and_broken_text_still_are_facts() -> None:
    assert facts_of("x" * 256, ["."]) == {".": "x" * 256}
    assert facts_of("\ud800", ["."]) == {".": "\ud800"}
