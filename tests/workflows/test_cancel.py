"""A cancelled run: it ends, its calls are stopped, and its partial results are still there to be read."""

import asyncio
import uuid
from pathlib import Path

import pytest
from doubles.local_workers import Handle, Start, serving
from doubles.runs import call, happens, status_of, until
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from sennit.activities.definitions import Activities
from sennit.starter.client.origin import read_origin
from sennit.workers.workflow_sandbox import runner_for
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages import queues

NODES = 50


async def ended(handle: Handle) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, CancelledError)


def count(cache: Path, mark: str) -> int:
    return len(list((cache / "cancel").glob(f"*.{mark}")))


async def test_fifty_calls_and_a_group_are_cancelled_with_their_run(start: Start, cache: Path) -> None:
    nodes = [call(f"n{index}", "hang", args={"name": "cancel"}) for index in range(NODES)]
    nodes += [call("quick", args={"value": 1}), call("behind", needs=["n0"]), call("a")]
    nodes += [call(name, "hang", args={"name": "cancel"}, needs=["a"]) for name in ("b", "c")]
    handle = await start(plan={"nodes": nodes, "answer": ["$quick", "$b", "$c"], "fuse": "on"})
    await until(handle, lambda view: status_of(view, "quick") == "succeeded")
    await happens(lambda: count(cache, "begun") == NODES + 2)
    await handle.cancel()
    await ended(handle)
    await happens(lambda: count(cache, "cancelled") == NODES + 2)
    view = await handle.query("plan")
    assert view["status"] == "cancelled"
    assert {status_of(view, name) for name in ("behind", "b", "c", "n0", "n49")} == {"cancelled"}
    assert (await handle.query("node", {"node": "quick"}))["preview"] == '{"value":1}'


async def test_runs_that_wait_or_have_only_just_started_are_cancelled(start: Start) -> None:
    gate = await start(plan={"nodes": [{"id": "g", "kind": "gate", "question": "?"}]})
    parked = await start(plan={"nodes": [call("a", "fail"), call("b", needs=["a"])]})
    for handle in (gate, parked):
        await until(handle, lambda view: view["status"] == "blocked")
    new = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    for handle in (gate, parked, new):
        await handle.cancel()
        await ended(handle)
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
        assert set((await handle.query("plan"))["counts"]) <= {"cancelled", "failed"}


async def test_a_second_cancel_and_a_cancel_of_a_finished_run_change_nothing(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    await until(handle, lambda view: status_of(view, "a") == "running")
    await asyncio.gather(*(handle.cancel() for _ in range(3)))
    await ended(handle)
    done = await start(plan={"nodes": [call("a")]})
    await done.result()
    await done.cancel()
    assert (await done.query("plan"))["status"] == "done"


async def test_a_run_that_was_cancelled_before_it_stored_anything_can_be_forked(
    client: Client, host: Activities, cache: Path
) -> None:
    """Nobody served its activities: it has written nothing."""
    given = {"plan": {"nodes": [call("n", "note", args={"text": "once"})]}, "approval": "never"}
    ids = [f"agent-cancelled-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    async with Worker(client, task_queue=queues.WORKFLOW, workflows=[AgentRun], workflow_runner=runner_for(True)):
        handle = await client.start_workflow("AgentRun", given, id=ids[0], task_queue=queues.WORKFLOW)
        await until(handle, lambda view: view["phase"] == "preparing")
        await handle.cancel()
        await ended(handle)
    origin = await read_origin(client, ids[0])
    async with serving(client, host):
        again = {**origin.request, "plan": origin.plan, "origins": list(origin.homes)}
        fork = await client.start_workflow("AgentRun", again, id=ids[1], task_queue=queues.WORKFLOW)
        assert (await fork.result())["status"] == "done"
