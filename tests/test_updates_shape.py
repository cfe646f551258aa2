"""Updates by their shape alone: a wrong one is refused with field, problem and an example that would pass."""

import json
from typing import Any

import pytest
from doubles.plan.junk import anything
from hypothesis import given, settings

from sennit.workflows.messages.updates import (
    UPDATES,
    Answer,
    Finish,
    InvalidUpdate,
    Reject,
    RetryNode,
    SkipNode,
    Update,
    parse_update,
)

Kind = type[Update]


def refused(model: Kind, request: Any, *more: Any) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        parse_update(model, request, *more)
    message = str(caught.value)
    assert message.isprintable(), ascii(message)
    assert message.startswith(model.name)
    assert len(message) < 1_300
    return message


@pytest.mark.parametrize("model", UPDATES)
def test_every_example_is_itself_accepted(model: Kind) -> None:
    assert parse_update(model, json.loads(model.example)).model_dump(mode="json", exclude_unset=True) == json.loads(
        model.example
    )
    assert model.example in model.about or model is Finish
    assert len({each.name for each in UPDATES}) == len(UPDATES)


@pytest.mark.parametrize("node", ["a", "n7", "A_1", "m[0]", "m[99999]", "x" * 40])
def test_a_node_is_an_id_or_one_item_of_a_map(node: str) -> None:
    assert parse_update(RetryNode, {"node": node}).node == node


@pytest.mark.parametrize(
    "node", ["", "7", "a b", "a\n", "m[]", "m[-1]", "m[٣]", "m[100000]", "a[0][1]", "$a", "a~2", "x" * 41]
)
def test_anything_else_is_no_node(node: str) -> None:
    assert "is not a node; write its id such as n7, or m[17] for an item of m; for example" in refused(
        SkipNode, {"node": node}
    )


@pytest.mark.parametrize(
    ("model", "request_", "expected"),
    [
        (RetryNode, None, 'retry_node takes one JSON object, not nothing; for example {"node": "n7"}'),
        (RetryNode, [], "not a list"),
        (RetryNode, "n7", "not text"),
        (SkipNode, {}, "skip_node: `node` is missing; for example"),
        (RetryNode, {"node": 7}, "`node`: must be a string, not 7"),
        (SkipNode, {"nod": "n7"}, "unknown field `nod`; `node` is missing; for example"),
        (RetryNode, {"node": "a", "repeat": True}, "unknown field `repeat`; did you mean `repeat_effect`?"),
        (RetryNode, {"node": "a", "repeat_effect": "yes"}, '`repeat_effect`: must be true or false, not "yes"'),
        (RetryNode, {"node": "a", "repeat_effect": 1}, "must be true or false, not 1"),
        (Answer, {"node": "g"}, "`value` is missing"),
        (Answer, {"node": "g", "value": float("nan")}, "answer: `value`: NaN is no number"),
        (Answer, {"node": "g", "value": {"a": ["\udc00"]}}, '`value.a[0]`: "\\udc00" holds half a surrogate pair'),
        (Reject, {"node": "a", "reason": "x" * 501}, "`reason`: has 501 characters; at most 500"),
        (Finish, {"now": True}, "unknown field `now`"),
        (Finish, [], "not a list"),
        (SkipNode, {"node": "a", "reason": "x"}, "unknown field `reason`"),
        (SkipNode, {"node": "a", "\x1b[31m": 1}, "unknown field"),
    ],
)
def test_a_wrong_update_is_named_by_field_and_problem(model: Kind, request_: Any, expected: str) -> None:
    assert expected in refused(model, request_)


def test_finish_may_come_without_input_and_an_answer_may_be_null() -> None:
    assert parse_update(Finish, None) == Finish()
    assert parse_update(Answer, {"node": "g", "value": None}).value is None


@pytest.mark.parametrize("model", UPDATES)
def test_two_inputs_are_refused(model: Kind) -> None:
    assert "takes one JSON object, not 2 inputs" in refused(model, json.loads(model.example), None)


@settings(max_examples=60, deadline=None)
@given(anything)
def test_whatever_comes_only_an_invalid_update_goes_out(value: Any) -> None:
    for model in UPDATES:
        for request in (value, {"node": value}, {"node": "a", "value": value, "reason": value}):
            assert message_of(model, request).isprintable()


def message_of(model: Kind, request: Any) -> str:
    """Return the refusal, or nothing for an update that is accepted and can be written."""
    try:
        parse_update(model, request).model_dump_json()
    except InvalidUpdate as error:
        return str(error)
    return ""
