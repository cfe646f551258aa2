"""Conditions that could never be decided are found before the run; those that can be pass."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, free, llm, plan, tool

from sennit.workflows.plan.checking.conditions import STATUSES
from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.language.parser import parse_plan


def problems(when: Any) -> list[str]:
    data = plan(tool(), free("f"), llm("b", when=when), goal="x", inputs={"n": {"type": "integer"}})
    return [str(item) for item in problems_of(parse_plan(data), CATALOGUE)]


GOOD: list[dict[str, Any]] = [
    {"ref": "$a.count", "op": "gt", "value": 3},
    {"ref": "$a.count", "op": "le", "value": 2.5},
    {"ref": "${a.items[0].score}", "op": "eq", "value": 1},
    {"ref": "$a.items[0].title", "op": "ge", "value": "M"},
    {"ref": "$a.items[0].title", "op": "contains", "value": ""},
    {"ref": "$a.items.length", "op": "in", "value": [1, 2, "x"]},
    {"ref": "$a.items", "op": "exists"},
    {"ref": "$f", "op": "eq", "value": None},
    {"ref": "$f.any.thing", "op": "ne", "value": False},
    {"ref": "$f.x", "op": "eq", "value": "$5 or $nobody"},
    {"ref": "$input.n", "op": "lt", "value": 3},
    {"ref": "$goal", "op": "contains", "value": "Nile"},
    {"ref": "$f:error.type", "op": "contains", "value": "Time"},
    {"ref": "$f:error.type", "op": "exists"},
    *({"ref": "$a:status", "op": "eq", "value": status} for status in STATUSES),
    {
        "and": [
            {"ref": "$a:status", "op": "in", "value": ["failed", "skipped"]},
            {"or": [{"not": {"ref": "$f", "op": "exists"}}]},
        ]
    },
]


@pytest.mark.parametrize("when", GOOD)
def test_a_condition_that_can_be_decided_passes(when: dict[str, Any]) -> None:
    assert problems(when) == []


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({"ref": "$f", "op": "exists", "value": None}, "nodes[2].when: `exists` takes no `value`; leave it out"),
        ({"ref": "$f", "op": "eq"}, "nodes[2].when: `value` is missing: what `eq` compares with"),
        ({"ref": "$f", "op": "in", "value": []}, "nodes[2].when: `in` needs a list of values, not an empty list"),
        ({"ref": "$f", "op": "lt", "value": None}, "nodes[2].when: `lt` compares numbers or texts, not null"),
        (
            {"ref": "$f", "op": "ne", "value": {"a": 1}},
            "nodes[2].when: `ne` compares with one value, not with an object with a",
        ),
        (
            {"ref": "$f", "op": "eq", "value": "$a.count"},
            "nodes[2].when: a condition compares with a constant; `$a.count`",
        ),
        ({"ref": "$f", "op": "eq", "value": "$input.n"}, "`$input.n` would stay text"),
        (
            {"ref": "$input.n", "op": "eq", "value": "3"},
            'nodes[2].when: `$input.n` gives integer; comparing it with "3" by `eq`',
        ),
        ({"ref": "$input.m", "op": "exists"}, "nodes[2].when.ref: the plan declares no input `m`"),
        (
            {"ref": "$a.items[0]", "op": "eq", "value": "x"},
            "gives object; a condition tests a text, a number, true, false",
        ),
        ({"ref": "$goal:status", "op": "eq", "value": "failed"}, "nodes[2].when.ref: there is no node `goal`"),
        ({"ref": "$b:status", "op": "eq", "value": "failed"}, "nodes[2].when.ref: `b` needs itself"),
        (
            {"ref": "$a:status", "op": "in", "value": ["failed", "ok"]},
            'nodes[2].when.value: no node ends as "ok"; write one of',
        ),
        ({"ref": "$a:status", "op": "ne", "value": "running"}, 'nodes[2].when.value: no node ends as "running"'),
        (
            {"ref": "$a:state", "op": "eq", "value": "failed"},
            'nodes[2].when.ref: "$a:state" is not a reference; write `$node.path`',
        ),
        ({"or": [{"ref": "$f", "op": "gt"}]}, "nodes[2].when.or[0]: `value` is missing"),
        ({"ref": "$f", "op": "gt", "value": True}, "`gt` compares numbers or texts, not true"),
        ({"ref": "$f", "op": "contains", "value": 3}, "nodes[2].when: `contains` looks for text, not for 3"),
        ({"ref": "$a.count", "op": "contains", "value": "3"}, "`$a.count` gives integer; `contains` looks into text"),
        ({"ref": "$a.items", "op": "eq", "value": 3}, "gives array; a condition tests a text"),
        ({"ref": "$a:status", "op": "gt", "value": "failed"}, "nodes[2].when.op: a status has no order"),
        ({"ref": "$a:status", "op": "eq", "value": "success"}, "did you mean `succeeded`?"),
    ],
)
def test_one_that_cannot_be_is_reported_with_the_way_out(when: dict[str, Any], expected: str) -> None:
    assert any(expected in problem for problem in problems(when)), problems(when)
