"""Maps of sub-agents: each item is a run of its own, which ends, fails, is repaired and is stopped as an item is."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.runs import board, call, happens, status_of, until
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError

from sennit.activities.runs import agents
from sennit.activities.runs.agents import AgentPreparer
from sennit.starter.client.decisions import Decisions
from sennit.starter.client.output import read_output
from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer
from sennit.workflows.limits import MAX_SHARING
from sennit.workflows.run.search_attributes import KEYS

PLANNER = "You plan work"
CITIES = {"cities": {"type": "array", "default": ["Rome", "Oslo", "Lima"]}}


def planned(*nodes: dict[str, Any], answer: Any = "$n1.value") -> Reply:
    """The plan that a sub-agent's planner writes."""
    return Reply(json.dumps({"nodes": nodes, "answer": answer}), usage=(900, 100))


def team(over: str = "$input.cities", **fields: Any) -> dict[str, Any]:
    return {"id": "team", "kind": "map", "over": over, "do": {"kind": "agent", "goal": "Visit $item.", **fields}}


def about(city: str) -> Any:
    """Whether a planner is asked about this city."""
    return lambda asked: PLANNER in asked.system and city in asked.text


def plan_for(model_server: ModelServer, *cities: str) -> None:
    """Have each of these cities planned as a look at itself."""
    for city in cities:
        model_server.on(about(city), planned(call("n1", args={"value": city})))


async def test_each_item_is_a_run_and_the_map_has_their_answers(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    plan_for(model_server, "Rome", "Oslo", "Lima")
    nodes = [team(tools=["nap"]), call("last", args={"value": "${team[1]}"})]
    handle = await begin(plan={"inputs": CITIES, "nodes": nodes, "answer": ["$team", "$last.value"]})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [["Rome", "Oslo", "Lima"], "Oslo"])
    assert report["usage"]["calls"] == 3, "the children's model calls count"
    for place, city in enumerate(("Rome", "Oslo", "Lima")):
        child = client.get_workflow_handle(f"{handle.id}.team[{place}]")
        below = await child.result()
        assert (below["status"], below["answer"]) == ("done", city)
        assert (await child.describe()).parent_id == handle.id
        assert await read_output(client, handle.id, f"team[{place}].n1", "value") == city
    for asked in model_server.asked:
        before, _, fence = asked.turns[-1][1].partition(" given item\n")
        assert "Visit [given item]." in before, "an item is data of nobody in particular"
        assert fence.partition("\n")[0] in ("Rome", "Oslo", "Lima")
        assert "nap" in asked.system + asked.text
        assert "fetch" not in asked.system + asked.text, "it has the tools that the map names"


async def test_an_item_that_fails_fails_the_map_and_is_repaired_alone(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    model_server.on(about("Oslo"), planned(call("n1", "fail")), times=1)
    plan_for(model_server, "Rome", "Oslo", "Lima")
    handle = await begin(plan={"inputs": CITIES, "nodes": [team(tools=["nap", "fail"])], "answer": "$team"})
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    assert (status_of(view, "team"), status_of(view, "team[1]"), status_of(view, "team[2]")) == (
        "failed",
        "failed",
        "succeeded",
    )
    await Decisions(client, handle.id).retry("team[1]")
    assert (await handle.result())["answer"] == ["Rome", "Oslo", "Lima"]
    planners = [asked for asked in model_server.asked if PLANNER in asked.system]
    assert len(planners) == 4, "the two others did not run again"
    assert (await client.get_workflow_handle(f"{handle.id}.team[1]~2").result())["answer"] == "Oslo"


@pytest.mark.parametrize(("on_error", "value"), [("skip", None), ({"fallback": "nobody"}, "nobody")])
async def test_an_item_that_fails_has_its_on_error(
    begin: Start, model_server: ModelServer, on_error: Any, value: Any
) -> None:
    model_server.on(about("Oslo"), planned(call("n1", "fail")))
    plan_for(model_server, "Rome", "Lima")
    plan = {"inputs": CITIES, "nodes": [team(on_error=on_error)], "answer": "$team"}
    report = await (await begin(plan=plan)).result()
    assert (report["status"], report["answer"]) == ("done", ["Rome", value, "Lima"])


@pytest.mark.parametrize(("policy", "ends"), [("first", [1]), ({"quorum": 2}, [0, 1])])
async def test_enough_items_stop_the_others_with_their_calls(
    client: Client, begin: Start, model_server: ModelServer, held: Path, policy: Any, ends: list[int]
) -> None:
    cities = ("Rome", "Oslo", "Lima")
    for place, city in enumerate(cities):
        waits = call("n1", "hang", args={"name": f"{held.name}/{city}"})
        model_server.on(about(city), planned(call("n1", args={"value": city}) if place in ends else waits))
    nodes = [team(), {"id": "j", "kind": "join", "items": "team", "policy": policy}]
    for city in cities:
        (held / city).mkdir()
    handle = await begin(plan={"inputs": CITIES, "nodes": nodes, "answer": "$j"})
    report = await handle.result()
    values = [cities[place] for place in ends]
    assert (report["status"], report["answer"]) == ("done", values[0] if policy == "first" else values)
    for place, city in enumerate(cities):
        child = client.get_workflow_handle(f"{handle.id}.team[{place}]")
        if place in ends:
            assert (await child.result())["answer"] == city
        else:
            with pytest.raises(WorkflowFailureError) as ended:
                await child.result()
            assert isinstance(ended.value.cause, CancelledError)
            if (held / city / "n1.begun").exists():
                await happens((held / city / "n1.cancelled").exists)


async def test_all_are_cancelled_with_their_parent(
    client: Client, begin: Start, model_server: ModelServer, cache: Path, held: Path
) -> None:
    for city in ("Rome", "Oslo", "Lima"):
        (held / city).mkdir()
        model_server.on(about(city), planned(call("n1", "hang", args={"name": f"{held.name}/{city}"})))
    handle = await begin(plan={"inputs": CITIES, "nodes": [team()], "answer": "$team"})
    await happens(lambda: len(list(held.glob("*/n1.begun"))) == 3)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    await happens(lambda: len(list(held.glob("*/n1.cancelled"))) == 3)


async def test_items_share_the_budget_in_equal_parts(client: Client, begin: Start, model_server: ModelServer) -> None:
    plan_for(model_server, "Rome", "Oslo", "Lima")
    plan = {"inputs": CITIES, "nodes": [team()], "answer": "$team"}
    handle = await begin(plan=plan, budget={"tokens": 90_000, "calls": 31})
    report = await handle.result()
    assert report["status"] == "done"
    spent = 0
    for place in range(3):
        costs = await client.get_workflow_handle(f"{handle.id}.team[{place}]").query("costs")
        limits = {name: row["limit"] for name, row in costs["budget"].items()}
        assert (limits["tokens"], limits["calls"]) == (30_000, 10 + place // 2)
        spent += costs["budget"]["tokens"]["spent"]
    costs = await handle.query("costs")
    assert costs["budget"]["tokens"] == {"limit": 90_000, "spent": spent, "reserved": 0}
    assert [row["node"] for row in costs["nodes"]] == ["team[0]", "team[1]", "team[2]"]


async def test_a_question_of_an_item_is_asked_above_and_answered_by_its_path(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    gate = {"id": "n1", "kind": "gate", "question": "May I go?"}
    model_server.on(about("Oslo"), planned(gate, answer="$n1"))
    plan_for(model_server, "Rome", "Lima")
    handle = await begin(plan={"inputs": CITIES, "nodes": [team()], "answer": "$team"})
    view = await until(handle, lambda view: bool(view["blocked"]))
    [item] = view["blocked"]
    assert (item["node"], item["run"]) == ("team[1].n1", f"{handle.id}.team[1]")
    assert "**team&#91;1&#93;.n1 asks:**" in await board(handle)
    await Decisions(client, handle.id).answer("team[1].n1", "go")
    assert (await handle.result())["answer"] == ["Rome", "go", "Lima"]


async def activities_of(handle: Handle) -> Counter[str]:
    """Return how many activities of each type a run has started."""
    history = await handle.fetch_history()
    scheduled = [event.activity_task_scheduled_event_attributes.activity_type.name for event in history.events]
    return Counter(filter(None, scheduled))


async def test_agents_that_start_together_share_activities(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    cities = [f"City {place}." for place in range(MAX_SHARING + 8)]
    plan_for(model_server, *cities)
    inputs = {"cities": {"type": "array"}}
    plan = {"inputs": inputs, "nodes": [team(tools=["nap"])], "answer": "$team"}
    handle = await begin(plan=plan, inputs={"cities": cities})
    assert (await handle.result())["answer"] == cities
    made = await activities_of(handle)
    assert made["prepare_agents"] == 2, "as many as may share one, and the others"
    assert set(made) == {"prepare", "prepare_agents", "answers", "conclude"}
    below = await activities_of(client.get_workflow_handle(f"{handle.id}.team[3]"))
    assert below == {"plan": 1, "tool": 1, "conclude": 1}, (
        "its parent has prepared it, and its planner has checked the plan"
    )


async def test_what_does_not_fit_into_one_reply_is_prepared_with_the_next(
    begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "MAX_SHARED_BYTES", 1)
    plan_for(model_server, "Rome", "Oslo", "Lima")
    handle = await begin(plan={"inputs": CITIES, "nodes": [team()], "answer": "$team"})
    assert (await handle.result())["answer"] == ["Rome", "Oslo", "Lima"]
    assert (await activities_of(handle))["prepare_agents"] == 3


async def test_an_agent_that_cannot_be_prepared_fails_alone(begin: Start, model_server: ModelServer) -> None:
    plan_for(model_server, "Rome", "Lima")
    node = team() | {"do": {"kind": "agent", "goal": "Visit ${item.name}.", "on_error": {"fallback": "nobody"}}}
    inputs = {"cities": {"type": "array"}}
    cities = [{"name": "Rome"}, {"town": "Oslo"}, {"name": "Lima"}]
    handle = await begin(plan={"inputs": inputs, "nodes": [node], "answer": "$team"}, inputs={"cities": cities})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", ["Rome", "nobody", "Lima"])
    [error] = [line["error"] for line in report["nodes"] if line.get("error") and line["id"] == "team[1]"]
    assert error.startswith("BindError: ")
    assert len(model_server.asked) == 2


async def test_an_item_that_is_stopped_while_it_is_prepared_never_starts(
    client: Client, begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All members of an activity are cancelled: it is, too, and no run is started."""
    prepared = asyncio.Event()

    async def waits(self: AgentPreparer, *_: Any, **__: Any) -> Any:
        del self
        prepared.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(AgentPreparer, "prepare", waits)
    handle = await begin(plan={"inputs": CITIES, "nodes": [team()], "answer": "$team"})
    await asyncio.wait_for(prepared.wait(), 60)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await handle.result()
    assert isinstance(ended.value.cause, CancelledError)
    assert model_server.asked == []
    with pytest.raises(RPCError):
        await client.get_workflow_handle(f"{handle.id}.team[0]").describe()


async def test_lists_show_of_a_sub_agent_what_needs_a_person(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    gate = {"id": "n1", "kind": "gate", "question": "May I go?"}
    model_server.on(about("Oslo"), planned(gate, answer="$n1"))
    plan_for(model_server, "Rome", "Lima")
    handle = await begin(plan={"inputs": CITIES, "nodes": [team()], "answer": "$team"}, tenant="acme")
    await until(handle, lambda view: bool(view["blocked"]))

    async def shown(place: int) -> dict[str, Any]:
        found = await client.get_workflow_handle(f"{handle.id}.team[{place}]").describe()
        return {pair.key.name: pair.value for pair in found.typed_search_attributes if pair.key.name in KEYS}

    asks = {"SennitTenant": "acme", "SennitStatus": "blocked", "SennitBlockedOn": "gate n1"}
    async with asyncio.timeout(60):
        while await shown(1) != asks:
            await asyncio.sleep(0.1)
    await Decisions(client, handle.id).answer("team[1].n1", "go")
    assert (await handle.result())["answer"] == ["Rome", "go", "Lima"]
    assert [await shown(place) for place in range(3)] == [{"SennitTenant": "acme"}] * 3
