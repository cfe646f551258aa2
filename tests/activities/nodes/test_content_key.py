"""Content keys: which outcomes are found again, and which never are."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, llm, stored, tool

from sennit.activities.nodes.binding import parse_unit
from sennit.activities.nodes.content_key import content_key
from sennit.activities.storage.run_context import StoredPlan
from sennit.workflows.messages.node_calls import NodeCall
from sennit.workflows.plan.language.call_settings import CallSettings

WRITES = next(entry["name"] for entry in CATALOGUE if entry["effect"] == "write")


def key(checked: StoredPlan, path: str, refs: dict[str, str] | None = None, version: str = "1", **fields: Any) -> str:
    call = NodeCall(run="run", plan="plan", nodes=(path,), **fields)
    return content_key(checked, parse_unit(path), refs or {}, call, version)


BASE = stored(tool("a", args={"query": "x"}), tool("b", args={"query": "$a.text"}))
OTHER = stored(tool("q", args={"query": "$p.text"}), tool("p", args={"query": "x"}))


def test_a_call_that_changes_nothing_is_found_under_another_id_if_it_read_the_same() -> None:
    assert key(BASE, "b", {"a": "d1"}) == key(OTHER, "q", {"p": "d1"}, epoch=2)
    assert key(BASE, "b", {"a": "d1"}) != key(OTHER, "q", {"p": "d2"})


@pytest.mark.parametrize(
    ("path", "fields"), [("b~2", {}), ("b", {"version": "2"}), ("b", {"refs": {"a": "d2"}}), ("a", {})]
)
def test_another_generation_version_input_or_call_is_other_work(path: str, fields: dict[str, Any]) -> None:
    assert key(BASE, path, **{"refs": {"a": "d1"}, **fields}) != key(BASE, "b", {"a": "d1"})


def test_what_a_call_reads_of_the_run_itself_is_part_of_its_key() -> None:
    asks = tool("a", args={"query": "$goal"})
    assert key(stored(asks, goal="Which?"), "a") != key(stored(asks, goal="Why?"), "a")


@pytest.mark.parametrize("keys", [{}, {"a": "K"}])
@pytest.mark.parametrize(
    ("node", "fields"),
    [
        (tool("a"), {"docs": "/other"}),
        (llm("a"), {"models": {"worker": ["other"]}}),
        (llm("a"), {"settings": {"worker": CallSettings(seed=1)}}),
        (llm("a"), {"instructions": "Be brief."}),
    ],
    ids=["documents", "models", "settings", "instructions"],
)
def test_what_serves_a_call_is_part_of_its_key(
    node: dict[str, Any], fields: dict[str, Any], keys: dict[str, str]
) -> None:
    """Runs that fork one another may have others."""
    plan = stored(node).model_copy(update={"keys": keys})
    assert key(plan, "a") != key(plan.model_copy(update=fields), "a")
    unread = {"models": {"critic": ["other"]}}
    assert key(plan, "a") == key(plan.model_copy(update=unread), "a")


def test_only_settings_that_are_set_are_part_of_a_key() -> None:
    plain = key(stored(llm("a")), "a")
    assert key(stored(llm("a", settings=None)), "a") == plain
    assert key(stored(llm("a", settings={})), "a") == plain
    warm = key(stored(llm("a", settings={"temperature": 0.2})), "a")
    assert warm != plain
    assert key(stored(llm("a", settings={"temperature": 0.2, "seed": None})), "a") == warm


@pytest.mark.parametrize("field", ["goal", "material", "history"])
@pytest.mark.parametrize("role", ["worker", "joiner"])
def test_a_model_call_for_another_goal_is_other_work(field: str, role: str) -> None:
    """A sub-agent that is started anew after a reset finds the calls of the one before, which may have had another."""
    plan = stored(llm("a", prompt="Go on", role=role), goal="Which?")
    assert key(plan, "a") != key(plan.model_copy(update={field: "other"}), "a")


def test_a_call_in_the_place_of_a_failed_write_is_other_work_than_the_call_alone() -> None:
    behind = stored(tool("w", WRITES, {"text": "x"}, on_error={"instead": "a"}), tool("a"))
    assert key(behind, "a") != key(stored(tool("a")), "a")


@pytest.mark.parametrize(
    "node",
    [
        lambda name: llm(name, prompt="Go on", role="joiner"),
        lambda name: llm(name, prompt="Go on", tools=["search"]),
        lambda name: llm(name, prompt="Go on", context={"over": "reference"}),
        lambda name: {"id": name, "kind": "gate", "question": "Which?"},
    ],
    ids=("joiner", "loop", "reference", "gate"),
)
def test_what_may_add_nodes_is_known_by_its_path(node: Any) -> None:
    assert key(stored(node("a")), "a") != key(stored(node("b")), "b")


def test_items_of_other_lists_have_other_keys() -> None:
    def item(over: str = "$a.items", as_: str = "item", value: str = "$item") -> str:
        do = {"kind": "tool", "tool": "search", "args": {"query": value}}
        nodes = tool("a"), {"id": "m", "kind": "map", "over": over, "as": as_, "do": do}
        return key(stored(*nodes), "m[0]", {"a": "digest"})

    keys = [item(), item("$a.others"), item(value="x"), item(as_="it", value="$it")]
    assert len(set(keys)) == len(keys)
    assert item() == keys[0]


def test_a_program_is_other_work_with_another_script_other_arguments() -> None:
    nodes: list[dict[str, Any]] = [
        {"script": "async def main(): pass"},
        {"script": "async def main(x): pass", "arguments": {"x": 1}},
        {"script": "async def main(x): pass", "arguments": {"x": 2}},
    ]
    plans = [stored({"id": "a", "kind": "program", **fields}) for fields in nodes]
    assert len({key(plan, "a") for plan in plans}) == len(plans)


def test_a_call_of_a_program_is_known_by_its_key_wherever_it_is() -> None:
    one, other = (stored(tool(name)).model_copy(update={"keys": {name: "same"}}) for name in ("a", "b"))
    assert key(one, "a") == key(other, "b")
    assert len({key(one, "a"), key(one, "a~2"), key(one, "a", version="2")}) == 3
