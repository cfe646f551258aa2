"""KEDA scales a role by the backlog of its queue: from nothing, and back to nothing when there is no work."""

import asyncio
import os
import time
from collections.abc import Iterator

import pytest
import yaml
from cluster.kubernetes import KUBERNETES, Cluster
from doubles.runs import call
from temporalio.client import Client

from workflows.messages import queues

pytestmark = pytest.mark.timeout(900)
NAPS, SLOTS = 24, 4
QUICK = {
    "minReplicaCount": 0,
    "maxReplicaCount": 3,
    "pollingInterval": 5,
    "cooldownPeriod": 15,
    "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 15}}}},
}


@pytest.fixture
def scaled(workers: Cluster) -> Iterator[Cluster]:
    """The tools role with few slots, and its autoscaler as it is shipped, but quick to act and with no least number."""
    if not (workers.state / "pids" / "keda-operator").exists():
        pytest.skip("KEDA was left out; `make cluster-up ARGS=keda` builds and starts it")
    workers.kubectl("set", "env", "deployment/sennit-tools", f"SENNIT_SLOTS={SLOTS}")
    workers.await_rollout()
    for name in ("triggerauthentication", "scaledobjects"):
        shipped = yaml.safe_load_all((KUBERNETES / "components" / "keda" / f"{name}.yaml").read_text())
        for each in shipped:
            if each["metadata"]["name"] in ("sennit-temporal", "sennit-tools"):
                each["metadata"]["namespace"] = workers.namespace
                each["spec"] |= QUICK if each["kind"] == "ScaledObject" else {}
                workers.apply(each)
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
