"""The types of the plan language: what they default to, what they refuse by themselves, how they are written back."""

from typing import Any

import pytest
from doubles.plan.samples import PLANS, each, gate, join, llm, plan, tool
from pydantic import ValidationError

from sennit.workflows.plan.language.nodes import (
    Fallback,
    GateNode,
    InputSpec,
    Instead,
    JoinNode,
    LlmNode,
    MapNode,
    Plan,
    Quorum,
    ToolNode,
)
from sennit.workflows.plan.limits import MAX_GOAL_BYTES


def read(**fields: Any) -> Plan:
    return Plan.model_validate(plan(tool()) | fields)


def node(data: dict[str, Any]) -> Any:
    return Plan.model_validate({"nodes": [data]}).nodes[0]


def test_what_is_left_out_has_the_defaults_of_the_design() -> None:
    call, model = node({"id": "a", "kind": "tool", "tool": "x"}), node({"id": "b", "kind": "llm", "prompt": "x"})
    assert isinstance(call, ToolNode)
    assert (call.args, call.needs, call.when, call.on_error) == ({}, (), None, "fail")
    assert (call.retry, call.timeout, call.priority, call.locks, call.estimate) == (None, None, 3, (), None)
    assert isinstance(model, LlmNode)
    assert (model.role, model.model, model.output_schema) == ("worker", None, None)
    repeat, joined, ask = node(each()), node(join("j", ["a"])), node(gate())
    assert isinstance(repeat, MapNode)
    assert (repeat.as_, repeat.max_items, repeat.on_error) == ("item", 200, "fail")
    assert isinstance(joined, JoinNode)
    assert (joined.policy, joined.deadline) == ("all", None)
    assert isinstance(ask, GateNode)
    assert (ask.answer_schema, ask.timeout) == (None, None)
    whole = Plan.model_validate({"nodes": [tool()]})
    assert (whole.goal, whole.inputs, whole.answer, whole.on_failure, whole.fuse) == (None, {}, None, None, None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("fail", "fail"),
        ("skip", "skip"),
        ({"fallback": None}, Fallback(fallback=None)),
        ({"instead": "b"}, Instead(instead="b")),
    ],
)
def test_on_error_has_four_forms(given: Any, kept: Any) -> None:
    read = node(tool(on_error=given))
    assert read.on_error == kept
    assert read.model_dump(mode="json")["on_error"] == given


@pytest.mark.parametrize("given", ["all", "settled", "first", {"quorum": 1}, {"quorum": "1%"}, {"quorum": "100%"}])
def test_a_join_has_four_policies(given: Any) -> None:
    read = node(join("j", ["a"], policy=given))
    assert read.policy == (Quorum(**given) if isinstance(given, dict) else given)
    assert read.model_dump(mode="json")["policy"] == given


@pytest.mark.parametrize("share", ["0%", "00%", "101%", "060%", "60 %", "6.5%", "٦٠%", "%", "60%\n", "", "60"])
def test_a_share_of_inputs_is_a_whole_number_of_percent(share: str) -> None:
    with pytest.raises(ValidationError, match="is no quorum"):
        Quorum(quorum=share)


@pytest.mark.parametrize("number", ["3", 3.0, True, None, [3]])
def test_a_number_is_a_number(number: Any) -> None:
    for fields in ({"priority": number}, {"retry": {"attempts": number}}, {"estimate": {"tokens": number}}):
        if fields != {"estimate": {"tokens": None}}:
            with pytest.raises(ValidationError):
                node(tool(**fields))


def test_seconds_may_be_whole() -> None:
    assert node(tool(estimate={"seconds": 3})).estimate.seconds == 3.0


def test_values_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        read().goal = "other"  # type: ignore[misc]  # the point
    with pytest.raises(ValidationError, match="frozen"):
        node(tool()).id = "other"


@pytest.mark.parametrize(("size", "fits"), [(MAX_GOAL_BYTES, True), (MAX_GOAL_BYTES + 1, False)])
def test_a_goal_is_measured_in_bytes(size: int, *, fits: bool) -> None:
    assert read(goal="x" * size).goal if fits else _refused(goal="x" * size)
    assert _refused(goal="é" * (MAX_GOAL_BYTES // 2 + 1))


def _refused(**fields: Any) -> bool:
    with pytest.raises(ValidationError, match="bytes; at most 32,768"):
        read(**fields)
    return True


@pytest.mark.parametrize("written", [{}, {"default": None}, {"default": 3}])
def test_an_input_stays_required_or_optional_when_its_plan_is_stored(written: dict[str, Any]) -> None:
    spec = InputSpec.model_validate({"type": "integer"} | written)
    again = InputSpec.model_validate_json(spec.model_dump_json())
    assert ("default" in again.model_fields_set) == ("default" in written)
    assert again == spec


@pytest.mark.parametrize("name", PLANS)
def test_the_written_form_uses_the_names_of_the_language(name: str) -> None:
    text = Plan.model_validate(PLANS[name]).model_dump_json(by_alias=True)
    assert '"as_"' not in text
    assert '"answer_schema"' not in text


def test_the_language_has_a_json_schema() -> None:
    schema = Plan.model_json_schema()
    assert {"nodes", "answer", "inputs", "fuse"} <= schema["properties"].keys()


def test_a_model_node_knows_its_roles() -> None:
    for role in ("planner", "worker", "critic", "judge", "joiner"):
        assert node(llm("b", role=role)).role == role
