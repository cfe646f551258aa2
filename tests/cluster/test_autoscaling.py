"""KEDA scales a role by the backlog of its queue: from nothing, and back to nothing when there is no work."""

import asyncio
import os
import time
from typing import Any

import pytest
from cluster.kubernetes import Cluster
from doubles.runs import call
from temporalio.client import Client

from workflows.messages import queues

pytestmark = pytest.mark.timeout(900)
NAPS, SLOTS = 24, 4


@pytest.fixture
def scaled(workers: Cluster) -> Any:
    """The tools role with few slots and an autoscaler that is quick to act."""
    if not (workers.state / "pids" / "keda-operator").exists():
        pytest.skip("KEDA was left out; `make cluster-up ARGS=keda` builds and starts it")
    workers.kubectl("set", "env", "deployment/sennit-tools", f"SENNIT_SLOTS={SLOTS}")
    workers.await_rollout()
    trigger = {"endpoint": workers.temporal, "namespace": "default", "taskQueue": queues.TOOLS,
               "queueTypes": "activity", "targetQueueSize": str(SLOTS)}  # fmt: skip
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "sennit-tools", "namespace": workers.namespace},
        "spec": {
            "scaleTargetRef": {"name": "sennit-tools"},
            "minReplicaCount": 0, "maxReplicaCount": 3, "pollingInterval": 5, "cooldownPeriod": 15,
            "triggers": [{"type": "temporal", "metadata": trigger}],
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {
                "scaleDown": {"stabilizationWindowSeconds": 15}}}},
        },
    }  # fmt: skip
    workers.apply(scaled)
    yield workers
    workers.kubectl("delete", "scaledobject/sennit-tools")
    workers.kubectl("set", "env", "deployment/sennit-tools", "SENNIT_SLOTS-")
    workers.kubectl("scale", "deployment/sennit-tools", "--replicas=1")


async def replicas(cluster: Cluster, wanted: range, limit: float = 240.0) -> float:
    """Wait until the tools role has so many replicas and return the seconds that it took."""
    began = time.monotonic()
    async with asyncio.timeout(limit):
        while cluster.read("deployment/sennit-tools")["spec"]["replicas"] not in wanted:
            await asyncio.sleep(1)
    return time.monotonic() - began


async def test_a_backlog_starts_workers_and_its_end_stops_them(scaled: Cluster, temporal: Client) -> None:
    idle = await replicas(scaled, range(1))
    nodes = [call(f"n{index}", args={"value": index, "seconds": 8}) for index in range(NAPS)]
    plan = {"nodes": nodes, "answer": [f"$n{index}.value" for index in range(NAPS)]}
    name = f"cluster-scaling-{os.getpid()}"
    run = await temporal.start_workflow("AgentRun", {"plan": plan}, id=name, task_queue=queues.WORKFLOW)
    first = await replicas(scaled, range(1, 4))
    more = await replicas(scaled, range(2, 4))
    report = await asyncio.wait_for(run.result(), 240)
    none = await replicas(scaled, range(1))
    print(f"\nto 0 in {idle:.0f} s, to 1 in {first:.0f} s, to more in {more:.0f} s, back to 0 in {none:.0f} s")
    assert (report["status"], report["answer"]) == ("done", list(range(NAPS)))
