"""Writes the Helm chart from the kustomizations of deploy/kubernetes, which are the only
description of the objects.

The base gives the objects, and each component that can be switched on gives the difference that
it makes, which becomes a condition of a template. What remains here is where a value of the
chart goes. Values and their defaults come from values.template.yaml and the base; the schema
comes from the values. `generate.py --check` writes nothing, and fails if the chart in the tree
is not what it would write.

The chart is committed: `helm install` works from a checkout, and a change of the base shows in
review what it changes for those who use Helm.
"""

import argparse
import json
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CHART = HERE / "sennit"
KUBERNETES = HERE.parent / "kubernetes"
HEAD = "# Written by `make chart` from deploy/kubernetes: change that, not this.\n"

ROLES = ("workflow", "llm", "tools", "sandbox")
JOBS = ("gc", "store")
SWITCHES = {
    "mtls": ".Values.temporal.tls.secret",
    "api-key": ".Values.temporal.apiKey.secret",
    "s3": ".Values.artifacts.bucket",
}
"""The value that switches on what a component changes in the objects of the base."""
AUTOSCALERS = {
    "keda": ("ScaledObject", "TriggerAuthentication"),
    "hpa": ("HorizontalPodAutoscaler",),
}
"""The kinds of objects that a component adds and that only one value of `autoscaling` wants."""
FIRST = ("apiVersion", "kind", "name", "metadata")
"""Keys that stand before the others, which are sorted."""
RESOURCE_POLICY = "helm.sh/resource-policy"

Object = dict[str, Any]


class Raw(str):
    """A scalar that is written as it is: an expression of the template language."""

    __slots__ = ()


@dataclass
class When:
    """A value that is there only under a condition."""

    condition: str
    value: Any


@dataclass
class Block:
    """A value that is written as YAML from an expression, and left out if that is
    empty and not `needed`.
    """

    expression: str
    needed: bool = False


@dataclass
class Elements:
    """Further elements of a list, from an expression."""

    expression: str


# What kustomize renders


def render(component: str | None = None) -> dict[tuple[str, str], Object]:
    """Return the objects of the base, with a component if one is named, by kind and name."""
    text: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        text["resources"] = [relpath(KUBERNETES / "base", place)]
        if component is not None:
            text["components"] = [relpath(KUBERNETES / "components" / component, place)]
        (place / "kustomization.yaml").write_text(yaml.safe_dump(text))
        done = subprocess.run(
            ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"generate.py: kubectl kustomize has failed: {done.stderr.strip()}")
    objects = {}
    for found in yaml.safe_load_all(done.stdout):
        found["metadata"].pop("namespace", None)
        for container in containers(found):
            container.setdefault("env", [])
            for source in container["envFrom"]:
                if "configMapRef" in source:  # its name has a hash of the settings
                    source["configMapRef"]["name"] = Raw('{{ include "sennit.config" . }}')
        name = found["metadata"]["name"]
        if found["kind"] == "ConfigMap":
            name = "sennit"
            found["metadata"]["name"] = Raw('{{ include "sennit.config" . }}')
        objects[found["kind"], name] = found
    return objects


def pod_of(found: Object) -> Object:
    """Return the pod template of a Deployment or a CronJob."""
    spec = found["spec"]
    if "jobTemplate" in spec:
        spec = spec["jobTemplate"]["spec"]
    template: Object = spec["template"]
    return template


def containers(found: Object) -> list[Object]:
    if found["kind"] not in ("Deployment", "CronJob"):
        return []
    listed: list[Object] = pod_of(found)["spec"]["containers"]
    return listed


# What a component changes becomes a condition


def note_changes(tree: Object, base: Object, other: Object, switch: str) -> None:
    """Write into a tree, which began as a copy of `base`, what is different in
    `other` while a switch is on.
    """
    for key in base.keys() - other.keys():
        tree[key] = When(f"not {switch}", tree[key])
    for key in sorted(other.keys() - base.keys()):
        tree[key] = When(switch, other[key])
    for key in base.keys() & other.keys():
        if isinstance(base[key], dict):
            note_changes(tree[key], base[key], other[key], switch)
        elif isinstance(base[key], list):
            note_elements(tree[key], base[key], other[key], switch)
        elif base[key] != other[key]:
            raise SystemExit(
                f"generate.py: a component gives {key} another value; say here what becomes of it"
            )


def note_elements(tree: list[Any], base: list[Any], other: list[Any], switch: str) -> None:
    before = {identity(each): each for each in base}
    after = {identity(each): each for each in other}
    for number, element in enumerate(tree):
        name = identity(element)
        if name not in before:
            continue  # another component has added it
        if name not in after:
            tree[number] = When(f"not {switch}", element)
        elif isinstance(element, dict):
            note_changes(element, before[name], after[name], switch)
    tree += [When(switch, after[name]) for name in after if name not in before]


def identity(element: Any) -> str:
    """Return what tells an element of a list from the others."""
    if isinstance(element, dict):
        for key in ("name", "key"):
            if key in element:
                return str(element[key])
    return str(element)


# Where values go


def place_values(objects: dict[tuple[str, str], Object]) -> None:
    for (kind, name), found in objects.items():
        labels = found["metadata"].setdefault("labels", {})
        labels["#"] = Raw('{{- include "sennit.labels" . | nindent 4 }}')
        owner = name.removeprefix("sennit-")
        for container in containers(found):
            place_in_pod(found, container, owner)
        if kind == "ServiceAccount":
            found["metadata"]["annotations"] = Block(".Values.serviceAccount.annotations")
    for role in ROLES:
        place_in_role(objects, role)
    gc = objects["CronJob", "sennit-gc"]
    gc["spec"]["schedule"] = Raw("{{ .Values.gc.schedule | quote }}")
    place_in_artifacts(objects["PersistentVolumeClaim", "sennit-artifacts"])
    place_in_config(objects["ConfigMap", "sennit"])
    temporal = objects["NetworkPolicy", "sennit-temporal"]["spec"]["egress"][0]
    temporal["to"] = Block(".Values.networkPolicy.temporal", needed=True)
    temporal["ports"] = [
        {"port": Raw('{{ .Values.temporal.address | splitList ":" | last | int }}')}
    ]
    place_in_authentication(objects["TriggerAuthentication", "sennit-temporal"])


def place_in_pod(found: Object, container: Object, owner: str) -> None:
    """Place what the pods of all roles and jobs have in common."""
    own = f".Values.roles.{owner}" if owner in ROLES else f".Values.{owner}"
    pod = pod_of(found)["spec"]
    container["image"] = Raw('{{ include "sennit.image" . }}')
    container["imagePullPolicy"] = Block(".Values.image.pullPolicy")
    container["resources"] = Block(f"{own}.resources", needed=True)
    container["env"].append(Elements(".Values.env"))
    pod["imagePullSecrets"] = Block(".Values.imagePullSecrets")
    for key in ("nodeSelector", "tolerations", "affinity"):
        own_or_all = f".Values.{key}"
        if owner in ROLES:
            own_or_all = f"{own}.{key} | default .Values.{key}"
        pod[key] = Block(own_or_all)
    pod_of(found)["metadata"]["annotations"] = Block(".Values.podAnnotations")
    for volume in pod["volumes"]:
        if identity(unconditional(volume)) == "artifacts":
            claim = unconditional(volume)["persistentVolumeClaim"]
            claim["claimName"] = Raw(
                '{{ .Values.artifacts.volume.existingClaim | default "sennit-artifacts" }}'
            )
        if identity(unconditional(volume)) == "temporal-tls":
            volume.value["secret"]["secretName"] = Raw("{{ .Values.temporal.tls.secret }}")
    for variable in container["env"]:
        if identity(unconditional(variable)) == "TEMPORAL_API_KEY":
            key = variable.value["valueFrom"]["secretKeyRef"]
            key["name"] = Raw("{{ .Values.temporal.apiKey.secret }}")
            key["key"] = Raw("{{ .Values.temporal.apiKey.key }}")
    for source in container["envFrom"]:
        place_in_source(source)


def place_in_source(source: Any) -> None:
    """Place the name of a Secret from which variables come."""
    if isinstance(source, When):  # the component s3 adds it
        source.condition = "and .Values.artifacts.bucket .Values.artifacts.secret"
        source.value["secretRef"]["name"] = Raw("{{ .Values.artifacts.secret }}")
        return
    secret = source.get("secretRef")
    if secret is None:
        return
    owner = secret["name"].removeprefix("sennit-")
    secret["name"] = Raw(f"{{{{ .Values.{owner}.secret }}}}")
    if owner == "models":
        secret["optional"] = When("not .Values.models.required", True)


def place_in_role(objects: dict[tuple[str, str], Object], role: str) -> None:
    own = f".Values.roles.{role}"
    deployment = objects["Deployment", f"sennit-{role}"]
    (container,) = containers(deployment)
    deployment["spec"]["replicas"] = When(
        'eq .Values.autoscaling "none"', Raw(f"{{{{ {own}.replicas }}}}")
    )
    container["env"].append(Elements(f"{own}.env"))
    container["volumeMounts"].append(Elements(f"{own}.volumeMounts"))
    pod_of(deployment)["spec"]["volumes"].append(Elements(f"{own}.volumes"))
    scaled = objects["ScaledObject", f"sennit-{role}"]
    scaled["spec"]["minReplicaCount"] = Raw(f"{{{{ {own}.minReplicas }}}}")
    scaled["spec"]["maxReplicaCount"] = Raw(f"{{{{ {own}.maxReplicas }}}}")
    for trigger in scaled["spec"]["triggers"]:
        trigger["metadata"]["tlsServerName"] = Block(".Values.temporal.tls.serverName")
    autoscaler = objects["HorizontalPodAutoscaler", f"sennit-{role}"]
    autoscaler["spec"]["minReplicas"] = Raw(f"{{{{ max 1 {own}.minReplicas }}}}")
    autoscaler["spec"]["maxReplicas"] = Raw(f"{{{{ {own}.maxReplicas }}}}")
    if role == "workflow":
        name = Raw('sennit-workflow{{ include "sennit.build" . }}')
        version = When(".Values.versioning.build", Raw("{{ .Values.versioning.build | quote }}"))
        deployment["spec"]["selector"]["matchLabels"]["app.kubernetes.io/version"] = version
        pod_of(deployment)["metadata"]["labels"]["app.kubernetes.io/version"] = version
        for found in (scaled, autoscaler):
            found["spec"]["scaleTargetRef"]["name"] = name
        for found in (deployment, scaled, autoscaler):
            found["metadata"]["name"] = name
            keep(found, ".Values.versioning.build")


def keep(found: Object, condition: str) -> None:
    """Have Helm leave an object when a release names it no more: runs may still need it."""
    found["metadata"]["annotations"] = When(condition, {RESOURCE_POLICY: "keep"})


def place_in_artifacts(claim: Object) -> None:
    claim["metadata"]["annotations"] = {RESOURCE_POLICY: "keep"}
    claim["spec"]["resources"]["requests"]["storage"] = Raw("{{ .Values.artifacts.volume.size }}")
    claim["spec"]["storageClassName"] = Block(".Values.artifacts.volume.storageClass")


def place_in_config(config: Object) -> None:
    """Place the settings. They are a template of their own, because the name of the
    ConfigMap has a hash of them.
    """
    keep(config, ".Values.versioning.build")
    data = config["data"]
    data["TEMPORAL_ADDRESS"] = Raw("{{ .Values.temporal.address | quote }}")
    data["TEMPORAL_NAMESPACE"] = Raw("{{ .Values.temporal.namespace | quote }}")
    data["TEMPORAL_TLS_SERVER_NAME"] = Block(".Values.temporal.tls.serverName")
    build = ".Values.versioning.build"
    data["TEMPORAL_DEPLOYMENT_NAME"] = When(
        build, Raw("{{ .Values.versioning.deployment | quote }}")
    )
    data["TEMPORAL_WORKER_BUILD_ID"] = When(build, Raw("{{ .Values.versioning.build | quote }}"))
    data["SENNIT_ARTIFACTS"].value = Raw("{{ .Values.artifacts.bucket | quote }}")
    data["AWS_REGION"].value = Raw("{{ .Values.artifacts.region | quote }}")


def place_in_authentication(found: Object) -> None:
    """KEDA needs the certificates that the workers have."""
    for target in found["spec"]["secretTargetRef"]:
        target["name"] = Raw("{{ .Values.temporal.tls.secret }}")
    found["spec"]["secretTargetRef"] = When(
        ".Values.temporal.tls.secret", found["spec"]["secretTargetRef"]
    )


# The text of a template


def mapping(node: Object, indent: int) -> Iterator[str]:
    pad = " " * indent
    keys = sorted(node, key=lambda each: (FIRST.index(each) if each in FIRST else len(FIRST), each))
    for condition, together in groupby(keys, lambda each: condition_on(node[each])):
        if condition is not None:
            yield f"{pad}{{{{- if {condition} }}}}"
        for key in together:
            if key == "#":  # entries that an expression writes
                yield pad + node[key]
            else:
                yield from entry(key, unconditional(node[key]), indent)
        if condition is not None:
            yield f"{pad}{{{{- end }}}}"


def condition_on(value: Any) -> str | None:
    return value.condition if isinstance(value, When) else None


def unconditional(value: Any) -> Any:
    return value.value if isinstance(value, When) else value


def entry(key: str, value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, Block):
        yield from block(key, value, indent)
    elif isinstance(value, dict):
        yield f"{pad}{key}:" if value else f"{pad}{key}: {{}}"
        yield from mapping(value, indent + 2)
    elif isinstance(value, list):
        condition = condition_of(value)
        if condition is not None:
            yield f"{pad}{{{{- if {condition} }}}}"
        yield f"{pad}{key}:"
        yield from sequence(value, indent)
        if condition is not None:
            yield f"{pad}{{{{- end }}}}"
    else:
        yield f"{pad}{key}: {scalar(value)}"


def block(key: str, value: Block, indent: int) -> Iterator[str]:
    pad = " " * indent
    written = f"{{{{- toYaml . | nindent {indent + 2} }}}}"
    if value.needed:
        yield f"{pad}{key}:"
        yield f"{pad}  {written.replace('toYaml .', f'toYaml {value.expression}')}"
        return
    yield f"{pad}{{{{- with {value.expression} }}}}"
    if key in ("imagePullPolicy", "storageClassName", "tlsServerName", "TEMPORAL_TLS_SERVER_NAME"):
        yield f"{pad}{key}: {{{{ . | quote }}}}"
    else:
        yield f"{pad}{key}:"
        yield f"{pad}  {written}"
    yield f"{pad}{{{{- end }}}}"


def condition_of(elements: list[Any]) -> str | None:
    """Return when a list has any element; None if it always has one."""
    conditions: list[str] = []
    for element in elements:
        condition = element.expression if isinstance(element, Elements) else condition_on(element)
        if condition is None:
            return None
        if condition not in conditions:
            conditions.append(condition)
    if len(conditions) == 1:
        return conditions[0]
    return "or " + " ".join(f"({each})" if " " in each else each for each in conditions)


def sequence(elements: list[Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    for condition, together in groupby(elements, condition_on):
        if condition is not None:
            yield f"{pad}{{{{- if {condition} }}}}"
        for element in together:
            yield from item(unconditional(element), indent)
        if condition is not None:
            yield f"{pad}{{{{- end }}}}"


def item(value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, Elements):
        yield f"{pad}{{{{- with {value.expression} }}}}"
        yield f"{pad}{{{{- toYaml . | nindent {indent} }}}}"
        yield f"{pad}{{{{- end }}}}"
        return
    if not isinstance(value, dict):
        yield f"{pad}- {scalar(value)}"
        return
    first, *rest = mapping(value, indent + 2)
    yield f"{pad}- {first.strip()}"
    yield from rest


def scalar(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    text = yaml.safe_dump(value, width=1000).removesuffix("\n").removesuffix("\n...")
    if text.startswith("'"):
        return json.dumps(value)
    return text


def document(found: Object) -> str:
    return "\n".join(mapping(found, 0)) + "\n"


def only_if(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


# The files


def templates(objects: dict[tuple[str, str], Object]) -> dict[str, str]:
    """Return the text of each template by its name."""

    def together(*wanted: tuple[str, str]) -> str:
        return "---\n".join(document(objects[each]) for each in wanted)

    files = {}
    for role in ROLES:
        files[role] = together(
            ("Deployment", f"sennit-{role}"),
            ("PodDisruptionBudget", f"sennit-{role}"),
            ("ServiceAccount", f"sennit-{role}"),
        )
    for job in JOBS:
        files[job] = together(("CronJob", f"sennit-{job}"), ("ServiceAccount", f"sennit-{job}"))
    policies = [each for each in objects if each[0] == "NetworkPolicy"]
    files["networkpolicy"] = only_if(".Values.networkPolicy.enabled", together(*policies))
    for name, kinds in AUTOSCALERS.items():
        scaled = [each for each in objects if each[0] in kinds]
        files[name] = only_if(f'eq .Values.autoscaling "{name}"', together(*scaled))
    claim = "not (or .Values.artifacts.bucket .Values.artifacts.volume.existingClaim)"
    files["artifacts"] = only_if(claim, together(("PersistentVolumeClaim", "sennit-artifacts")))
    files["config"] = config(objects["ConfigMap", "sennit"])
    written = sum(text.count("\nkind: ") + text.startswith("kind: ") for text in files.values())
    if written != len(objects):
        raise SystemExit(
            f"generate.py: {len(objects)} objects are rendered and {written} are in a template"
        )
    return {f"templates/{name}.yaml": HEAD + text for name, text in files.items()}


def config(found: Object) -> str:
    data = "\n".join(mapping(found.pop("data"), 0))
    found["data"] = {"#": Raw('{{- include "sennit.settings" . | nindent 2 }}')}
    return (
        f'{{{{- define "sennit.defaults" -}}}}\n{data}\n{{{{- end }}}}\n'
        '{{- define "sennit.settings" -}}\n'
        '{{ toYaml (merge (deepCopy .Values.settings) (fromYaml (include "sennit.defaults" .))) '
        "}}\n"
        "{{- end }}\n" + document(found)
    )


def values(objects: dict[tuple[str, str], Object]) -> str:
    """Return the text of values.yaml: its template with what the base says."""
    settings = objects["ConfigMap", "sennit"]["data"]
    claim = objects["PersistentVolumeClaim", "sennit-artifacts"]
    peers = objects["NetworkPolicy", "sennit-temporal"]["spec"]["egress"][0]["to"]
    given = {
        "address": settings["TEMPORAL_ADDRESS"],
        "namespace": settings["TEMPORAL_NAMESPACE"],
        "size": claim["spec"]["resources"]["requests"]["storage"],
        "schedule": objects["CronJob", "sennit-gc"]["spec"]["schedule"],
        "temporal_peers": indented(peers, 4),
    }
    for role in ROLES:
        (container,) = containers(objects["Deployment", f"sennit-{role}"])
        given[f"{role}_resources"] = indented(container["resources"], 6)
        scale = objects["ScaledObject", f"sennit-{role}"]["spec"]
        given[f"{role}_min"] = str(scale["minReplicaCount"])
        given[f"{role}_max"] = str(scale["maxReplicaCount"])
    for job in JOBS:
        (container,) = containers(objects["CronJob", f"sennit-{job}"])
        given[f"{job}_resources"] = indented(container["resources"], 4)
    text = (HERE / "values.template.yaml").read_text()
    return HEAD + string.Template(text).substitute(given)


def indented(value: Any, indent: int) -> str:
    lines = yaml.safe_dump(value).splitlines()
    return ("\n" + " " * indent).join(lines)


FREE = (
    "settings",
    "env",
    "nodeSelector",
    "tolerations",
    "affinity",
    "podAnnotations",
    "annotations",
    "resources",
    "volumes",
    "volumeMounts",
    "imagePullSecrets",
)
"""Values in which Kubernetes or the workers know the names, not the chart."""
NARROWER: dict[str, Object] = {
    "autoscaling": {"enum": ["none", *AUTOSCALERS]},
    "versioning.build": {"pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
    "image.digest": {"pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
    "temporal.address": {"pattern": "^[^/]+:[0-9]+$"},
    "artifacts.bucket": {"pattern": "^(s3://.+)?$"},
    "models.secret": {"minLength": 1},
    "tools.secret": {"minLength": 1},
    "settings": {"additionalProperties": {"type": "string"}},
}
"""What is allowed beyond the type of the default, by the path of the value."""
TYPES = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}


def schema(value: Any, *path: str) -> Object:
    """Return the schema of a value as its default shows it. Names that the defaults
    do not have are refused.
    """
    found: Object = {"type": TYPES[type(value)]}
    if isinstance(value, dict) and not (path and path[-1] in FREE):
        found["properties"] = {key: schema(each, *path, key) for key, each in value.items()}
        found["additionalProperties"] = False
    elif type(value) is int:
        found["minimum"] = 0
    return found | NARROWER.get(".".join(path), {})


def files() -> dict[str, str]:
    """Return all files that are written, by their path in the chart."""
    base, objects = render(), render()
    for component, switch in SWITCHES.items():
        changed = render(component)
        for key, found in base.items():
            if key in changed:
                note_changes(objects[key], found, changed[key], switch)
    for component, kinds in AUTOSCALERS.items():
        objects |= {key: found for key, found in render(component).items() if key[0] in kinds}
    del objects["Namespace", "sennit"]  # `helm install --namespace` names it
    text = values(base | objects_of_scale(objects))
    place_values(objects)
    root = schema(yaml.safe_load(text))
    root["properties"]["global"] = {"type": "object"}  # Helm gives every chart this one
    written = templates(objects) | {"values.yaml": text}
    written["values.schema.json"] = (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#"} | root, indent=2) + "\n"
    )
    return written


def objects_of_scale(objects: dict[tuple[str, str], Object]) -> dict[tuple[str, str], Object]:
    return {key: found for key, found in objects.items() if key[0] == "ScaledObject"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the Helm chart from deploy/kubernetes.")
    parser.add_argument(
        "--check", action="store_true", help="only say whether the chart in the tree is up to date"
    )
    check = parser.parse_args().check
    stale = []
    for name, text in files().items():
        path = CHART / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if check and stale:
        raise SystemExit(
            "generate.py: these are not what deploy/kubernetes says; run `make chart`: "
            f"{', '.join(stale)}"
        )
    sys.stdout.write(f"written: {', '.join(stale) or 'nothing, all is up to date'}\n")


if __name__ == "__main__":
    main()
