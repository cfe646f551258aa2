"""The NetworkPolicies of the base are enforced: each role reaches what they allow, and nothing else."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from cluster.kubernetes import Cluster, Manifest

PORT = 9000
OTHERS = ("monitoring", "stranger")
ALLOWED = {
    "workflow": {"Temporal"},
    "llm": {"Temporal", "internet"},
    "tools": {"Temporal", "internet"},
    "sandbox": {"Temporal"},
    # No policy holds the other namespaces, so they show that all this is there to be reached.
    "monitoring": {"Temporal", "inside Temporal", "internet", "internet, another port", "stranger", "worker"},
    "stranger": {"Temporal", "inside Temporal", "internet", "internet, another port", "stranger"},
}
CONNECT = """
import json, socket, sys
reached = []
for name, place in json.loads(sys.argv[1]).items():
    try:
        socket.create_connection(place, 3).close()
    except OSError:
        continue
    reached.append(name)
print(json.dumps(reached))
"""


@pytest.fixture(scope="module")
def enforced(workers: Cluster) -> Iterator[Cluster]:
    """The workers, a pod in each of two other namespaces, and servers on what stands for the internet."""
    reason = workers.state / "no-policies"
    if reason.exists():
        pytest.skip(reason.read_text().strip())
    with ExitStack() as servers:
        for port in (443, 8443):
            servers.enter_context(socket.create_server((workers.internet, port)))
        for name in OTHERS:
            replace(workers, namespace=name).apply(*outsider(name))
        for name in OTHERS:
            replace(workers, namespace=name).kubectl("wait", "pod/outsider", "--for=condition=Ready", "--timeout=60s")
        yield workers
    workers.kubectl("delete", "namespace", *OTHERS)


def outsider(namespace: str) -> Iterator[Manifest]:
    """Yield a namespace with a pod that serves."""
    metadata = {"name": "outsider", "namespace": namespace}
    serve = ["python3", "-m", "http.server", str(PORT)]
    pod = {
        "serviceAccountName": "outsider",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "server", "image": "localhost/sennit:dev", "command": serve}],
    }
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


@pytest.mark.parametrize("source", ALLOWED)
def test_a_pod_reaches_what_the_policies_allow_and_nothing_else(enforced: Cluster, source: str) -> None:
    host, _, port = enforced.temporal.partition(":")
    places = {
        "Temporal": (host, int(port)),
        "inside Temporal": (host, int(port) + 1),
        "internet": (enforced.internet, 443),
        "internet, another port": (enforced.internet, 8443),
        "stranger": (pod_of(enforced, "stranger")["status"]["podIP"], PORT),
        "worker": (pod_of(enforced, "llm" if source == "workflow" else "workflow")["status"]["podIP"], 8080),
    }
    metadata = pod_of(enforced, source)["metadata"]
    there = replace(enforced, namespace=metadata["namespace"])
    for _ in range(20):  # the rules follow a new pod a moment later
        reached = json.loads(
            there.kubectl("exec", metadata["name"], "--", "python3", "-c", CONNECT, json.dumps(places))
        )
        if set(reached) == ALLOWED[source]:
            break
        time.sleep(1)
    assert set(reached) == ALLOWED[source]


def pod_of(cluster: Cluster, source: str) -> Manifest:
    """Return the pod of a role, or of another namespace."""
    if source in OTHERS:
        pod: Manifest = replace(cluster, namespace=source).read("pod/outsider")
        return pod
    return next(iter(cluster.pods(source).values()))
