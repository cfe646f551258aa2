"""Which nodes of a plan may run before the plan is whole."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.edits.prefix import PlanPrefix

TOOLS = {"look": {"effect": "read"}, "note": {"effect": "write"}}


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        ({"kind": "tool", "tool": "look", "args": {}}, True),
        ({"kind": "tool", "tool": "note", "args": {}}, False),
        ({"kind": "llm", "prompt": "$a"}, True),
        ({"kind": "llm", "prompt": "$a", "tools": ["look"]}, False),
        ({"kind": "llm", "prompt": "$a", "role": "joiner"}, False),
        ({"kind": "llm", "prompt": "$a", "context": {"over": "reference"}}, False),
    ],
)
def test_only_what_changes_neither_the_world_nor_the_plan_starts(fields: dict[str, object], starts: bool) -> None:
    nodes: list[dict[str, Any]] = [{"id": "a", "kind": "tool", "tool": "look"}, {"id": "b", **fields}]
    prefix = PlanPrefix()
    assert not prefix.add([], TOOLS)
    assert prefix.add(nodes, TOOLS)
    assert list(prefix.startable) == (["a", "b"] if starts else ["a"])


@pytest.mark.parametrize("batches", [(1, 2), (3,)])
def test_a_repeated_id_starts_nothing_further(batches: tuple[int, ...]) -> None:
    nodes = [{"id": "a", "kind": "tool", "tool": tool} for tool in ("note", "look")]
    prefix, first = PlanPrefix(), [nodes[0], *nodes, {"id": "b", "kind": "tool", "tool": "look"}]
    for end in batches:
        assert not prefix.add(first[:end], TOOLS)
        first = first[end:]
    assert not prefix.startable


@st.composite
def written(draw: st.DrawFn) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["look", "look", "note", "gate", "broken"]))
        needs = draw(st.lists(st.sampled_from([f"n{other}" for other in range(9)]), max_size=2))
        node: dict[str, Any] = {"id": f"n{number}", "kind": "tool", "tool": kind, "needs": needs}
        if kind == "gate":
            node = {"id": f"n{number}", "kind": "gate", "question": "go on?"}
        nodes.append({"id": "x"} if kind == "broken" and draw(st.booleans()) else node)
    return nodes


@given(written(), st.data())
def test_batches_of_any_size_come_to_the_same_as_the_whole_beginning(
    nodes: list[dict[str, Any]], data: st.DataObject
) -> None:
    prefix, at = PlanPrefix(), 0
    while at < len(nodes):
        end = data.draw(st.integers(at + 1, len(nodes)))
        before, whole = dict(prefix.startable), PlanPrefix()
        more = prefix.add(nodes[at:end], TOOLS)
        whole.add(nodes[:end], TOOLS)
        assert more == (len(prefix.startable) > len(before))
        assert prefix.startable == whole.startable or (not whole.startable and prefix.startable == before)
        at = end
    assert not prefix.startable or prefix.plan().nodes == tuple(prefix.startable.values())
