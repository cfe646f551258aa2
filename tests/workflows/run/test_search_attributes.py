"""Search attributes of runs, on a real server: what lists can be filtered by, and what never gets set."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.events import kinds
from doubles.runs import call, insist, until
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import TypedSearchAttributes

from sennit.activities.definitions import Activities
from sennit.starter.terminal.render import counts_text
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.run import drain, search_attributes
from sennit.workflows.run.search_attributes import KEYS, SearchAttributes

Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
UPSERTED = "EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"


async def attributes(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    found = (await handle.describe()).typed_search_attributes
    return {key.name.removeprefix("Sennit"): value for key, value in found if key.name in KEYS}


async def attributes_when_blocked(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """Return the attributes once they say what blocks the run: a query may be ahead of what its last task writes."""
    async with asyncio.timeout(100):
        while "BlockedOn" not in (found := await attributes(handle)):
            await asyncio.sleep(0.05)
    return found


async def wait_until_found(client: Client, query: str, handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until a list finds the run: visibility is a moment behind."""
    async with asyncio.timeout(100):
        while not [run async for run in client.list_workflows(f"{query} AND WorkflowId = '{handle.id}'")]:
            await asyncio.sleep(0.1)


async def test_a_run_can_be_found_by_how_it_stands(client: Client, start: Start) -> None:
    gate = {"id": "g", "kind": "gate", "question": "Go on?"}
    handle = await start(plan={"nodes": [call("a"), gate, call("b", args={"value": "$g"}, needs=["a"])]}, tenant="acme")
    await until(handle, lambda view: view["status"] == "blocked")
    await wait_until_found(
        client, "SennitStatus = 'blocked' AND SennitBlockedOn STARTS_WITH 'gate' AND SennitTenant = 'acme'", handle
    )
    assert await attributes(handle) == {
        "Status": "blocked", "Phase": "running", "Tenant": "acme", "BlockedOn": "gate g", "NodesTotal": 3,
        "NodesDone": 1,
    }  # fmt: skip
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    await handle.result()
    assert await attributes(handle) == {
        "Status": "done", "Phase": "ended", "Tenant": "acme", "NodesTotal": 3, "NodesDone": 3,
    }  # fmt: skip
    await wait_until_found(client, "SennitStatus = 'done' AND SennitNodesDone = 3 AND SennitBlockedOn IS NULL", handle)


async def test_a_failed_node_is_counted_and_named(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", "fail"), call("b", "fail"), call("c", needs=["a", "b"])]})
    await until(handle, lambda view: view["status"] == "blocked")
    found = await attributes_when_blocked(handle)
    assert (found["BlockedOn"], found["NodesFailed"]) == ("failed a and 1 more", 2)
    await handle.execute_update("finish", {})
    await handle.result()
    assert (await attributes(handle))["Status"] == "partial"


async def test_of_a_program_its_calls_are_counted_as_on_its_board(start: Start) -> None:
    script = """
async def look(page: int) -> object:
    return await nap(value=page)

async def main():
    await parallel([task(look, page=page) for page in range(3)])
    return await ask("Go on?")
"""
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": script}]})
    view = await until(handle, lambda view: view["status"] == "blocked")
    found = await attributes_when_blocked(handle)
    assert (found["NodesTotal"], found["NodesDone"]) == (4, 3)
    assert view["counts"] == {"succeeded": 3, "waiting": 1}


async def test_lists_status_and_board_count_a_blocked_program_alike(start: Start) -> None:
    """The calls of a program count, not the tasks and joins that fail with them."""
    script = """
async def look(page: int) -> object:
    return await count(count=page) if page else await fail(message="no page")

async def main():
    return await parallel([task(look, page=page) for page in range(4)])
"""
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": script}]})
    view = await until(handle, lambda view: view["status"] == "blocked")
    found = await attributes_when_blocked(handle)
    counts = view["counts"]
    assert counts == {"succeeded": 3, "failed": 1}
    assert (found["NodesTotal"], found["NodesDone"], found["NodesFailed"]) == (4, 4, 1)
    assert counts_text(counts).startswith("4 of 4 nodes")
    board = await handle.query("__temporal_workflow_metadata")
    assert "4 of 4 nodes ended" in board.current_details


async def test_a_program_that_fails_by_itself_counts_as_failed(start: Start) -> None:
    script = "async def main():\n    await nap(value=1)\n    raise ValueError('no answer')\n"
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": script}]})
    view = await until(handle, lambda view: view["status"] == "blocked")
    assert view["counts"] == {"succeeded": 1, "failed": 1}
    assert (await attributes_when_blocked(handle))["NodesFailed"] == 1


async def test_a_list_learns_of_nodes_that_have_ended_while_another_one_runs(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_attributes, "EVERY", timedelta(seconds=2))
    nodes = [call("a"), call("b"), call("c", args={"seconds": 20})]
    handle = await start(plan={"nodes": nodes, "answer": ["$a", "$b", "$c"]})
    async with asyncio.timeout(40):
        while (await attributes(handle)).get("NodesDone") != 2:
            await asyncio.sleep(0.1)
    assert (await kinds(handle))["EVENT_TYPE_TIMER_STARTED"] == 1
    await handle.cancel()


async def test_a_spent_budget_comes_before_other_reasons(start: Start) -> None:
    """A list of what is over budget asks how SennitBlockedOn begins."""
    nodes = [call("a", "fail"), call("b"), call("c", needs=["b"])]
    handle = await start(plan={"nodes": nodes, "answer": {"a": "$a", "c": "$c"}}, budget={"nodes": 2})
    await until(handle, lambda view: view["status"] == "blocked")
    assert (await attributes_when_blocked(handle))["BlockedOn"] == "budget and 1 more"


async def test_a_wide_run_writes_twice(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_attributes, "EVERY", timedelta(hours=1))  # however busy the machine is
    handle = await start(plan={"nodes": [call(f"n{i}") for i in range(60)], "answer": "$n0"})
    await handle.result()
    assert (await kinds(handle))[UPSERTED] == 2


async def test_a_goal_is_seen_being_planned_and_its_tokens_counted(client: Client, start: Start) -> None:
    handle = await start(goal="How high is Mont Blanc?")
    await handle.result()
    written = [
        sorted(event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields)
        async for event in handle.fetch_history_events()
        if event.HasField("upsert_workflow_search_attributes_event_attributes")
    ]
    assert written[0] == ["SennitPhase", "SennitStatus"]
    assert (await attributes(handle))["Status"] == "done"


@pytest.mark.parametrize("plan", [{"nodes": [call("a", "no_such_tool")]}])
async def test_a_plan_that_is_refused_shows_as_failed(start: Start, plan: dict[str, Any]) -> None:
    handle = await start(plan=plan)
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert await attributes(handle) == {"Status": "failed", "Phase": "preparing"}


async def test_a_cancelled_run_shows_as_cancelled(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"seconds": 20})]})
    await until(handle, lambda view: view["counts"].get("running") == 1)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert (await attributes(handle))["Status"] == "cancelled"


async def test_a_continued_run_keeps_its_attributes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, *drain.SOFT_BOUNDS[1:]))
    nodes = [call(f"n{i}", args={"value": f"$n{i - 1}.value" if i else 1}) for i in range(16)]
    handle = await start(plan={"nodes": nodes}, tenant="acme")
    await handle.result()
    assert await attributes(handle) == {
        "Status": "done", "Phase": "ended", "Tenant": "acme", "NodesTotal": 16, "NodesDone": 16,
    }  # fmt: skip


async def test_a_copied_run_sheds_what_it_was_started_with(client: Client, start: Start) -> None:
    """ "Start Workflow Like This One" copies the old run's attributes."""
    first = await start(
        plan={"nodes": [call("a", "fail"), {"id": "g", "kind": "gate", "question": "?"}], "answer": "$g"}
    )
    await until(first, lambda view: view["status"] == "blocked")
    while (await attributes(first)).get("NodesFailed") != 1:  # the query may see more than the last task has written
        await asyncio.sleep(0.05)
    copied = (await first.describe()).typed_search_attributes
    again = await client.start_workflow(
        "AgentRun", {"plan": {"nodes": [call("a")]}}, id=f"{first.id}-2", task_queue="sennit.workflow",
        search_attributes=copied,
    )  # fmt: skip
    await again.result()
    assert await attributes(again) == {
        "Status": "done", "Phase": "ended", "NodesTotal": 1, "NodesDone": 1, "NodesFailed": 0,
    }  # fmt: skip


async def test_progress_is_written_on_the_way_but_not_often(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_attributes, "EVERY", timedelta(0))
    nodes = [call(f"n{i}", args={"value": f"$n{i - 1}.value" if i else 1}) for i in range(3)]
    handle = await start(plan={"nodes": nodes})
    await handle.result()
    assert (await kinds(handle))[UPSERTED] == 4, "three turns and the end"


async def test_a_list_learns_of_what_a_person_has_skipped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_attributes, "EVERY", timedelta(milliseconds=300))
    gates = [{"id": name, "kind": "gate", "question": "Which?"} for name in ("a", "b", "c")]
    handle = await start(plan={"nodes": gates, "answer": "$c"})
    found = await attributes_when_blocked(handle)
    assert (found["BlockedOn"], found.get("NodesDone", 0)) == ("gate a and 2 more", 0)
    await insist(handle, "skip_node", {"node": "a"})
    async with asyncio.timeout(100):
        while found.get("NodesDone") != 1:
            await asyncio.sleep(0.05)
            found = await attributes(handle)
    assert found["BlockedOn"] == "gate b and 1 more"


async def test_without_attributes_in_the_namespace_nothing_is_written(
    start: Start, host: Activities, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(client: Client) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(host._namespace, "attributes", none)
    handle = await start(plan={"nodes": [call("a")]}, tenant="acme")
    await handle.result()
    assert (await kinds(handle))[UPSERTED] == 0


async def test_the_end_of_the_timer_decides_when_a_list_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay may join a task with a later one, and then it has the time of that one."""
    now, written, rings = datetime(2026, 1, 1, tzinfo=UTC), list[int](), asyncio.Event()

    async def sleep(_: timedelta, *, summary: str) -> None:
        assert summary
        await rings.wait()

    info = SimpleNamespace(typed_search_attributes=TypedSearchAttributes.empty)
    monkeypatch.setattr(workflow, "info", lambda: info)
    monkeypatch.setattr(workflow, "now", lambda: now)
    monkeypatch.setattr(workflow, "sleep", sleep)
    monkeypatch.setattr(workflow, "upsert_search_attributes", lambda changes: written.append(len(changes)))
    attributes, woken = SearchAttributes(("SennitTokens",)), asyncio.Event()

    def publish(tokens: int) -> None:
        attributes.publish("running", "running", None, Usage(tokens), started=tokens, wake=woken.set)

    publish(1)
    now += timedelta(seconds=1)
    publish(2)
    await asyncio.sleep(0)
    now += timedelta(seconds=60)
    publish(3)
    assert written == [1], "the timer runs still"
    rings.set()
    await asyncio.wait_for(woken.wait(), 5)
    publish(3)
    assert written == [1, 1]
