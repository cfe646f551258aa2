"""Conditions: decided on facts alone, and never by guessing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sennit.workflows.plan.language.conditions import (
    Condition,
    ConditionError,
    comparisons_of,
    facts_read,
    holds,
    moved,
)
from sennit.workflows.plan.language.facts import MISSING

FACTS: dict[str, Any] = {"$n": 3, "$t": "long river", "$b": True, "$null": None, "$f": 2.5}


def decide(condition: dict[str, Any]) -> bool:
    """Decide on FACTS; every other reference has no value."""
    return holds(condition, lambda found: FACTS.get(found["ref"], MISSING))


def that(ref: str, op: str, value: Any = None) -> dict[str, Any]:
    """One comparison."""
    return {"ref": ref, "op": op, "value": value}


@pytest.mark.parametrize(
    ("ref", "op", "value"),
    [
        ("$n", "eq", 3),
        ("$n", "eq", 3.0),
        ("$n", "ne", 4),
        ("$n", "lt", 3.5),
        ("$n", "le", 3),
        ("$n", "gt", 2),
        ("$n", "ge", 3),
        ("$n", "in", [1, 3]),
        ("$t", "contains", "river"),
        ("$t", "lt", "m"),
        ("$null", "eq", None),
        ("$null", "exists", None),
        ("$b", "eq", True),
    ],
)
def test_a_comparison_that_holds(ref: str, op: str, value: Any) -> None:
    assert decide(that(ref, op, value))


@pytest.mark.parametrize(
    ("ref", "op", "value"),
    [
        ("$n", "eq", "3"),
        ("$n", "ne", 3),
        ("$n", "in", []),
        ("$b", "eq", 1),
        ("$b", "in", [1, "true"]),
        ("$t", "eq", None),
    ],
)
def test_a_comparison_that_does_not_hold(ref: str, op: str, value: Any) -> None:
    assert not decide(that(ref, op, value))


@pytest.mark.parametrize(
    ("ref", "op", "value", "says"),
    [
        ("$gone", "eq", 1, r"\$gone has no value, so `eq` cannot be decided"),
        ("$gone", "ne", 1, r"\$gone has no value"),
        ("$n", "lt", "4", "cannot compare 3 with '4'"),
        ("$b", "gt", 0, "cannot compare True with 0"),
        ("$null", "lt", 1, "cannot compare None with 1"),
        ("$n", "in", 3, "needs a list"),
        ("$n", "contains", "3", "looks for text in text"),
    ],
)
def test_what_cannot_be_decided_is_an_error_with_the_reference(ref: str, op: str, value: Any, says: str) -> None:
    with pytest.raises(ConditionError, match=says):
        decide(that(ref, op, value))


def test_a_missing_fact_makes_exists_false_and_so_can_guard_what_follows() -> None:
    assert not decide(that("$gone", "exists"))
    assert not decide({"and": [that("$gone", "exists"), that("$gone", "gt", 1)]})
    assert decide({"or": [{"not": that("$gone", "exists")}, that("$gone", "gt", 1)]})


def test_a_test_decided_beforehand_needs_no_fact() -> None:
    assert decide({**that("$input.x", "gt", 1), "is": True})
    assert decide({"not": {**that("$input.x", "gt", 1), "is": False}})


BARE = st.builds(that, st.sampled_from(["$n", "$f"]), st.sampled_from(["lt", "ge", "eq"]), st.integers(0, 5))
CONDITIONS = st.recursive(
    BARE,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=8,
)


def _meaning(condition: dict[str, Any]) -> bool:
    if "not" in condition:
        return not _meaning(condition["not"])
    if "and" in condition:
        return all(_meaning(part) for part in condition["and"])
    if "or" in condition:
        return any(_meaning(part) for part in condition["or"])
    left, right = FACTS[condition["ref"]], condition["value"]
    return bool({"lt": left < right, "ge": left >= right, "eq": left == right}[condition["op"]])


@given(CONDITIONS)
def test_and_or_and_not_mean_what_they_say(condition: dict[str, Any]) -> None:
    assert decide(condition) == _meaning(condition)


@given(CONDITIONS)
def test_a_condition_survives_its_way_through_json(condition: dict[str, Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Condition)
    parsed = adapter.validate_python(condition)
    again = parsed.model_dump(mode="json", by_alias=True)
    assert adapter.validate_json(adapter.dump_json(parsed, by_alias=True)) == parsed
    assert decide(again) == decide(condition)
    for place, test in comparisons_of(parsed):
        here: Any = condition
        for step in place:
            here = here[step]
        assert here["ref"] == test.ref


@pytest.mark.parametrize(
    "wrong",
    [{}, {"and": []}, {"ref": "$a", "op": "like"}, {"ref": "$a", "op": "eq", "values": 1}, "x > 3", {"not": []}],
)
def test_any_other_shape_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Condition).validate_python(wrong)


def test_a_compiled_condition_is_moved_and_the_old_one_stays_as_it_was() -> None:
    tests = [{"ref": "$a.n", "op": "gt", "value": 1, "at": [0, "n"]}, {"ref": "$input.x", "op": "exists", "is": True}]
    compiled: dict[str, Any] = {"and": [tests[0], {"not": {"or": [tests[1], {**tests[0], "at": [2, "m"]}]}}]}
    assert facts_read(moved(compiled, lambda place: place + 5)) == [(5, "n"), (7, "m")]
    assert facts_read(compiled) == [(0, "n"), (2, "m")]
