"""A plan that waits for a person before any of it starts: approved, rejected with words, edited, in real runs."""

import asyncio
from functools import partial
from typing import Any

import pytest
from doubles.local_workers import Start, remembered_or_not
from doubles.resets import EVERYTHING, reset
from doubles.runs import board, call, failure_of, insist, until
from temporalio import workflow
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from sennit.testing.models import ModelServer
from sennit.workflows.run import drain

pytestmark = pytest.mark.timeout(150)
PLANNER, JOINER = "You plan work", "You put results together"
FIRST = '1. nap(value="6,650 km")\n2. answer("Compare", $1)'
SECOND = '1. nap(value="6,650 km")\n2. nap(value="3,650 km")\n3. answer("Compare", $1, $2)'
OWN = {"nodes": [call("a", "nap", args={"value": "mine"}), call("b", "nap", args={"value": "$a.value"})]}


def asks(view: dict[str, Any], *, beside: str = "") -> bool:
    """Whether the run asks about a plan, and about another one than that of this digest."""
    digests = [item["example"]["digest"] for item in view["blocked"] if item["why"] == "plan"]
    return bool(digests) and digests != [beside]


def asks_after(calls: int, view: dict[str, Any]) -> bool:
    return bool(view["usage"]["calls"] == calls) and asks(view)


async def asked(handle: WorkflowHandle[Any, Any], beside: str = "") -> dict[str, Any]:
    view = await until(handle, partial(asks, beside=beside))
    [item] = view["blocked"]
    return dict(item)


def is_scheduled(event: HistoryEvent) -> bool:
    return event.HasField("activity_task_scheduled_event_attributes")


async def refused(handle: WorkflowHandle[Any, Any], name: str, given: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await insist(handle, name, given)
    return str(caught.value.cause)


async def test_nothing_starts_before_a_person_has_approved_the_plan(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, FIRST)
    model_server.on(JOINER, '{"answer": "The Nile."}')
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    item = await asked(handle)
    view = await handle.query("plan")
    assert (view["status"], view["phase"]) == ("blocked", "planning")
    assert [(line["id"], line["status"]) for line in view["nodes"]] == [("n1", "pending"), ("n2", "pending")]
    assert item["question"] == "may this plan of 2 nodes run?"
    forecast, *lines, whole = item["shown"].splitlines()
    assert forecast.startswith("forecast: about 1,0")
    assert forecast.endswith("along the longest path; writes nothing")
    assert [line.partition(" ")[0] for line in lines] == ["n1", "n2"]
    assert whole == f"the whole plan: sennit plan export {handle.id}"
    shown = await board(handle)
    assert "the plan needs approval:" in shown
    assert "<svg" in shown
    assert item["command"] in shown

    assert "nothing of the plan has started" in await refused(handle, "skip_node", {"node": "n1"})
    assert "name the plan that you have read" in await refused(handle, "approve", {})
    other = "0" * 20
    assert "the plan is another one by now" in await refused(handle, "approve", {"digest": other})
    assert await insist(handle, "approve", item["example"]) == "the plan starts"
    report = await handle.result()
    assert (report["status"], report["answer"], report["usage"]["calls"]) == ("done", "The Nile.", 2)
    assert "no plan waits" not in str(report["warnings"])


async def test_words_have_the_planner_write_another_plan(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, FIRST, SECOND)
    model_server.on(JOINER, '{"answer": "The Nile."}')
    handle = await begin(goal="Nile or Ob?", approve_plan=True, budget={"calls": 3})
    first = await asked(handle)
    rejection = {**first["example"], "reason": "look at the Ob, too"}
    assert "another one" in await insist(handle, "reject", rejection)
    second = await asked(handle, first["example"]["digest"])
    assert second["question"] == "may this plan of 3 nodes run?"
    assert "look at the Ob, too" in model_server.asked[-1].turns[-1][1]
    assert "the plan is another one by now" in await refused(handle, "reject", rejection)
    assert (await handle.query("plan"))["usage"]["calls"] == 2
    await insist(handle, "approve", second["example"])
    report = await handle.result()
    assert (report["status"], len(report["nodes"]), report["usage"]["calls"]) == ("done", 3, 3)


async def test_a_plan_that_is_rejected_ten_times_ends_the_run(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, FIRST, SECOND, FIRST)
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    item = await asked(handle)
    for number in range(10):
        await insist(handle, "reject", {**item["example"], "reason": f"no {number}"})
        if number < 9:
            view = await until(handle, partial(asks_after, number + 2))
            [item] = view["blocked"]
    cause = await failure_of(handle)
    assert isinstance(cause, ApplicationError)
    assert cause.type == "PlanRejected"
    assert "10 plans were rejected" in cause.message
    assert len(model_server.asked) == 10
    assert '"no 0"; "no 1"' in model_server.asked[-1].text


async def test_a_rejection_without_words_ends_the_run(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, FIRST)
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    await insist(handle, "reject", (await asked(handle))["example"])
    cause = await failure_of(handle)
    assert "no reason was given" in str(cause)
    own = await begin(plan=OWN, approve_plan=True)
    await insist(own, "reject", {**(await asked(own))["example"], "reason": "no"})
    assert 'a person has rejected the plan: "no"; it was given with the run' in str(await failure_of(own))


async def test_an_edited_plan_is_checked_and_asked_about_again(begin: Start) -> None:
    handle = await begin(plan=OWN, approve_plan=True, tools=["nap"])
    first = await asked(handle)
    other = {"nodes": [call("a", "note", args={"text": "x"})]}
    assert "`note`" in await refused(handle, "edit_plan", {"plan": other})
    assert "nodes" in await refused(handle, "edit_plan", {"plan": {"nodes": 7}})
    assert (await asked(handle))["example"] == first["example"], "a plan that is refused changes nothing"
    edited = {"nodes": [call("c", "nap", args={"value": "edited"})]}
    confirmation = await insist(handle, "edit_plan", {"plan": edited})
    second = await asked(handle, first["example"]["digest"])
    assert second["example"]["digest"] in confirmation
    assert "another one by now" in await refused(handle, "approve", first["example"])
    await insist(handle, "approve", second["example"])
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", {"value": "edited"})
    assert [line["id"] for line in report["nodes"]] == ["c"]


async def test_a_planner_of_programs_writes_another_one(
    begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.llm.models.Models.plan_format", "program")
    script = "```python\nasync def main(goal: str):\n    return (await nap(value='{}'))['value']\n```"
    model_server.on(PLANNER, script.format("one"), script.format("two"))
    handle = await begin(goal="Say two.", approve_plan=True)

    def holds(view: dict[str, Any], text: str) -> bool:
        return any(text in item["shown"] for item in view["blocked"])

    view = await until(handle, partial(holds, text="'one'"))
    await insist(handle, "reject", {"node": view["blocked"][0]["node"], "reason": "say two"})
    view = await until(handle, partial(holds, text="'two'"))
    await insist(handle, "approve", view["blocked"][0]["example"])
    assert (await handle.result())["answer"] == "two"


async def test_a_plan_that_nobody_approves_ends_the_run(begin: Start) -> None:
    handle = await begin(plan=OWN, approve_plan=True, park_for="1s")
    report = await handle.result()
    assert (report["status"], {line["status"] for line in report["nodes"]}) == ("partial", {"skipped"})
    other = await begin(plan=OWN, approve_plan=True)
    await asked(other)
    await insist(other, "raise_budget", {"tokens": 100})
    await asked(other)
    await insist(other, "finish", {})
    assert (await other.result())["status"] == "partial"
    cancelled = await begin(plan=OWN, approve_plan=True)
    await asked(cancelled)
    await cancelled.cancel()
    await asyncio.wait_for(failure_of(cancelled), 60)


@remembered_or_not
async def test_the_question_outlives_every_worker_and_continuing_as_new(
    client: Client, begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that has continued as new asks about the same plan, and knows what its planner needs for another one."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (drain.SOFT_BOUNDS[0], drain.SOFT_BOUNDS[1], 2))
    monkeypatch.setattr(
        workflow.Info, "is_continue_as_new_suggested", lambda info: info.get_current_history_length() > 20
    )
    model_server.on(PLANNER, FIRST, SECOND, FIRST)
    model_server.on(JOINER, '{"answer": "The Nile."}')
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    item = await asked(handle)
    for word in ("first", "second"):
        for _ in range(3):
            await refused(handle, "approve", {"digest": "0" * 20})
        assert (await asked(handle))["example"] == item["example"]
        await insist(handle, "reject", {**item["example"], "reason": word})
        item = await asked(handle, item["example"]["digest"])
    assert '"first"; "second"' in model_server.asked[-1].text
    assert model_server.asked[-1].turns[-1][1].count("second") == 1
    await insist(handle, "approve", item["example"])
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "The Nile.")
    runs = [run async for run in client.list_workflows(f"WorkflowId = '{handle.id}'")]
    assert len(runs) > 1, "it has continued as new"


async def test_a_reset_asks_again_and_takes_the_words_that_fit(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    """The server gives the updates again before the plan is there: the approval holds for the plan that it names."""
    model_server.on(PLANNER, FIRST, SECOND)
    model_server.on(JOINER, '{"answer": "The Nile."}')
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    await insist(handle, "approve", (await asked(handle))["example"])
    await handle.result()
    bare = await reset(client, handle, is_scheduled, without=EVERYTHING)
    item = await asked(bare)
    assert item["question"] == "may this plan of 2 nodes run?"
    await insist(bare, "approve", item["example"])
    assert (await bare.result())["status"] == "done"
    again = await reset(client, bare, is_scheduled)
    report = await again.result()
    assert (report["status"], report["answer"], len(report["nodes"])) == ("done", "The Nile.", 2)


async def test_a_reset_takes_an_edit_and_the_approval_of_what_was_edited(client: Client, begin: Start) -> None:
    """The approval comes again while a worker still checks the edit, and waits for the plan that it names."""
    handle = await begin(plan=OWN, approve_plan=True)
    first = await asked(handle)
    await insist(handle, "edit_plan", {"plan": {"nodes": [call("c", "nap", args={"value": "edited"})]}})
    await insist(handle, "approve", (await asked(handle, first["example"]["digest"]))["example"])
    await handle.result()
    again = await reset(client, handle, is_scheduled)
    report = await again.result()
    assert (report["status"], report["answer"]) == ("done", {"value": "edited"})


async def test_a_reset_begins_with_the_plan_that_was_approved_and_not_with_a_rejected_one(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    model_server.on(PLANNER, FIRST, SECOND)
    model_server.on(JOINER, '{"answer": "The Nile."}')
    handle = await begin(goal="Nile or Ob?", approve_plan=True)
    first = await asked(handle)
    await insist(handle, "reject", {**first["example"], "reason": "look at the Ob, too"})
    await insist(handle, "approve", (await asked(handle, first["example"]["digest"]))["example"])
    await handle.result()
    again = await reset(client, handle, is_scheduled)
    report = await again.result()
    assert (report["status"], len(report["nodes"])) == ("done", 3)
    assert sum(PLANNER in request.text for request in model_server.asked) == 2


async def test_no_other_plan_is_written_once_the_budget_is_spent(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, FIRST, SECOND)
    handle = await begin(goal="Nile or Ob?", approve_plan=True, budget={"calls": 1})
    first = await asked(handle)
    rejection = {**first["example"], "reason": "look at the Ob, too"}
    assert "the budget is spent" in await refused(handle, "reject", rejection)
    assert (await asked(handle))["example"] == first["example"]
    await insist(handle, "raise_budget", {"calls": 2})
    await insist(handle, "reject", rejection)
    second = await asked(handle, first["example"]["digest"])
    assert "the budget is spent" in await refused(handle, "reject", {**second["example"], "reason": "no"})
    await insist(handle, "reject", second["example"])
    assert "no reason was given" in str(await failure_of(handle))
