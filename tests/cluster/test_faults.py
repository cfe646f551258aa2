"""Pods and the server go away while a run is under way. Nothing is lost, and no payment is made twice."""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from chaos.ledger import Ledger
from cluster.kubernetes import DEPLOY, Cluster
from doubles.runs import call, status_of, until
from temporalio.client import Client, WorkflowHandle

from sennit.workflows.messages import queues

pytestmark = pytest.mark.timeout(600)
ROLES = ("workflow", "tools")
CHAINS, LENGTH = 3, 8


def delete(cluster: Cluster) -> None:
    cluster.kubectl(
        "delete", "pods", "--wait=false", "--selector", f"app.kubernetes.io/component in ({','.join(ROLES)})"
    )


def kill(cluster: Cluster) -> None:
    """SIGKILL the worker in its pod, which Kubernetes then starts again."""
    (name,) = cluster.pods("tools")
    code = "import os; os.kill(int(open('/proc/1/task/1/children').read().split()[0]), 9)"
    cluster.kubectl("exec", name, "--", "python3", "-c", code)


def roll_out(cluster: Cluster) -> None:
    cluster.kubectl("rollout", "restart", "deployment")


def evict(cluster: Cluster) -> None:
    for name in [name for role in ROLES for name in cluster.pods(role)]:
        metadata = {"name": name, "namespace": cluster.namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/eviction"
        cluster.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction))


def kill_server(cluster: Cluster) -> None:
    os.kill(int((cluster.state / "pids" / "temporal-server").read_text()), signal.SIGKILL)
    subprocess.run(["sh", str(DEPLOY / "dev-cluster" / "temporal.sh"), "server"], check=True)


def plan(name: str, *, paying: bool) -> dict[str, Any]:
    """Return chains of naps side by side, one payment at their beginning, and one in the middle if `paying`."""
    nodes = [call("early", "transfer", args={"text": f"{name} early", "seconds": 1})]
    if paying:
        nodes.append(call("late", "transfer", args={"text": f"{name} late", "seconds": 8}, needs=["a1"]))
    chains = "abc"[:CHAINS]
    for chain in chains:
        for step in range(LENGTH):
            value = f"${chain}{step - 1}.value." if step else chain
            nodes.append(call(f"{chain}{step}", args={"value": value, "seconds": 2}))
    return {"nodes": nodes, "answer": [f"${chain}{LENGTH - 1}.value" for chain in chains]}


@pytest.mark.parametrize(
    ("disturb", "paying"), [(delete, True), (roll_out, True), (evict, True), (kill, False), (kill_server, True)]
)
async def test_a_run_goes_on(
    workers: Cluster, temporal: Client, ledger: Ledger, disturb: Callable[[Cluster], None], paying: bool
) -> None:
    name = f"cluster-{disturb.__name__}-{os.getpid()}"
    given = {"plan": plan(name, paying=paying), "approval": "never"}
    run = await temporal.start_workflow("AgentRun", given, id=name, task_queue=queues.WORKFLOW)
    view = await until(run, lambda view: status_of(view, "a2") == "running", limit=120)
    settled = {line["id"] for line in view["nodes"] if line["status"] == "succeeded"}
    await asyncio.to_thread(disturb, workers)
    report = await asyncio.wait_for(run.result(), 240)
    extra = await extra_attempts(run)
    print(f"\n{len(settled)} nodes had ended before; extra attempts: {dict(extra)}")
    assert (report["status"], report["answer"]) == ("done", [chain + "." * (LENGTH - 1) for chain in "abc"[:CHAINS]])
    assert not settled & extra.keys()
    assert extra or disturb is not kill
    assert len(extra) <= CHAINS + paying
    assert [ledger.paid(f"{name} {which}") for which in ("early", "late")] == [1, int(paying)]


async def extra_attempts(run: WorkflowHandle[Any, Any]) -> Counter[str]:
    """Return how often each node was tried again."""
    scheduled: dict[int, str] = {}
    tried: Counter[str] = Counter()
    async for event in run.fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled[event.event_id] = event.activity_task_scheduled_event_attributes.activity_id
        elif event.HasField("activity_task_started_event_attributes"):
            started = event.activity_task_started_event_attributes
            tried[scheduled[started.scheduled_event_id]] += started.attempt
    return Counter({node: attempts - 1 for node, attempts in tried.items() if attempts > 1})
