"""What the tests of the cluster share: kubectl, the workers deployed once, and the reasons to skip."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chaos.ledger import Ledger, ledger_service
from cluster.kubernetes import KUBERNETES, Cluster, Manifest
from temporalio.client import Client

from sennit.workflows.messages.converter import connect

TESTS = Path(__file__).parents[1]
RIVERS = TESTS.parent / "examples" / "corpus" / "rivers"
ORDER = ("test_manifests", "test_restore", "test_workers", "test_policies", "test_faults", "test_autoscaling")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is quick and must hold first comes first."""
    items.sort(key=lambda item: ORDER.index(item.path.stem))


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster that `make cluster-up` started, with the namespace of the workers and its accounts."""
    if "CLUSTER_STATE" not in os.environ:
        pytest.fail("these tests are run by `make cluster-test`")
    cluster = Cluster()
    first = ("Namespace", "ServiceAccount")
    cluster.apply(*(each for each in cluster.render(KUBERNETES / "overlays" / "local") if each["kind"] in first))
    return cluster


@pytest.fixture(scope="session")
def ledger(cluster: Cluster, node: None) -> Iterator[Ledger]:
    """A service on this machine that takes payments from pods."""
    with ledger_service(cluster.gateway) as ledger:
        yield ledger


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> None:
    """Something to run pods on."""
    reason = cluster.state / "no-node"
    if reason.exists():
        pytest.skip(reason.read_text().strip())


@pytest.fixture(scope="session")
def workers(cluster: Cluster, ledger: Ledger) -> Cluster:
    """The workers of overlays/local, with the tools for tests and some documents, all of them ready."""
    settings = {"SENNIT_TOOLS": "doubles.tools", "SENNIT_TOOLS_PATH": "/tests", "SENNIT_DOCS": "/documents",
                "SENNIT_APPROVAL": "never", "PAYMENTS_URL": ledger.url}  # fmt: skip
    files = {"tools": ("/tests/doubles", TESTS / "doubles"), "documents": ("/documents", RIVERS)}
    manifests = [config_map(name, folder) for name, (_, folder) in files.items()] + [payments(ledger.url)]
    for each in cluster.render(KUBERNETES / "overlays" / "local"):
        if each["kind"] == "Deployment":
            add(each, settings, {name: place for name, (place, _) in files.items()})
        manifests.append(each)
    cluster.apply(*manifests)
    cluster.kubectl("delete", "job", "store", "--ignore-not-found")
    cluster.kubectl("create", "job", "store", "--from=cronjob/sennit-store")
    cluster.await_rollout()
    return cluster


def config_map(name: str, folder: Path) -> Manifest:
    """Return a ConfigMap of the files in a folder that workers need."""
    wanted = [folder / "tools.py"] if name == "tools" else sorted(folder.glob("*.md"))
    data = {path.name: path.read_text() for path in wanted}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "sennit"}, "data": data}


def payments(url: str) -> Manifest:
    """Return the policy that lets tools reach the service that takes payments."""
    address = urlsplit(url)
    rule = {"to": [{"ipBlock": {"cidr": f"{address.hostname}/32"}}], "ports": [{"port": address.port}]}
    tools = {"matchLabels": {"app.kubernetes.io/component": "tools"}}
    metadata = {"name": "payments", "namespace": "sennit"}
    spec = {"podSelector": tools, "policyTypes": ["Egress"], "egress": [rule]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def add(deployment: Manifest, settings: dict[str, str], folders: dict[str, str]) -> None:
    """Give a Deployment more settings, and ConfigMaps as folders."""
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    (worker,) = pod["containers"]
    worker["env"] += [{"name": name, "value": value} for name, value in settings.items()]
    for name, place in folders.items():
        pod["volumes"].append({"name": name, "configMap": {"name": name}})
        worker["volumeMounts"].append({"name": name, "mountPath": place})


@pytest.fixture
async def temporal(workers: Cluster) -> AsyncIterator[Client]:
    """A client outside of the cluster; afterwards all workers are ready again."""
    yield await connect(workers.temporal)
    workers.await_rollout()
