"""Inputs as declared against inputs as given, before anything runs."""

from typing import Any

import pytest
from doubles.plan.junk import anything
from doubles.plan.samples import each, llm, plan, tool
from hypothesis import given, settings

from sennit.workflows.plan.checking.inputs import bind_inputs, input_problems
from sennit.workflows.plan.language.parser import parse_plan

PLAN = parse_plan(
    plan(
        llm("b", "$input.city"),
        inputs={
            "city": {"type": "string"},
            "count": {"type": "integer", "default": 3},
            "depth": {"type": "number", "default": None},
            "rows": {"type": "array", "default": []},
            "deep": {"type": "object", "default": {}},
            "on": {"type": "boolean", "default": False},
        },
    )
)


def messages(given: dict[str, Any], of: Any = PLAN) -> list[str]:
    return [str(item) for item in input_problems(of, given)]


@pytest.mark.parametrize(
    "given_",
    [
        {"city": "Rome"},
        {"city": "", "count": -1, "depth": 2.5, "rows": [1, "x"], "deep": {"a": None}, "on": True},
        {"city": "Rome", "depth": None},
        {"city": "Rome", "count": 3.0, "depth": 2},
    ],
)
def test_inputs_that_fit_pass(given_: dict[str, Any]) -> None:
    assert messages(given_) == []


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        ({}, "inputs.city: input `city` is missing; give it with --input city=..."),
        (
            {"city": "x", "citi": 1},
            "inputs.citi: the plan declares no input `citi`; did you mean `city`?; declared: city, count",
        ),
        ({"city": "x", "a b\n": 1}, 'inputs["a b\\n"]: the plan declares no input `a b\\n`; declared: city'),
        ({"city": 7}, "inputs.city: wanted string, not 7"),
        ({"city": None}, "inputs.city: wanted string, not null"),
        ({"city": "x", "count": "3"}, 'inputs.count: wanted integer, not "3"'),
        ({"city": "x", "count": 2.5}, "inputs.count: wanted integer, not 2.5"),
        ({"city": "x", "count": None}, "inputs.count: wanted integer, not null"),
        ({"city": "x", "depth": True}, "inputs.depth: wanted number or null, not true"),
        ({"city": "x", "rows": {"a": 1}}, "inputs.rows: wanted array, not an object with a"),
        ({"city": "x", "deep": []}, "inputs.deep: wanted object, not an empty list"),
        ({"city": "x", "on": 1}, "inputs.on: wanted boolean, not 1"),
        ({"city": "\ud800"}, 'inputs.city: "\\ud800" holds half a surrogate pair'),
        ({"city": "x", "deep": {"a": [float("nan")]}}, "inputs.deep.a[0]: NaN is no number that JSON can hold"),
    ],
)
def test_each_that_does_not_fit_is_reported_by_name(given_: dict[str, Any], sentence: str) -> None:
    (message,) = messages(given_)
    assert sentence in message


def test_what_is_not_given_has_its_default() -> None:
    assert bind_inputs(PLAN, {"city": "Rome", "count": 5}) == {
        "city": "Rome",
        "count": 5,
        "depth": None,
        "rows": [],
        "deep": {},
        "on": False,
    }


def test_a_map_over_an_input_is_judged_with_the_list_it_gets() -> None:
    of = parse_plan(plan(each("m", "$input.deep.rows", max_items=2), inputs={"deep": {"type": "object"}}))
    assert messages({"deep": {"rows": [1, 2]}}, of) == []
    assert messages({"deep": {"rows": [1, 2, 3]}}, of) == [
        "nodes[0].over: `$input.deep.rows` has 3 items; max_items is 2"
    ]
    assert messages({"deep": {"rows": "x"}}, of) == ["nodes[0].over: `$input.deep.rows` is not a list; give one"]
    assert messages({"deep": {}}, of)[0].startswith(
        "nodes[0].over: ${input.deep.rows} has no value: $input.deep is an empty"
    )


def test_a_condition_cannot_test_an_input_of_over_256_bytes() -> None:
    when = {"and": [{"ref": "$input.text", "op": "contains", "value": "x"}, {"ref": "$input.text", "op": "exists"}]}
    of = parse_plan(plan(tool(when=when), inputs={"text": {"type": "string"}}))
    assert messages({"text": "x" * 256}, of) == []
    assert messages({"text": "é" * 129}, of) == [
        "nodes[0].when.and[0].ref: a condition tests it, but `text` is 258 bytes; a condition tests at most 256"
    ]


@settings(max_examples=80, deadline=None)
@given(anything)
def test_any_values_are_judged_in_sentences(value: Any) -> None:
    for given_ in (value if isinstance(value, dict) else {}, dict.fromkeys(PLAN.inputs, value)):
        for message in messages(given_):
            assert message.isprintable()
