"""The events of runs, read as a client does: every reader sees the same, whatever becomes of the workers."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from doubles.local_workers import Start, remembered_or_not, serving, starting
from doubles.resets import EVERYTHING, reset, scheduled
from doubles.runs import call, insist, status_of, until
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sennit.activities.definitions import Activities
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import NotAllowed, RunIsOver
from sennit.starter.client.run import Run
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages import queues
from sennit.workflows.messages.views import RunEvent

pytestmark = pytest.mark.timeout(60)

GATE = {"id": "ok", "kind": "gate", "question": "Publish ${a.value}?", "schema": {"enum": ["yes", "no"]}}
ASKING = {"nodes": [call("a", args={"value": "x"}), GATE, {"id": "both", "kind": "join", "inputs": ["a", "ok"]}]}
LIVE = ("progress", "lost_worker")


def told(events: list[RunEvent]) -> list[str]:
    return [f"{event.kind} {event.node or event.status or event.nodes}" for event in events if event.kind not in LIVE]


def numbered(events: list[RunEvent]) -> list[Any]:
    """Return what no other reader may see otherwise."""
    return [event.model_dump(exclude={"at"}) for event in events if event.kind not in LIVE]


async def all_of(run: Run[Any], after: int = 0) -> list[RunEvent]:
    return [event async for event in run.events(after=after)]


async def until_told(run: Run[Any], last: str) -> list[RunEvent]:
    """Return all events up to the first that is told like `last`."""
    seen: list[RunEvent] = []
    async with aclosing(run.events()) as events:
        async for event in events:
            seen.append(event)
            if last in told([event]):
                break
    return seen


@remembered_or_not
async def test_events_go_on_while_a_run_is_blocked_and_are_the_same_for_every_reader(
    client: Client, start: Start
) -> None:
    handle = await start(plan=ASKING)
    run = await Sennit(client).find(handle.id)
    seen: list[RunEvent] = []
    async with aclosing(run.events()) as events:
        async for event in events:
            seen.append(event)
            if event.kind == "asked":
                assert event.asks is not None
                assert (event.asks.update, event.asks.question) == ("answer", "Publish x?")
                assert await run.answer("ok", "yes")
    assert told(seen) == [
        "planned 3",
        "started a",
        "succeeded a",
        "asked ok",
        "answered ok",
        "started ok",
        "succeeded ok",
        "succeeded both",
        "ended done",
    ]
    assert [event.number for event in seen if event.kind not in LIVE] == list(range(1, 10))
    assert next(event.text for event in seen if event.kind == "succeeded") == '{"value":"x"}'
    assert numbered(await all_of(run)) == numbered(seen)
    assert numbered(await all_of(run, after=4)) == numbered(seen)[4:]
    assert await all_of(run, after=10) == []
    with pytest.raises(RunIsOver):
        await run.answer("ok", "no")


async def test_a_worker_that_remembers_nothing_tells_the_same(client: Client, host: Activities) -> None:
    async with starting(client) as start:
        async with serving(client, host):
            handle = await start(plan={"nodes": [call("a"), call("b", "fail", needs=["a"])]}, on_failure="park")
            run = await Sennit(client).find(handle.id)
            async with aclosing(run.events()) as events:
                first = []
                async for event in events:
                    first.append(event)
                    if event.kind == "asked":
                        break
        async with serving(client, host, cached=0):
            with pytest.raises(NotAllowed):
                await run.skip("a")
            assert await run.skip("b")
            both = await all_of(run)
    assert numbered(both)[: len(numbered(first))] == numbered(first)
    assert told(both)[-4:] == ["asked b", "answered b", "skipped b", "ended partial"]


async def test_an_end_that_the_run_cannot_note_comes_from_the_server(client: Client, start: Start) -> None:
    handle = await start(plan=ASKING)
    run = await Sennit(client).find(handle.id)
    await until(handle, lambda view: status_of(view, "ok") == "waiting")
    reading = asyncio.ensure_future(all_of(run))
    await handle.terminate("no more")
    seen = await reading
    assert (told(seen)[-1], seen[-1].text) == ("ended failed", "the run was terminated")
    assert numbered(await all_of(run)) == numbered(seen)
    assert await all_of(run, after=seen[-1].number) == []


async def test_what_a_reset_took_back_is_followed_by_higher_numbers(client: Client, start: Start) -> None:
    handle = await start(plan=ASKING)
    sennit = Sennit(client)
    await until(handle, lambda view: status_of(view, "ok") == "waiting")
    await insist(handle, "answer", {"node": "ok", "value": "no"})
    before = await all_of(await sennit.find(handle.id))
    await reset(client, handle, scheduled("a"), without=EVERYTHING)
    run = await sennit.find(handle.id)
    seen = []
    async with aclosing(run.events(after=before[-1].number)) as events:
        async for event in events:
            seen.append(event)
            if event.kind == "asked":
                await run.answer("ok", "yes")
    assert told(seen)[0] == "reset 0"
    assert told(seen)[-1] == "ended done"
    assert all(event.number > before[-1].number for event in seen)


SOON, LATER, BETWEEN = (
    {"id": name, "kind": "gate", "question": f"{name}?", "timeout": timeout}
    for name, timeout in (("soon", "1h"), ("later", "48h"), ("between", "24h"))
)
"""Whoever asks `between` after the others sets no timer: its deadline is neither the next nor the last."""


async def test_numbers_stay_when_a_replay_joins_two_workflow_tasks(client: Client, host: Activities) -> None:
    """The SDK may join a workflow task that wrote no command with the next one, if nothing came between them."""

    def worker(queue: str, **serves: Any) -> Worker:
        return Worker(client, task_queue=queue, workflow_runner=UnsandboxedWorkflowRunner(), **serves)

    def deciding() -> Worker:
        return worker(queues.WORKFLOW, workflows=[AgentRun], max_cached_workflows=0, max_concurrent_workflow_tasks=1)

    ends = {"first": 0, "second": 1, "third": 2, "last": 600}
    calls = [call(name, args={"seconds": seconds}, on_error="skip") for name, seconds in ends.items()]
    async with starting(client) as start, worker(queues.TOOLS, activities=host.tools()):
        async with deciding():
            nodes = [SOON, LATER, *calls, BETWEEN | {"needs": ["third"]}]
            handle = await start(plan={"nodes": nodes, "answer": [f"${node['id']}" for node in nodes]})
            run = await Sennit(client).find(handle.id)
            first: list[RunEvent] = []
            async with aclosing(run.events()) as events:
                async for event in events:
                    first.append(event)
                    if event.kind == "asked" and event.node == "between":
                        break
        refused = asyncio.ensure_future(handle.execute_update("answer", {"node": "nowhere", "value": "now"}))
        await asyncio.sleep(1)  # a task is there for it when the next event comes
        await client.get_async_activity_handle(workflow_id=handle.id, run_id=None, activity_id="last").complete("junk")
        async with deciding():
            with pytest.raises(WorkflowUpdateFailedError):
                await refused
            seen = numbered(await until_told(run, "skipped last"))
        assert seen[: len(numbered(first))] == numbered(first)
