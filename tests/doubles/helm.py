"""Helm as it is installed here, or as deploy/chart/go.mod pins it, built once; and what it makes of our chart."""

import functools
import shutil
import subprocess
import tempfile
from hashlib import sha256
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


@functools.cache
def helm_program() -> str:
    """Return the path of Helm, built if there is none. Raises NoHelm."""
    installed = shutil.which("helm")
    if installed is not None:
        return installed
    digest = sha256(b"".join((MODULES / name).read_bytes() for name in ("go.mod", "go.sum"))).hexdigest()[:16]
    binary = cache_dir() / f"helm-{digest}"
    binary.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{binary}.lock"):
        if binary.exists():
            return str(binary)
        part = binary.with_suffix(".part")
        command = ["sh", str(DEPLOY / "go-build.sh"), str(MODULES), PACKAGE, str(part)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise NoHelm(
                f"Helm is not installed and could not be built: {(built.stdout + built.stderr)[-300:].strip()}"
            )
        part.replace(binary)
    return str(binary)


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
