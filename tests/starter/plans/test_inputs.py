"""Inputs of a plan from the command line."""

from typing import Any

import pytest

from sennit.starter.client.errors import Refused
from sennit.starter.plans.inputs import read_inputs, read_value
from sennit.workflows.plan.language.nodes import InputSpec

SPECS = {"city": InputSpec(type="string"), "count": InputSpec(type="integer", default=None)}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "7", "7"),
        ("string", "a=b", "a=b"),
        ("string", "", ""),
        ("integer", "-7", -7),
        ("number", "2.5", 2.5),
        ("number", "3", 3),
        ("boolean", "true", True),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": 1}', {"a": 1}),
    ],
)
def test_a_value_is_read_by_its_declared_type(kind: str, text: str, value: Any) -> None:
    assert read_value("x", text, kind) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "1.5"),
        ("integer", "true"),
        ("integer", "9" * 5000),
        ("number", "NaN"),
        ("number", "1e999"),
        ("number", "true"),
        ("boolean", "yes"),
        ("array", "a,b"),
        ("object", "[]"),
        ("object", "[" * 100_000),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(kind: str, text: str) -> None:
    with pytest.raises(Refused, match=r"--input x: .* is not "):
        read_value("x", text, kind)


def test_defaults_apply_and_only_given_inputs_are_sent() -> None:
    assert read_inputs(["city=Rome"], SPECS) == {"city": "Rome"}
    assert read_inputs(["city=a=b", "count=3"], SPECS) == {"city": "a=b", "count": 3}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the input `city` is missing: add --input city=TEXT"),
        (["city"], "write it as name=value"),
        (["citty=Rome"], "there is no such input; did you mean `city`"),
        (["city=a", "city=b"], "given twice"),
    ],
)
def test_wrong_inputs_are_refused_before_the_run(words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_inputs(words, SPECS)


def test_a_plan_without_inputs_says_so() -> None:
    with pytest.raises(Refused, match="this run takes no inputs"):
        read_inputs(["a=b"], {})


def test_a_quote_needs_no_inputs_but_refuses_wrong_ones() -> None:
    declared = {"k": InputSpec(type="integer"), "goal": InputSpec(type="string")}
    assert read_inputs(["k=3"], declared, partial=True) == {"k": 3}
    with pytest.raises(Refused, match="no such input"):
        read_inputs(["n=3"], declared, partial=True)
