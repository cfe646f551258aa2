"""The API server takes every overlay and component as it is written, and refuses what is wrong."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.kubernetes import KUBERNETES, Cluster, KubectlFailed, Manifest

OVERLAYS, COMPONENTS = (
    sorted(path.name for path in (KUBERNETES / each).iterdir()) for each in ("overlays", "components")
)


@pytest.fixture
def deployment(cluster: Cluster) -> Manifest:
    """A Deployment as it is shipped, under another name."""
    found = next(each for each in cluster.render(KUBERNETES / "overlays" / "local") if each["kind"] == "Deployment")
    found["metadata"]["name"] = "trial"
    return found


def pod_of(deployment: Manifest) -> dict[str, Any]:
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_accepted(cluster: Cluster, overlay: str) -> None:
    manifests = cluster.render(KUBERNETES / "overlays" / overlay)
    applied = cluster.apply(*manifests, dry=True).splitlines()
    assert len(applied) == len(manifests)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_is_accepted_with_the_base(cluster: Cluster, component: str, tmp_path: Path) -> None:
    lists = {"resources": KUBERNETES / "base", "components": KUBERNETES / "components" / component}
    text = {name: [os.path.relpath(path, tmp_path.resolve())] for name, path in lists.items()}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(text))
    manifests = cluster.render(tmp_path)
    assert len(cluster.apply(*manifests, dry=True).splitlines()) == len(manifests)


def misspell(deployment: Manifest) -> None:
    pod_of(deployment)["terminationGracePeriodSecond"] = pod_of(deployment).pop("terminationGracePeriodSeconds")


def give_text(deployment: Manifest) -> None:
    pod_of(deployment)["containers"][0]["readinessProbe"]["periodSeconds"] = "5"


def ask_for_an_unknown_kind(deployment: Manifest) -> None:
    deployment |= {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObjects"}


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (misspell, "terminationGracePeriodSecond: field not declared in schema"),
        (give_text, "expected numeric (int or float), got string"),
        (ask_for_an_unknown_kind, 'no matches for kind "ScaledObjects"'),
    ],
    ids=["misspelt field", "wrong type", "unknown kind"],
)
def test_a_wrong_manifest_is_refused(
    cluster: Cluster, deployment: Manifest, spoil: Callable[[Manifest], None], problem: str
) -> None:
    spoil(deployment)
    with pytest.raises(KubectlFailed) as refusal:
        cluster.apply(deployment, dry=True)
    assert problem in str(refusal.value)


def test_a_pod_that_wants_more_than_restricted_is_not_made(cluster: Cluster, deployment: Manifest) -> None:
    """The API server takes the Deployment, so only a look at its pods tells."""
    del pod_of(deployment)["containers"][0]["securityContext"]["capabilities"]
    cluster.apply(deployment)
    try:
        condition = "jsonpath={.status.conditions[?(@.type=='ReplicaFailure')].status}=True"
        cluster.kubectl("wait", "deployment/trial", f"--for={condition}", "--timeout=60s")
        (failure,) = [
            each["message"]
            for each in cluster.read("deployment/trial")["status"]["conditions"]
            if each["type"] == "ReplicaFailure"
        ]
    finally:
        cluster.kubectl("delete", "deployment/trial")
    assert 'violates PodSecurity "restricted:latest": unrestricted capabilities' in failure
