"""What starts a run: a wrong request is one sentence that names the field, what is wrong, and an example."""

import json
from typing import Any

import pytest
from doubles.plan.junk import anything
from doubles.plan.samples import NILE
from hypothesis import given, settings

from sennit.workflows.messages.request import EXAMPLE, InvalidRequest, RunRequest, parse_request
from sennit.workflows.plan.limits import MAX_GOAL_BYTES, MAX_PACKED_BYTES


def refused(request: Any, *more: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(request, *more)
    message = str(caught.value)
    assert message.isprintable(), ascii(message)
    assert len(message) < 1_300
    return message


def test_a_goal_alone_is_a_request_with_the_documented_defaults() -> None:
    request = parse_request({"goal": "Which is longer?"})
    assert request == RunRequest(goal="Which is longer?")
    assert (request.inputs, request.docs, request.tools, request.approval, request.window) == (
        {},
        None,
        None,
        "writes",
        100,
    )
    assert (request.park_for, request.on_failure, request.carry) == (86_400.0, None, None)


def test_the_example_in_every_refusal_is_itself_accepted() -> None:
    assert parse_request(json.loads(EXAMPLE)).goal.startswith("Which is longer")


@pytest.mark.parametrize(
    "request_",
    [
        {"plan": NILE},
        {"plan_packed": "eJ..."},
        {"goal": "x", "plan": {"anything": ["is", {"checked": "later"}]}},
        {"goal": "x", "inputs": {"a": None, "b": [1.5, {"c": "é😀"}]}, "tools": ["search"], "docs": "/docs"},
        {"goal": "x", "approval": "never", "on_failure": "fail", "park_for": "5m", "window": 500},
        {"goal": "x", "tools": []},
    ],
)
def test_right_requests_pass(request_: dict[str, Any]) -> None:
    assert isinstance(parse_request(request_), RunRequest)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (None, "a run takes one JSON object, not nothing; for example {"),
        ([], "not a list"),
        ("goal", "not text"),
        (7, "not a number"),
        (True, "not true or false"),
        ({}, "a run needs a `goal` or a `plan`; for example {"),
        ({"goal": " \n"}, "a run needs a `goal` or a `plan`"),
        ({"gaol": "x"}, "unknown field `gaol`; did you mean `goal`?"),
        ({"goal": "x", "a b\n": 1}, 'unknown field `["a b\\n"]`'),
        ({"goal": 7}, "`goal`: must be a string, not 7"),
        ({"goal": "x" * (MAX_GOAL_BYTES + 1)}, "`goal`: is 32,769 bytes; at most 32,768. Put long text in a document"),
        ({"goal": "é" * MAX_GOAL_BYTES}, "`goal`: is 65,536 bytes"),
        ({"goal": "x\ud800"}, '`goal`: "x\\ud800" holds half a surrogate pair'),
        ({"goal": "x", "plan": []}, "`plan`: must be an object, not an empty list"),
        ({"goal": "x", "plan": "nodes"}, '`plan`: must be an object, not "nodes"'),
        ({"goal": "x", "plan": NILE, "plan_packed": "x"}, "give `plan` or `plan_packed`, not both"),
        ({"plan_packed": "x" * (MAX_PACKED_BYTES + 1)}, "`plan_packed`: has 1,048,577 characters; at most 1,048,576"),
        ({"goal": "x", "inputs": ["a"]}, "`inputs`: must be an object, not a list of 1"),
        ({"goal": "x", "inputs": {"a": float("nan")}}, "`inputs.a`: NaN is no number that JSON can hold"),
        ({"goal": "x", "inputs": {"a": [10**5_000]}}, "`inputs.a[0]`: a number of over 300 digits"),
        ({"goal": "x", "tools": "search"}, '`tools`: must be a list, not "search"'),
        ({"goal": "x", "tools": ["search", 3]}, "`tools[1]`: must be a string, not 3"),
        (
            {"goal": "x", "approval": "write"},
            '`approval`: must be one of writes, never, not "write"; did you mean `writes`?',
        ),
        ({"goal": "x", "on_failure": "stop"}, "`on_failure`: must be one of park, partial, fail"),
        ({"goal": "x", "park_for": 60}, "`park_for`: 60 is not a duration; write one such as 500ms"),
        ({"goal": "x", "window": 0}, "`window`: must be at least 1, not 0"),
        ({"goal": "x", "window": 501}, "`window`: must be at most 500, not 501"),
        ({"goal": "x", "window": "7"}, '`window`: must be a whole number, not "7"; write it without quotes'),
        ({"goal": "x", "docs": ["/"]}, "`docs`: must be a string, not a list of 1"),
        ({"goal": "x", "docs": "x" * 5_000}, "`docs`: has 5,000 characters; at most 4,096"),
        ({"goal": 1, "zzz": 2, "window": 0}, "unknown field `zzz`; `goal`: must be a string"),
        ({"goal": "x", "inputs": {"a": "x" * 1_600_000}}, "the request has 1,600,0"),
        ({1: 2}, "a field is named by a value (int); names are text"),
    ],
)
def test_a_wrong_request_is_named_by_field_problem_and_way_out(request_: Any, expected: str) -> None:
    assert expected in refused(request_)


@pytest.mark.parametrize("extra", [(None,), ({},), (1, 2)])
def test_two_inputs_are_refused_whatever_they_are(extra: tuple[Any, ...]) -> None:
    assert refused({"goal": "x"}, *extra).startswith(f"a run takes one JSON object, not {1 + len(extra)} inputs; for")


def test_nesting_of_two_thousand_levels_is_refused() -> None:
    deep: Any = "x"
    for _ in range(2_000):
        deep = {"a": deep}
    for field in ("plan", "inputs", "goal"):
        assert "levels deep" in refused({"goal": "x"} | {field: deep})


@settings(max_examples=100, deadline=None)
@given(anything, anything)
def test_whatever_comes_only_an_invalid_request_goes_out(whole: Any, part: Any) -> None:
    for request in (
        whole,
        {"goal": part},
        {"goal": "x", "inputs": part, "tools": part},
        {"plan": part, "window": whole},
    ):
        assert message_of(request).isprintable()


def message_of(request: Any) -> str:
    """Return the refusal, or nothing for a request that is accepted and can be written."""
    try:
        parse_request(request).model_dump_json()
    except InvalidRequest as error:
        return str(error)
    return ""
