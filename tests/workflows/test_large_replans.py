"""Replans above a set size: their node waits for a person, over real HTTP and a real server."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.local_workers import remembered_or_not
from doubles.model_rules import Call, Reply
from doubles.models import ModelServer
from doubles.runs import insist, status_of, until
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError

from workflows.run import engine

pytestmark = pytest.mark.server
Begin = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
PLANNER, JOINER = "You plan work", "You put results together"
PLAN = '1. nap(value="6,650 km long")\n2. answer("Which?", $1)'
MORE = r'"3. nap(value=\"a\")\n4. nap(value=\"b\")\n5. nap(value=\"c\")\n6. answer($1, $3, $4, $5)"'
WISH = f'{{"replan": {{"why": "the page on the Amazon is gone", "nodes": {MORE}}}}}'
ANSWER = '{"answer": "The Nile."}'


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


async def calls_spent(handle: WorkflowHandle[Any, Any]) -> int:
    costs = await handle.query("costs")
    spent: int = costs["budget"]["calls"]["spent"]
    return spent


@remembered_or_not
async def test_an_approved_replan_is_added_and_costs_no_other_call(begin: Begin, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH, ANSWER)
    handle = await begin(goal="Which is longer?", approve_replans_above=3, budget={"calls": 10})
    view = await until(handle, blocked)
    assert (status_of(view, "n2"), view["counts"]) == ("waiting", {"waiting": 1, "succeeded": 1})
    [item] = view["blocked"]
    assert (item["node"], item["why"], item["update"]) == ("n2", "replan", "approve")
    assert item["question"] == (
        "may it add 4 more nodes, about 1,001 tokens? the page on the Amazon is gone: "
        'n3 nap "a"; n4 nap "b"; n5 nap "c"; and 1 more'
    )
    assert item["command"] == f"sennit approve {handle.id} n2"
    assert (await calls_spent(handle), len(model_server.asked)) == (2, 2)
    assert await insist(handle, "approve", {"node": "n2"}) == "the nodes that n2 asks for are added"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert [line["attempts"] for line in report["nodes"]] == [1] * 6
    assert await calls_spent(handle) == report["usage"]["calls"] == len(model_server.asked) == 3


@remembered_or_not
async def test_a_refused_replan_is_told_to_its_joiner(begin: Begin, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH, "Not known.")
    handle = await begin(goal="Which is longer?", approve_replans_above=0, max_replans=1, budget={"calls": 10})
    await until(handle, blocked)
    said = await insist(handle, "reject", {"node": "n2", "reason": "one page is enough"})
    assert said == "the nodes that n2 asks for are refused, and its model is asked again"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "Not known.")
    assert [line["id"] for line in report["nodes"]] == ["n1", "n2"]
    assert "a person refused these nodes (4): one page is enough" in model_server.asked[-1].text
    assert "add to the plan" not in model_server.asked[-1].text, "it was its last wish"
    assert await calls_spent(handle) == report["usage"]["calls"] == 3


async def test_a_smaller_replan_is_added_unasked(begin: Begin, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH, ANSWER)
    report = await (await begin(goal="Which is longer?", approve_replans_above=4)).result()
    assert (report["status"], len(report["nodes"])) == ("done", 6)


async def test_a_wish_that_cannot_be_added_is_shown_to_nobody(begin: Begin, model_server: ModelServer) -> None:
    """It goes back to the joiner as ever."""
    model_server.on(PLANNER, PLAN)
    again = r'{"replan": {"why": "again", "nodes": "3. nap(value=\"6,650 km long\")\n4. answer($3)"}}'
    model_server.on(JOINER, again, "Not known.")
    report = await (await begin(goal="Which is longer?", approve_replans_above=0)).result()
    assert (report["status"], report["answer"]) == ("done", "Not known.")
    assert "only repeat calls that were made already" in model_server.asked[-1].text


async def test_what_people_may_do_to_a_node_whose_wish_waits(begin: Begin, model_server: ModelServer) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH)
    runs = [await begin(goal="Which is longer?", approve_replans_above=0) for _ in range(3)]
    skipped, finished, cancelled = runs
    for handle in runs:
        await until(handle, blocked)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await skipped.execute_update("retry_node", {"node": "n2"})
    assert "`n2` asks for more nodes; reject asks its model again" in str(refused.value.cause)
    await insist(skipped, "skip_node", {"node": "n2"})
    assert (await skipped.result())["status"] == "partial"
    await finished.execute_update("finish", {})
    report = await finished.result()
    assert (report["status"], [line["status"] for line in report["nodes"]]) == ("partial", ["succeeded", "skipped"])
    await cancelled.cancel()
    with pytest.raises(WorkflowFailureError):
        await cancelled.result()


async def test_a_wish_waits_while_its_run_continues_as_new(
    client: Client, begin: Begin, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "DRAIN_EVENTS", 30)
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH, ANSWER)
    handle = await begin(goal="Which is longer?", approve_replans_above=3, budget={"calls": 10})
    latest = client.get_workflow_handle(handle.id)
    view = await until(latest, lambda view: blocked(view) and view["run_id"] != handle.first_execution_run_id)
    assert "the page on the Amazon is gone" in view["blocked"][0]["question"]
    await insist(latest, "approve", {"node": "n2"})
    report = await latest.result()
    assert (report["status"], report["answer"], len(report["nodes"])) == ("done", "The Nile.", 6)
    assert await calls_spent(latest) == report["usage"]["calls"] == 3


async def test_what_was_said_of_a_wish_is_told_by_the_next_run(
    client: Client, begin: Begin, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refused joiner waits for the only place; when that is free the run drains, and starts it as the next one."""
    monkeypatch.setattr(engine, "DRAIN_UPDATES", 1)
    model_server.on(PLANNER, '1. nap(value="a")\n2. nap(value="b", seconds=4)\n3. answer("Which?", $1)')
    model_server.on(JOINER, WISH.replace("3. nap", "7. nap").replace("$3", "$7"), ANSWER)
    handle = await begin(goal="Which is longer?", approve_replans_above=0, window=1)
    await until(handle, lambda view: status_of(view, "n3") == "waiting" and status_of(view, "n2") == "running")
    await insist(handle, "reject", {"node": "n3", "reason": "fewer"})
    assert len(model_server.asked) == 2
    latest = client.get_workflow_handle(handle.id)
    assert (await latest.result())["answer"] == "The Nile."
    assert (await latest.describe()).run_id != handle.first_execution_run_id
    assert "a person refused these nodes (4): fewer" in model_server.asked[-1].text


async def test_a_wish_is_added_to_the_plan_as_it_is_when_it_is_approved(
    begin: Begin, model_server: ModelServer
) -> None:
    """A model beside it calls a tool, so the plan has grown by a loop before the person says yes."""
    model_server.on(PLANNER, '1. nap(value="a")\n2. llm("How much?", tools=["count"])\n3. answer("Which?", $1)')
    model_server.on(JOINER, WISH.replace("3.", "7.").replace("[$3]", "[$7]").replace("$3", "$7"), ANSWER)
    model_server.on("How much", Reply(calls=(Call("count", {"count": 2}),), first_token=1.5), results=0)
    model_server.on("How much", "two", results=1)
    handle = await begin(goal="Which is longer?", approve_replans_above=0)
    view = await until(handle, lambda view: status_of(view, "n3") == "waiting")
    assert view["status"] == "running"
    view = await until(handle, blocked)
    grown = [line["id"] for line in view["nodes"]]
    assert len(grown) > 3
    await insist(handle, "approve", {"node": "n3"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    assert [line["id"] for line in report["nodes"]][: len(grown)] == grown


async def test_the_replan_of_a_sub_agent_waits_as_its_writes_do(
    client: Client, begin: Begin, model_server: ModelServer
) -> None:
    model_server.on(PLANNER, PLAN)
    model_server.on(JOINER, WISH, ANSWER)
    plan = {"nodes": [{"id": "sub", "kind": "agent", "goal": "Which?", "tools": ["nap"]}], "answer": "$sub"}
    handle = await begin(plan=plan, approve_replans_above=3)
    child = client.get_workflow_handle(f"{handle.id}.sub")
    view = await until(child, blocked)
    assert view["blocked"][0]["command"] == f"sennit approve {handle.id}.sub n2"
    shown = (await until(handle, blocked))["blocked"][0]
    assert (shown["node"], shown["why"]) == ("sub.n2", "replan")
    await insist(child, "approve", {"node": "n2"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
