"""KEDA scales a role by the backlog of its queue, from nothing and back to nothing; or Kubernetes scales it by CPU."""

import asyncio
import os
import time
from collections.abc import Iterator

import pytest
import yaml
from cluster.kubernetes import KUBERNETES, Cluster
from doubles.runs import call
from temporalio.client import Client

from sennit.workflows.messages import queues

pytestmark = pytest.mark.timeout(900)
NAPS, SLOTS = 24, 4
QUICK = {
    "minReplicaCount": 0,
    "maxReplicaCount": 3,
    "pollingInterval": 5,
    "cooldownPeriod": 15,
    "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 15}}}},
}


BUSY = "timeout 60 python3 -c 'while True: pass' >/dev/null 2>&1 &"


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


@pytest.fixture
def scaled_by_cpu(workers: Cluster) -> Iterator[Cluster]:
    """The tools role with a request that means something, and its autoscaler as it is shipped, but from 1 to 2 pods."""
    if not (workers.state / "pids" / "metrics-server").exists():
        pytest.skip("metrics-server was left out; `make cluster-up ARGS=keda` builds and starts it")
    workers.kubectl("set", "resources", "deployment/sennit-tools", "--requests=cpu=200m")
    workers.await_rollout()
    for each in yaml.safe_load_all((KUBERNETES / "components" / "hpa" / "autoscalers.yaml").read_text()):
        if each["metadata"]["name"] == "sennit-tools":
            each["metadata"]["namespace"] = workers.namespace
            each["spec"] |= {
                "minReplicas": 1,
                "maxReplicas": 2,
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
            }
            workers.apply(each)
    yield workers
    workers.kubectl("delete", "horizontalpodautoscaler/sennit-tools")
    workers.kubectl("set", "resources", "deployment/sennit-tools", "--requests=cpu=20m")
    workers.kubectl("scale", "deployment/sennit-tools", "--replicas=1")


async def test_work_of_the_processor_starts_workers(scaled_by_cpu: Cluster) -> None:
    idle = await utilization(scaled_by_cpu)
    await replicas(scaled_by_cpu, range(1, 2))
    (pod,) = scaled_by_cpu.pods("tools")
    scaled_by_cpu.kubectl("exec", pod, "--", "sh", "-c", BUSY)
    more = await replicas(scaled_by_cpu, range(2, 3), limit=60)
    print(f"\nidle at {idle} % of its request; to 2 in {more:.0f} s")


async def utilization(cluster: Cluster) -> int:
    """Return how much of its request the tools role takes, once that is known and below what starts another worker."""
    async with asyncio.timeout(120):
        while True:
            status = cluster.read("horizontalpodautoscaler/sennit-tools")["status"]
            for each in status.get("currentMetrics") or ():
                percent = each.get("resource", {}).get("current", {}).get("averageUtilization")
                if percent is not None and percent < 70:
                    return int(percent)
            await asyncio.sleep(1)
