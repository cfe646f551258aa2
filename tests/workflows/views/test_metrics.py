"""Runs and nodes are counted once, however often a run is replayed and continued."""

import asyncio
from collections import Counter

import pytest
from doubles.local_workers import Handle, serving
from doubles.runs import call, insist
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from sennit.activities.definitions import Activities
from sennit.starter.dev.server import DevServer
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import DATA_CONVERTER


async def nothing_runs(run: Handle) -> None:
    """Wait until the run has taken the end of every node that does not wait for a person.

    A query would count again: a worker that remembers nothing runs the whole workflow for it.
    """
    kinds: list[str] = []
    while kinds.count("ACTIVITY_TASK_COMPLETED") < 5 or "ACTIVITY_TASK_FAILED" not in kinds or busy(kinds):
        await asyncio.sleep(0.1)
        events = [event async for event in run.fetch_history_events()]
        kinds = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]


def busy(kinds: list[str]) -> bool:
    """Whether something came after the last workflow task that has ended."""
    after = kinds[::-1][: kinds[::-1].index("WORKFLOW_TASK_COMPLETED")]
    return any(kind.startswith(("ACTIVITY_TASK_", "WORKFLOW_TASK_")) for kind in after)


async def test_runs_are_counted_at_each_status_and_nodes_at_the_end(dev_server: DevServer, host: Activities) -> None:
    buffer = MetricBuffer(10_000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    client = await Client.connect(dev_server.address, data_converter=DATA_CONVERTER, runtime=runtime)
    each = {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}}
    nodes = [
        call("list", "count", args={"count": 3}),
        {"id": "all", "kind": "map", "over": "$list.items", "do": each},
        call("bad", "fail"),
        call("after", needs=["bad"]),
        {"id": "ask", "kind": "gate", "question": "Go on?", "needs": ["all"]},
    ]
    async with serving(client, host, cached=0):
        request = {"plan": {"nodes": nodes, "answer": "$all"}}
        run = await client.start_workflow("AgentRun", request, id="agent-counted", task_queue=queues.WORKFLOW)
        await nothing_runs(run)
        await insist(run, "finish", {})
        assert (await run.result())["status"] == "partial"
        await client.start_workflow("AgentRun", {"no": "plan"}, id="agent-refused", task_queue=queues.WORKFLOW)
        with pytest.raises(Exception, match="execution failed"):
            await client.get_workflow_handle("agent-refused").result()
    found: Counter[tuple[str, ...]] = Counter()
    for update in buffer.retrieve_updates():
        name = update.metric.name.removeprefix("sennit_")
        if name in ("runs", "nodes"):
            found[name, str(update.attributes["kind"]), str(update.attributes["status"])] += int(update.value)
    runs = [(("runs", "run", status), 1) for status in ("running", "blocked", "partial", "failed")]
    nodes_by = {("tool", "succeeded"): 1, ("item", "succeeded"): 3, ("map", "succeeded"): 1}
    nodes_by |= {("tool", "failed"): 1, ("tool", "skipped"): 1, ("gate", "skipped"): 1}
    assert found == {**dict(runs), **{("nodes", *key): count for key, count in nodes_by.items()}}
