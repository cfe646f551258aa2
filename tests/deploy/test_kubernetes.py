"""The manifests say what the code says: roles, queues, ports, variables, drains. Nothing in them is secret or vague."""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.helm import MODULES, NoHelm, template
from temporalio.envconfig import ClientConfigProfile

from sennit.activities.limits import MAX_SANDBOX_SECONDS
from sennit.starter.commands.command_line import parse
from sennit.workers.roles import ROLES, Role
from sennit.workers.settings import read_settings
from sennit.workers.shutdown import AFTER_DRAIN
from sennit.workflows.messages import queues

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPONENTS = sorted(path.name for path in (KUBERNETES / "components").iterdir())
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
SERVED = [role for role in ROLES.values() if role.name != "all"]
QUEUE_TYPES = {"workflows": "workflow"}
SPARE = 5.0  # seconds between the end of a worker and the kill of its pod
NO_MORE_PODS = "1000000"
"""The target of a trigger that keeps a pod and asks for no second one."""
KEPT = {"argocd.argoproj.io/sync-options": "Prune=false", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
SECRET = re.compile(r"KEY$|TOKEN|SECRET|PASSWORD|CREDENTIAL")
Manifest = dict[str, Any]

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@functools.cache
def rendered(place: Path) -> list[Manifest]:
    done = subprocess.run(["kubectl", "kustomize", str(place)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@functools.cache
def with_component(name: str) -> list[Manifest]:
    """The base with a component."""
    lists = {"resources": KUBERNETES / "base", "components": KUBERNETES / "components" / name}
    with tempfile.TemporaryDirectory() as folder:
        text = {kind: [os.path.relpath(path, Path(folder).resolve())] for kind, path in lists.items()}
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(text))
        return rendered(Path(folder))


IMAGE = {"repository": "registry.example.com/agents/sennit", "digest": f"sha256:{'0' * 64}"}
CHARTS: dict[str, Manifest] = {
    "production": yaml.safe_load((MODULES / "production.yaml").read_text()),
    "volume": {"image": IMAGE},
    "bucket": {"image": IMAGE, "artifacts": {"bucket": "s3://sennit-artifacts/runs"}, "autoscaling": "hpa"},
}
"""Values of the Helm chart."""


@functools.cache
def of_chart(name: str) -> list[Manifest]:
    return template(CHARTS[name])


PLACES = (
    *(f"overlays/{name}" for name in OVERLAYS),
    *(f"components/{name}" for name in COMPONENTS),
    *(f"chart/{name}" for name in CHARTS),
)


@pytest.fixture(params=PLACES)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    """Each overlay, the base with each component, and the Helm chart."""
    kind, _, name = request.param.partition("/")
    if kind == "overlays":
        return rendered(KUBERNETES / request.param)
    if kind == "components":
        return with_component(name)
    try:
        return of_chart(name)
    except NoHelm as reason:
        pytest.skip(str(reason))


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def role_deployment(role: str) -> Manifest:
    """A role of the base, put together without kubectl from the few forms of patches that it uses."""
    deployment: Manifest = yaml.safe_load((KUBERNETES / "base/worker/deployment.yaml").read_text())
    for operation in operations(KUBERNETES / "base" / role):
        *path, last = operation["path"].strip("/").split("/")
        at: Any = deployment
        for part in path:
            at = at[int(part) if isinstance(at, list) else part]
        if last == "-":
            at.append(operation["value"])
        else:
            at[int(last) if isinstance(at, list) else last] = operation["value"]
    return deployment


def operations(folder: Path) -> Iterator[dict[str, Any]]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for component in kustomization.get("components", ()):
        yield from operations(folder / component)
    for patch in kustomization["patches"]:
        yield from yaml.safe_load(patch["patch"])


def pod_of(workload: Manifest) -> Manifest:
    spec = workload["spec"]
    return dict((spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]["spec"])


def worker_of(workload: Manifest) -> Manifest:
    (container,) = pod_of(workload)["containers"]
    return dict(container)


def workloads(manifests: list[Manifest]) -> list[Manifest]:
    kinds = {"Deployment", "CronJob"}
    found = [each for each in manifests if each["kind"] in kinds]
    assert {each["kind"] for each in found} == kinds
    return found


def artifacts_of(workload: Manifest) -> list[Manifest]:
    places = [*pod_of(workload)["volumes"], *worker_of(workload)["volumeMounts"]]
    return [each for each in places if each["name"] == "artifacts"]


def role_of(deployment: Manifest) -> str:
    return str(deployment["metadata"]["labels"]["app.kubernetes.io/component"])


def literals(container: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}


def shared_settings() -> dict[str, str]:
    (generator,) = yaml.safe_load((KUBERNETES / "base/kustomization.yaml").read_text())["configMapGenerator"]
    return dict(each.split("=", 1) for each in generator["literals"])


def test_every_role_of_the_code_is_deployed() -> None:
    listed = yaml.safe_load((KUBERNETES / "base/kustomization.yaml").read_text())["resources"]
    assert [each for each in listed if not each.endswith(".yaml")] == [role.name for role in SERVED]


@pytest.mark.parametrize("role", SERVED, ids=lambda role: role.name)
def test_a_pod_agrees_with_its_worker(role: Role) -> None:
    deployment = role_deployment(role.name)
    pod, worker = deployment["spec"]["template"]["spec"], worker_of(deployment)
    settings = read_settings(shared_settings() | literals(worker))
    assert worker["args"] == [role.name]
    assert pod["terminationGracePeriodSeconds"] >= settings.drain + AFTER_DRAIN + SPARE
    if role.name == "sandbox":
        assert settings.drain >= MAX_SANDBOX_SECONDS
    assert settings.health is not None
    assert [port["containerPort"] for port in worker["ports"]] == [settings.health.port]
    probed = {name: worker[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: get["path"] for name, get in probed.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",  # never what depends on Temporal or on work
        "readinessProbe": "/readyz",
    }
    assert {get["port"] for get in probed.values()} == {worker["ports"][0]["name"]}


@needs_kubectl
def test_every_variable_is_one_that_a_worker_reads(manifests: list[Manifest]) -> None:
    given = {name: value for each in of_kind(manifests, "ConfigMap").values() for name, value in each["data"].items()}
    for each in workloads(manifests):
        given |= {variable["name"]: variable.get("value", "x") for variable in worker_of(each).get("env", ())}
    assert given.keys() <= read_by_a_worker(given)


def read_by_a_worker(given: Mapping[str, str]) -> set[str]:
    """The variables that settings ask for, and those of `given` that Temporal's client or the S3 library takes."""

    class Asked(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            names.add(name)
            return default

    names: set[str] = set()
    read_settings(Asked())

    def profile(env: Mapping[str, str]) -> Any:
        return ClientConfigProfile.load(override_env_vars=env, disable_file=True)

    nothing = profile({})
    names |= {name for name in given if name.startswith("TEMPORAL_") and profile({name: given[name]}) != nothing}
    return names | {"AWS_REGION"} | {name for name in given if name.startswith("AWS_ENDPOINT_URL")}


@needs_kubectl
def test_nothing_secret_is_written_down_and_every_image_is_pinned(manifests: list[Manifest]) -> None:
    assert of_kind(manifests, "Secret") == {}
    for each in of_kind(manifests, "ConfigMap").values():
        assert [name for name in each["data"] if SECRET.search(name)] == []
    for workload in workloads(manifests):
        worker = worker_of(workload)
        assert [name for name in literals(worker) if SECRET.search(name)] == []
        assert worker["image"] == "sennit" or re.search(r":dev$|@sha256:[0-9a-f]{64}$", worker["image"])


@needs_kubectl
def test_pods_have_no_token_no_limit_of_cpu_and_a_bound_on_every_volume(manifests: list[Manifest]) -> None:
    for workload in workloads(manifests):
        pod, worker = pod_of(workload), worker_of(workload)
        account = of_kind(manifests, "ServiceAccount")[pod["serviceAccountName"]]
        assert (pod["automountServiceAccountToken"], account["automountServiceAccountToken"]) == (False, False)
        assert worker["securityContext"]["readOnlyRootFilesystem"] is True
        assert list(worker["resources"]["limits"]) == ["memory"]
        assert all(each["emptyDir"].get("sizeLimit") for each in pod["volumes"] if "emptyDir" in each)
    for deployment in of_kind(manifests, "Deployment").values():
        budget = of_kind(manifests, "PodDisruptionBudget")[f"sennit-{role_of(deployment)}"]
        assert selects(budget["spec"]["selector"], deployment["spec"]["template"]["metadata"]["labels"])


@needs_kubectl
def test_an_autoscaler_owns_its_replicas_and_watches_the_queues_of_its_role(manifests: list[Manifest]) -> None:
    deployments, scaled = of_kind(manifests, "Deployment"), of_kind(manifests, "ScaledObject")
    by_cpu = of_kind(manifests, "HorizontalPodAutoscaler")
    assert not (scaled and by_cpu)
    for name, autoscaler in (scaled | by_cpu).items():
        assert autoscaler["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in deployments[name]["spec"]
    for name, autoscaler in scaled.items():
        triggers = [each["metadata"] for each in autoscaler["spec"]["triggers"]]
        triggers = [each for each in triggers if each["targetQueueSize"] != NO_MORE_PODS]
        bindings = ROLES[role_of(deployments[name])].bindings
        assert [(each["taskQueue"], each["queueTypes"]) for each in triggers] == [
            (each.queue, QUEUE_TYPES.get(each.kind, "activity")) for each in bindings
        ]
    if scaled or by_cpu:
        assert (scaled | by_cpu).keys() == deployments.keys()


@needs_kubectl
@pytest.mark.parametrize(("component", "kind"), [("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler")])
def test_each_build_of_the_workflow_role_has_pods_and_a_scale_of_its_own(
    tmp_path: Path, component: str, kind: str
) -> None:
    """Runs are pinned to theirs, so an apply of the next build must leave this one alone."""
    overlay = (KUBERNETES / "overlays/production/kustomization.yaml").read_text().replace("keda", component)
    (tmp_path / "kustomization.yaml").write_text(
        overlay.replace("../../", f"{os.path.relpath(KUBERNETES, tmp_path.resolve())}/")
    )
    manifests = rendered(tmp_path)
    (settings,) = (each["data"] for each in of_kind(manifests, "ConfigMap").values())
    assert read_settings(settings).deployment == "sennit"
    build = settings["TEMPORAL_WORKER_BUILD_ID"]
    name = f"sennit-workflow-{build}"
    labels = of_kind(manifests, "Deployment")[name]["spec"]["selector"]["matchLabels"]
    assert labels["app.kubernetes.io/version"] == build
    scale = of_kind(manifests, kind)[name]["spec"]
    assert scale["scaleTargetRef"]["name"] == name
    for trigger in scale.get("triggers", ()):
        read = {key.removesuffix("FromEnv"): variable for key, variable in trigger["metadata"].items()}
        assert read["workerDeploymentName"] == "TEMPORAL_DEPLOYMENT_NAME"
        assert read["workerDeploymentBuildId"] == "TEMPORAL_WORKER_BUILD_ID"


@needs_kubectl
def test_the_sandbox_role_keeps_a_pod_while_a_run_of_the_workers_version_is_open() -> None:
    """KEDA counts runs only of the version that a trigger names, or of none: without it no run of a version counts."""
    for found in (rendered(KUBERNETES / "overlays/production"), with_component("keda")):
        spec = of_kind(found, "ScaledObject")["sennit-sandbox"]["spec"]
        assert spec["minReplicaCount"] == 0
        (counting,) = [
            each["metadata"] for each in spec["triggers"] if "includeRunningWorkflowCount" in each["metadata"]
        ]
        assert (counting["taskQueue"], counting["queueTypes"]) == (queues.WORKFLOW, "workflow")
        assert counting["workerDeploymentNameFromEnv"] == "TEMPORAL_DEPLOYMENT_NAME"
        assert counting["workerDeploymentBuildIdFromEnv"] == "TEMPORAL_WORKER_BUILD_ID"
        assert counting["targetQueueSize"] == NO_MORE_PODS


@needs_kubectl
def test_an_old_build_that_may_go_to_zero_keeps_a_worker_while_runs_are_pinned_to_it() -> None:
    (name,) = [each for each in of_kind(production(), "ScaledObject") if each.startswith("sennit-workflow-")]
    (trigger,) = of_kind(production(), "ScaledObject")[name]["spec"]["triggers"]
    assert trigger["metadata"]["includeRunningWorkflowCount"] == "true"
    assert trigger["metadata"]["workerDeploymentBuildIdFromEnv"] == "TEMPORAL_WORKER_BUILD_ID"


@needs_kubectl
def test_a_pruning_deployer_leaves_the_objects_of_each_build_alone() -> None:
    """The next build has other names for these: the overlay names them no more while runs are still pinned to them."""
    build = read_build(production())
    own = [each for each in production() if each["metadata"]["name"].endswith(f"-{build}")]
    own += of_kind(production(), "ConfigMap").values()  # its name has a hash
    assert [each["kind"] for each in own] == ["Deployment", "ScaledObject", "ConfigMap"]
    for each in own:
        assert each["metadata"]["annotations"].items() >= KEPT.items(), each["metadata"]["name"]


@needs_kubectl
def test_workers_may_ask_the_dns_of_every_usual_cluster(manifests: list[Manifest]) -> None:
    """CoreDNS in kube-system, the one of OpenShift, and the cache on the node, which is in no namespace."""
    egress = of_kind(manifests, "NetworkPolicy")["sennit-temporal"]["spec"]["egress"]
    (dns,) = [each for each in egress if {"port": 53, "protocol": "UDP"} in each["ports"]]
    assert {"port": 53, "protocol": "TCP"} in dns["ports"]
    assert {"port": 5353, "protocol": "UDP"} in dns["ports"]
    spaces = [each["namespaceSelector"] for each in dns["to"] if "namespaceSelector" in each]
    for name in ("kube-system", "openshift-dns"):
        assert any(selects(each, {"kubernetes.io/metadata.name": name}) for each in spaces)
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in dns["to"]


@needs_kubectl
@pytest.mark.parametrize("order", [("keda", "mtls"), ("mtls", "keda")], ids=lambda each: " before ".join(each))
def test_keda_has_certificates_in_whichever_order_components_stand(tmp_path: Path, order: tuple[str, str]) -> None:
    lists = {"resources": [KUBERNETES / "base"], "components": [KUBERNETES / "components" / each for each in order]}
    text = {kind: [os.path.relpath(path, tmp_path.resolve()) for path in paths] for kind, paths in lists.items()}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(text))
    (keda,) = of_kind(rendered(tmp_path), "TriggerAuthentication").values()
    secrets = {each["parameter"]: (each["name"], each["key"]) for each in keda["spec"]["secretTargetRef"]}
    assert secrets == {name: ("temporal-tls", file) for name, file in CERTIFICATES.items()}


CERTIFICATES = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}


@needs_kubectl
def test_keda_and_the_workers_expect_the_same_name_in_the_certificate() -> None:
    (settings,) = (each["data"] for each in of_kind(production(), "ConfigMap").values())
    for scaled in of_kind(production(), "ScaledObject").values():
        for trigger in scaled["spec"]["triggers"]:
            assert trigger["metadata"]["tlsServerName"] == settings["TEMPORAL_TLS_SERVER_NAME"]


@needs_kubectl
def test_a_budget_that_lets_one_pod_go_leaves_another(manifests: list[Manifest]) -> None:
    """But for the sandbox role, which may be at zero: its calls wait for the next pod."""
    scaled = of_kind(manifests, "ScaledObject") | of_kind(manifests, "HorizontalPodAutoscaler")
    for name, autoscaler in scaled.items():
        least = autoscaler["spec"].get("minReplicaCount", autoscaler["spec"].get("minReplicas"))
        budget = of_kind(manifests, "PodDisruptionBudget")[re.sub(r"(workflow)-.*", r"\1", name)]
        assert name == "sennit-sandbox" or least > budget["spec"]["maxUnavailable"]


@needs_kubectl
def test_no_garbage_collection_holds_up_the_next(manifests: list[Manifest]) -> None:
    job = of_kind(manifests, "CronJob")["sennit-gc"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid"
    assert job["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 86_400


@needs_kubectl
def test_every_pod_asks_for_the_disk_that_it_uses(manifests: list[Manifest]) -> None:
    """Else the node may be full of pods that asked for nothing, and evicts them."""
    for workload in workloads(manifests):
        assert {"cpu", "memory", "ephemeral-storage"} == worker_of(workload)["resources"]["requests"].keys()


def production() -> list[Manifest]:
    return rendered(KUBERNETES / "overlays/production")


def read_build(manifests: list[Manifest]) -> str:
    (settings,) = (each["data"] for each in of_kind(manifests, "ConfigMap").values())
    return str(settings["TEMPORAL_WORKER_BUILD_ID"])


@needs_kubectl
def test_garbage_is_collected_daily_from_the_store_of_the_workers(manifests: list[Manifest]) -> None:
    job = of_kind(manifests, "CronJob")["sennit-gc"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", job["spec"]["schedule"])
    given = worker_of(job)["command"]
    asked = parse(given[given.index("sennit") + 1 :])
    assert (asked.command, asked.older_than, asked.dry_run) == ("gc", 30 * 86_400, False)
    tools = of_kind(manifests, "Deployment")["sennit-tools"]
    assert artifacts_of(job) == artifacts_of(tools)
    assert {str(each) for each in worker_of(job)["envFrom"]} <= {str(each) for each in worker_of(tools)["envFrom"]}
    assert pod_of(job)["securityContext"] == pod_of(tools)["securityContext"]
    assert worker_of(job)["securityContext"] == worker_of(tools)["securityContext"]


@needs_kubectl
def test_the_store_of_the_workers_is_created_on_demand_and_by_no_worker(manifests: list[Manifest]) -> None:
    job = of_kind(manifests, "CronJob")["sennit-store"]
    assert job["spec"]["suspend"] is True, "no apply creates a store: the volume may be the wrong one"
    given = worker_of(job)["command"]
    assert parse(given[given.index("sennit") + 1 :]).store
    tools = of_kind(manifests, "Deployment")["sennit-tools"]
    assert artifacts_of(job) == artifacts_of(tools)
    garbage = of_kind(manifests, "CronJob")["sennit-gc"]
    variables = {"env", "volumeMounts"}  # certificates of Temporal, which it does not ask
    ours, theirs = (
        {key: value for key, value in worker_of(each).items() if key not in {"command", *variables}}
        for each in (job, garbage)
    )
    assert ours == theirs
    assert pod_of(job)["securityContext"] == pod_of(tools)["securityContext"]
    assert job["spec"]["jobTemplate"]["spec"]["ttlSecondsAfterFinished"] > 0, "it can be run again under its name"
    assert all("initContainers" not in pod_of(each) for each in workloads(manifests))


@needs_kubectl
def test_every_manifest_can_be_applied_again_with_another_image(manifests: list[Manifest]) -> None:
    """Pods and Jobs keep the image that they were made with: an apply that changes it is refused."""
    assert not {each["kind"] for each in manifests} & {"Job", "Pod"}


@needs_kubectl
def test_a_bucket_is_reached_by_all_who_use_it() -> None:
    found = with_component("s3")
    internet = of_kind(found, "NetworkPolicy")["sennit-internet"]["spec"]["podSelector"]
    for each in workloads(found):
        labels = each["spec"].get("jobTemplate", each)["spec"]["template"]["metadata"]["labels"]
        if labels["app.kubernetes.io/component"] != "workflow":
            assert selects(internet, labels)


@needs_kubectl
def test_the_sandbox_role_may_reach_temporal_and_nothing_else(manifests: list[Manifest]) -> None:
    """And its bucket, where the component s3 keeps artifacts in one."""
    pod = of_kind(manifests, "Deployment")["sennit-sandbox"]["spec"]["template"]["metadata"]["labels"]
    allowed = {
        name
        for name, policy in of_kind(manifests, "NetworkPolicy").items()
        if selects(policy["spec"]["podSelector"], pod) and policy["spec"].get("egress")
    }
    assert allowed - {"sennit-internet"} == {"sennit-temporal"}
    configured = [each["data"] for each in of_kind(manifests, "ConfigMap").values()]
    assert ("sennit-internet" in allowed) == any("SENNIT_ARTIFACTS" in each for each in configured)


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def test_compose_creates_the_store_before_a_worker_starts() -> None:
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    setup = services["setup"]
    (first, then) = setup["entrypoint"][2].split(" && ")
    assert [parse(each.removeprefix("sennit ").split()).store for each in (first, then)] == [True, False]
    for role in SERVED:
        assert services[role.name]["depends_on"]["setup"] == {"condition": "service_completed_successfully"}
        assert services[role.name]["volumes"] == setup["volumes"]


def test_compose_knows_of_every_service_that_stays_whether_it_is_healthy() -> None:
    """And nothing starts by a guess: it waits until others are healthy, or have done their work."""
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    for name, service in services.items():
        if name not in ("schema", "setup"):
            assert service["healthcheck"]["test"][0] == "CMD", name
        for needed in service.get("depends_on", {}).values():
            assert needed["condition"] in ("service_healthy", "service_completed_successfully"), name


WITHOUT_DIGEST = "docker.io/temporalio/ui:2.52.0"
"""Nobody who had the image has noted its digest here yet."""


def test_compose_runs_every_role_with_time_to_drain() -> None:
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    assert {role.name for role in SERVED} <= services.keys()
    for role in SERVED:
        service = services[role.name]
        assert service["command"] == [role.name]
        settings = {name: value for name, value in service["environment"].items() if not value.startswith("$")}
        assert float(service["stop_grace_period"].removesuffix("s")) >= read_settings(settings).drain + AFTER_DRAIN
        assert service["environment"].keys() <= read_by_a_worker(service["environment"])
    pinned = [service["image"] for service in services.values() if "build" not in service]
    assert all(re.search(r":\d+\.\d+", image) for image in pinned), pinned
    assert [image for image in pinned if not re.search(r"@sha256:[0-9a-f]{64}$", image)] == [WITHOUT_DIGEST]


def test_a_chart_and_compose_give_temporal_the_same_configuration() -> None:
    chart = yaml.safe_load((ROOT / "deploy/temporal/values.yaml").read_text())
    assert chart["server"]["dynamicConfig"] == yaml.safe_load(
        (ROOT / "deploy/temporal/dynamic-config.yaml").read_text()
    )


def test_the_image_has_the_packages_that_were_tested() -> None:
    pin = re.compile(r"^(\S+==\S+)", re.MULTILINE)
    image, tested = (
        set(pin.findall((ROOT / path).read_text())) for path in ("deploy/image/requirements.lock", "requirements.lock")
    )
    assert image <= tested
    base = re.search(r"^ARG BASE=(\S+)", (ROOT / "deploy/image/Containerfile").read_text(), re.MULTILINE)
    assert base is not None
    assert re.search(r":\d+\.\d+\.\d+-", base[1])
