"""The Helm chart is what the kustomizations say: the same objects for the same choices, and nothing by a typo."""

import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.helm import CHART, MODULES, Manifest, NoHelm, Refused, helm, helm_program, template, with_values

KUBERNETES = MODULES.parent / "kubernetes"
ROLES = ("workflow", "llm", "tools", "sandbox")
PRODUCTION: Manifest = yaml.safe_load((MODULES / "production.yaml").read_text())
NOT_OURS = re.compile(r"^(helm\.sh/|argocd\.|kustomize\.toolkit\.|app\.kubernetes\.io/managed-by$)")
"""Labels and annotations that only Helm needs, and those that only Argo CD and Flux need."""


@pytest.fixture(scope="module", autouse=True)
def with_helm() -> None:
    try:
        helm_program()
    except NoHelm as reason:
        pytest.skip(str(reason))


CHOICES: dict[str, tuple[Manifest, list[str]]] = {
    "defaults": ({}, []),
    "certificates": ({"temporal": {"tls": {"secret": "temporal-tls"}}}, ["mtls"]),
    "api key": ({"temporal": {"apiKey": {"secret": "temporal-api-key"}}}, ["api-key"]),
    "bucket": ({"artifacts": {"bucket": "s3://sennit-artifacts/runs"}}, ["s3"]),
    "keda": ({"autoscaling": "keda", "temporal": {"tls": {"secret": "temporal-tls"}}}, ["keda", "mtls"]),
    "hpa": ({"autoscaling": "hpa"}, ["hpa"]),
    "everything": (
        {
            "autoscaling": "keda",
            "temporal": {"tls": {"secret": "temporal-tls"}, "apiKey": {"secret": "temporal-api-key"}},
            "artifacts": {"bucket": "s3://sennit-artifacts/runs"},
        },
        ["keda", "mtls", "api-key", "s3"],
    ),
}
"""Values of the chart, and the components that make the same choices."""


@pytest.mark.parametrize("name", CHOICES)
def test_the_chart_makes_the_objects_of_kustomize(name: str, tmp_path: Path) -> None:
    values, components = CHOICES[name]
    kustomization: Manifest = {
        "resources": [os.path.relpath(KUBERNETES / "base", tmp_path.resolve())],
        "components": [os.path.relpath(KUBERNETES / "components" / each, tmp_path.resolve()) for each in components],
        "images": [{"name": "sennit", "newTag": "0.1.0"}],
    }
    if "autoscaling" not in values:
        kustomization["replicas"] = [{"name": f"sennit-{role}", "count": 1} for role in ROLES]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    same(template(values), kustomize(tmp_path))


def test_the_example_of_the_chart_is_that_of_kustomize() -> None:
    same(template(PRODUCTION), kustomize(KUBERNETES / "overlays" / "production"))


def kustomize(place: Path) -> list[Manifest]:
    done = subprocess.run(["kubectl", "kustomize", str(place)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def same(ours: list[Manifest], theirs: list[Manifest]) -> None:
    """Compare object by object."""
    expected = dict(plain(each) for each in theirs if each["kind"] != "Namespace")
    made = dict(plain(each) for each in ours)
    assert made.keys() == expected.keys()
    for key, found in expected.items():
        assert yaml.safe_dump(made[key]) == yaml.safe_dump(found), key  # as text the difference can be read


def plain(manifest: Manifest) -> tuple[tuple[str, str], Any]:
    """Return the kind and name of an object, and the object without what only one of the two tools adds."""
    found = copy.deepcopy(manifest)
    found["metadata"].pop("namespace", None)
    for kind in ("labels", "annotations"):
        entries = found["metadata"].pop(kind, {})
        found["metadata"][kind] = {key: value for key, value in entries.items() if not NOT_OURS.match(key)}
    if found["kind"] == "ConfigMap":
        found["metadata"]["name"] = without_hash(found["metadata"]["name"])
    return (found["kind"], found["metadata"]["name"]), ordered(found)


def without_hash(name: str) -> str:
    return re.sub(r"^sennit-[0-9a-z]{10}$", "sennit-HASH", name)


def ordered(value: Any) -> Any:
    """Return a value with lists of named things in the order of their names, which means nothing to Kubernetes."""
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    if isinstance(value, list):
        elements = [ordered(each) for each in value]
        return sorted(elements, key=yaml.safe_dump) if named(value) else elements
    return without_hash(value) if isinstance(value, str) else value


def named(elements: list[Any]) -> bool:
    return all(isinstance(each, dict) and ("name" in each or "secretRef" in each) for each in elements)


def test_the_chart_in_the_tree_is_what_its_generator_writes() -> None:
    done = subprocess.run([sys.executable, str(MODULES / "generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ALL_ELSE: Manifest = {
    "image": {"repository": "registry.example.com/sennit", "tag": "1", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "nodeSelector": {"pool": "agents"},
    "tolerations": [{"key": "agents", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"linkerd.io/inject": "enabled"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/sennit"}},
    "roles": {"tools": {"env": [{"name": "SENNIT_DOCS", "value": "/documents"}], "nodeSelector": {"pool": "tools"}}},
    "artifacts": {"bucket": "s3://b/runs", "secret": ""},
    "settings": {"SENNIT_MODEL": "openai:gpt-5", "SENNIT_LOG": "text"},
    "versioning": {"build": "2"},
}


@pytest.mark.parametrize("values", [{}, PRODUCTION, ALL_ELSE], ids=["defaults", "production", "all else"])
def test_the_chart_is_clean(values: Manifest) -> None:
    assert "0 chart(s) failed" in with_values(values, "lint", str(CHART), "--strict")


def test_every_pod_has_what_all_pods_shall_have() -> None:
    for pod in pods(template(ALL_ELSE)):
        spec = pod["spec"]
        (container,) = spec["containers"]
        assert container["image"] == "registry.example.com/sennit:1"
        assert container["imagePullPolicy"] == "Always"
        assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in container["env"]
        assert spec["imagePullSecrets"] == ALL_ELSE["imagePullSecrets"]
        assert spec["tolerations"] == ALL_ELSE["tolerations"]
        assert spec["affinity"] == ALL_ELSE["affinity"]
        assert pod["metadata"]["annotations"] == ALL_ELSE["podAnnotations"]
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        assert spec["nodeSelector"] == {"pool": "tools" if component == "tools" else "agents"}
        assert ({"name": "SENNIT_DOCS", "value": "/documents"} in container["env"]) == (component == "tools")


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    for each in manifests:
        if each["kind"] == "Deployment":
            yield each["spec"]["template"]
        if each["kind"] == "CronJob":
            yield each["spec"]["jobTemplate"]["spec"]["template"]


def test_a_bucket_that_service_accounts_may_use_needs_no_secret() -> None:
    manifests = template(ALL_ELSE)
    accounts = [each for each in manifests if each["kind"] == "ServiceAccount"]
    assert len(accounts) == len(ROLES) + len(("gc", "store"))
    for account in accounts:
        assert account["metadata"]["annotations"] == ALL_ELSE["serviceAccount"]["annotations"]
    assert "sennit-s3" not in str(manifests)


def test_settings_replace_the_defaults_and_roll_the_workers() -> None:
    def config(values: Manifest) -> Manifest:
        (found,) = [each for each in template(values) if each["kind"] == "ConfigMap"]
        return found

    assert config(ALL_ELSE)["data"].items() >= ALL_ELSE["settings"].items()
    assert config(ALL_ELSE)["metadata"]["name"] != config({})["metadata"]["name"]


def test_helm_leaves_what_runs_of_an_older_build_need() -> None:
    """The next release has other names for these, and Helm deletes what a release names no more."""
    kept = {
        (each["kind"], each["metadata"]["name"])
        for each in template(PRODUCTION)
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    settings = next(name for kind, name in kept if kind == "ConfigMap")
    assert kept == {
        ("Deployment", "sennit-workflow-0-1-0"),
        ("ScaledObject", "sennit-workflow-0-1-0"),
        ("ConfigMap", settings),
        ("PersistentVolumeClaim", "sennit-artifacts"),  # it outlives the release
    }


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"temporal": {"adress": "x:1"}}, "adress"),
        ({"roles": {"llm": {"replica": 3}}}, "replica"),
        ({"roles": {"planner": {}}}, "planner"),
        ({"autoscaling": "kda"}, "autoscaling"),
        ({"roles": {"llm": {"replicas": "3"}}}, "replicas"),
        ({"temporal": {"address": "temporal.example.com"}}, "address"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"versioning": {"build": "0.1.0"}}, "build"),
        ({"settings": {"SENNIT_DRAIN": 5}}, "SENNIT_DRAIN"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_typo_is_refused_by_name(values: Manifest, problem: str) -> None:
    with pytest.raises(Refused, match=problem):
        template(values)


def test_the_notes_say_what_to_do_next() -> None:
    try:
        notes = with_values(PRODUCTION, "install", "sennit", str(CHART), "--namespace", "agents", "--dry-run=client")
    except Refused as refused:
        if "cluster unreachable" not in str(refused):
            raise
        pytest.skip("Helm 3 shows the notes only beside a cluster")
    notes = notes.partition("NOTES:")[2]
    for command in (
        "kubectl -n agents create secret generic temporal-tls --from-file=tls.crt",
        "kubectl -n agents create secret generic sennit-models --from-literal=OPENAI_API_KEY=...",
        "kubectl -n agents create job store --from=cronjob/sennit-store",
        "sennit setup --address temporal.example.com:7233 --namespace agents --promote sennit:0-1-0",
    ):
        assert command in notes


def test_the_chart_can_be_packed(tmp_path: Path) -> None:
    """What is released is the chart alone, not its generator."""
    helm("package", str(CHART), "--destination", str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["sennit-0.1.0.tgz"]
