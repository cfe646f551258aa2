"""Helm as it is installed here, or as deploy/chart/go.mod pins it; and what it makes of our chart."""

import functools
import re
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from sennit.folders import DEPLOY
from sennit.starter.dev.binary import cache_dir

MODULES = DEPLOY / "chart"
CHART = MODULES / "sennit"
PACKAGE = "helm.sh/helm/v3/cmd/helm"
Manifest = dict[str, Any]


class NoHelm(Exception):
    """Why there is no Helm on this machine."""


class Refused(Exception):
    """What Helm wrote to standard error."""


def _flags() -> str:
    """Return what tells Helm for which Kubernetes it is: without them it is for 1.20, and refuses our chart."""
    found = re.search(r"k8s\.io/client-go v0\.(\d+)\.", (MODULES / "go.mod").read_text())
    assert found is not None
    version = {"k8sVersionMajor": "1", "k8sVersionMinor": found[1]}
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    return " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in version.items())


def _built() -> Path:
    """Return where the Helm is that deploy/chart/go.mod pins, if it has been built."""
    pinned = b"".join((MODULES / name).read_bytes() for name in ("go.mod", "go.sum"))
    digest = sha256(pinned + _flags().encode()).hexdigest()[:16]
    return cache_dir() / f"helm-{digest}"


@functools.cache
def helm_program() -> str:
    """Return the path of Helm. Raises NoHelm: to build it takes minutes, which `make chart-test` spends."""
    installed = shutil.which("helm")
    if installed is not None:
        return installed
    binary = _built()
    if not binary.exists():
        raise NoHelm("Helm is not installed; `make chart-test` builds it, and runs these tests")
    return str(binary)


def build() -> None:
    """Build Helm if there is none. Raises NoHelm."""
    binary = _built()
    if shutil.which("helm") is not None or binary.exists():
        return
    binary.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{binary}.lock"):
        part = binary.with_suffix(".part")
        command = ["sh", str(DEPLOY / "go-build.sh"), str(MODULES), PACKAGE, str(part), _flags()]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise NoHelm(f"Helm could not be built: {(built.stdout + built.stderr)[-300:].strip()}")
        part.replace(binary)


def helm(*arguments: str) -> str:
    """Run Helm and return what it prints. Raises Refused."""
    done = subprocess.run([helm_program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


def with_values(values: Manifest, *arguments: str) -> str:
    """Run Helm with values for the chart."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        return helm(*arguments, "--values", file.name)


def template(values: Manifest) -> list[Manifest]:
    """Return the objects of the chart with these values. Raises Refused."""
    text = with_values(values, "template", "sennit", str(CHART), "--namespace", "sennit")
    return [each for each in yaml.safe_load_all(text) if each]


if __name__ == "__main__":
    build()
