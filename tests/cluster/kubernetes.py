"""The cluster of deploy/dev-cluster as tests use it."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
Manifest = dict[str, Any]


class KubectlFailed(Exception):
    """What kubectl wrote to standard error."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster. Raises KubectlFailed where kubectl fails."""

    state: Path = field(default_factory=lambda: Path(os.environ["CLUSTER_STATE"]))
    program: str = field(default_factory=lambda: os.environ["CLUSTER_KUBECTL"])
    temporal: str = field(default_factory=lambda: os.environ["CLUSTER_TEMPORAL"])
    internet: str = field(default_factory=lambda: os.environ["CLUSTER_INTERNET"])
    namespace: str = "sennit"

    @property
    def gateway(self) -> str:
        """The address of this machine in the pods' network."""
        return self.temporal.partition(":")[0]

    def kubectl(self, *arguments: str, given: str | None = None, limit: float = 300.0) -> str:
        """Run kubectl in the namespace of the workers and return what it prints."""
        command = [self.program, "--namespace", self.namespace, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=limit, check=False)
        if done.returncode:
            raise KubectlFailed(done.stderr.strip())
        return done.stdout

    def read(self, *arguments: str) -> Any:
        """Return what `kubectl get` finds."""
        return json.loads(self.kubectl("get", *arguments, "--output", "json"))

    def render(self, folder: Path) -> list[Manifest]:
        """Return the manifests of a kustomization."""
        return list(yaml.safe_load_all(self.kubectl("kustomize", str(folder))))

    def apply(self, *manifests: Manifest, dry: bool = False) -> str:
        """Apply as strictly as the server can; with `dry` the server only checks."""
        flags = ["--dry-run=server"] if dry else []
        options = ("--server-side", "--force-conflicts", "--validate=strict", *flags)
        return self.kubectl("apply", *options, "-f", "-", given=yaml.safe_dump_all(manifests))

    def pods(self, role: str) -> dict[str, Manifest]:
        """Return the pods of a role that are not ending, by name."""
        found = self.read("pods", "--selector", f"app.kubernetes.io/component={role}")["items"]
        return {each["metadata"]["name"]: each for each in found if "deletionTimestamp" not in each["metadata"]}

    def await_rollout(self) -> None:
        """Wait until all Deployments are ready in their newest form; the failure tells what became of their pods."""
        try:
            self.kubectl("rollout", "status", "deployment", "--timeout", "240s", limit=500.0)
        except KubectlFailed as failure:
            events = self.kubectl("get", "events", "--sort-by=.lastTimestamp", "--field-selector", "type=Warning")
            raise KubectlFailed(f"{failure}\n{self.kubectl('get', 'pods')}\n{events[-3000:]}") from None
