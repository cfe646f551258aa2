"""deploy/compose.yaml as it is, on a real Docker engine. Only for the images of others there are stand-ins."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose.docker_engine import DEPLOY, CommandFailed, Engine, compose_program, docker_engine, load_images, run

pytestmark = pytest.mark.timeout(900)
FILE = DEPLOY / "compose.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
ONCE = {"schema", "setup"}
"""Services that end when they have done their work."""
COMPOSE = "docker compose -f deploy/compose.yaml"
PAGE = (DEPLOY.parent / "docs" / "operations.md").read_text()
ROLES = ("workflow", "llm", "tools", "sandbox")
ADDRESS = "127.0.0.1:7233"
LONGEST = 120.0
"""Seconds in which every service becomes healthy."""


class Stack:
    """The services of compose.yaml on an engine, as a person runs them."""

    def __init__(self, engine: Engine, images: dict[str, str], program: str) -> None:
        self.engine = engine
        self._program = program
        self._standins = engine.place / "standins.yaml"
        self._settings = {"DOCKER_HOST": engine.host, "POSTGRES_PASSWORD": "a-password:$x%"}
        services = {name: {"image": image} for name, image in images.items()}
        self._standins.write_text(yaml.safe_dump({"services": services}))

    def compose(self, *arguments: str, limit: float = 400.0) -> str:
        """Run `docker compose` with the file."""
        files = ("-f", str(FILE), "-f", str(self._standins))
        return run([self._program, *files, *arguments], more=self._settings, limit=limit)

    def up(self, *arguments: str) -> None:
        """Start what is missing, and see every service healthy."""
        try:
            self.compose("up", "--detach", "--no-build", *arguments)
        except CommandFailed as failure:
            pytest.fail(f"{failure}\n{self.logs()}")

    def shell(self, script: str, folder: Path) -> None:
        """Run commands of the documentation in a folder."""
        ours = f"{self._program} -f {FILE} -f {self._standins}"
        assert COMPOSE in script
        run(["sh", "-euc", script.replace(COMPOSE, ours)], folder=folder, more=self._settings, limit=400.0)

    def logs(self) -> str:
        return self.compose("logs", "--tail", "15", "--no-color")

    def containers(self, *services: str) -> list[dict[str, Any]]:
        """Return the containers of services, or all of them, also those that have ended."""
        names = self.compose("ps", "--all", "--quiet", *services).split()
        return [self.engine.inspect(name) for name in names]

    async def is_healthy(self) -> None:
        """See every service that stays become healthy."""
        try:
            async with asyncio.timeout(LONGEST):
                while not all(health(each) == "healthy" for each in self.containers() if service(each) not in ONCE):
                    await asyncio.sleep(1)
        except TimeoutError:
            states = {each["Name"]: each["State"] for each in self.containers()}
            pytest.fail(f"{json.dumps(states, indent=1)[-4000:]}\n{self.logs()}")

    def sennit(self, *arguments: str, expect: int = 0) -> str:
        """Run the command from outside of the containers."""
        command = [sys.executable, "-m", "sennit", *arguments, "--address", ADDRESS]
        done = subprocess.run(self.engine.inside(*command), capture_output=True, text=True, timeout=240)
        assert done.returncode == expect, f"{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout


def service(container: dict[str, Any]) -> str:
    return str(container["Config"]["Labels"]["com.docker.compose.service"])


def health(container: dict[str, Any]) -> str:
    return str(container["State"]["Health"]["Status"])


def at(container: dict[str, Any], moment: str) -> datetime:
    """Return when a container has started or ended."""
    return datetime.fromisoformat(container["State"][moment])


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """All services, started once."""
    missing = [name for name in ("dockerd", "buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed; on Debian: apt-get install docker.io buildah mmdebstrap")
    with docker_engine() as engine:
        stack = Stack(engine, load_images(engine), compose_program())
        stack.up()
        yield stack


async def test_services_start_in_order_and_become_healthy(stack: Stack) -> None:
    await stack.is_healthy()
    by_service = {service(each): each for each in stack.containers()}
    assert by_service.keys() == SERVICES.keys()
    for name, found in by_service.items():
        for before, wanted in SERVICES[name].get("depends_on", {}).items():
            first = by_service[before]
            if wanted["condition"] == "service_completed_successfully":
                assert at(first, "FinishedAt") <= at(found, "StartedAt"), (before, name)
    for name in ONCE:
        assert by_service[name]["State"]["ExitCode"] == 0


async def test_workers_have_no_rights(stack: Stack) -> None:
    code = (
        "import json, os\n"
        "lines = dict(line.split(':', 1) for line in open('/proc/1/status'))\n"
        "rights = [lines[name].strip() for name in ('NoNewPrivs', 'CapEff', 'CapBnd')]\n"
        "writable = [place for place in ('/', '/opt/sennit', '/usr', '/var/lib/sennit') if os.access(place, os.W_OK)]\n"
        "print(json.dumps([os.getuid(), rights, writable, sorted(n for n in os.environ if n.endswith('_API_KEY'))]))\n"
    )
    nothing = "0000000000000000"
    for role in ROLES:
        seen = json.loads(stack.compose("exec", "-T", role, "python3", "-c", code))
        keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] if role == "llm" else []
        assert seen == [10001, ["1", nothing, nothing], [], keys], role


def test_a_question_from_outside_is_answered(stack: Stack) -> None:
    ask(stack)


def ask(stack: Stack) -> None:
    """Ask something. There are no documents and no model, and the offline rules say that they cannot tell."""
    assert "I cannot tell that" in stack.sennit("ask", "Which river is longest?", "--timeout", "2m", expect=3)


def test_the_web_ui_shows_the_server(stack: Stack) -> None:
    code = (
        "import urllib.request as r\n"
        "page = r.urlopen('http://127.0.0.1:8233/').read().decode()\n"
        "names = r.urlopen('http://127.0.0.1:8233/api/v1/namespaces').read().decode()\n"
        "assert '<html' in page and '\"default\"' in names, (page[:300], names[:300])\n"
    )
    run(stack.engine.inside(sys.executable, "-c", code))


async def test_a_role_is_scaled(stack: Stack) -> None:
    stack.up("--scale", "tools=2")
    await stack.is_healthy()
    assert len(stack.containers("tools")) == 2
    ask(stack)


COUNTS = """
import time
time.sleep({seconds})
result = {number}
"""


def plan_of(folder: Path, seconds: int, count: int = 4) -> str:
    """Write a plan whose calls take some seconds each."""
    nodes = [
        {"id": f"n{number}", "kind": "tool", "tool": "python",
         "args": {"code": COUNTS.format(seconds=seconds, number=number)}}
        for number in range(count)
    ]  # fmt: skip
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({"nodes": nodes, "answer": [f"$n{number}.result" for number in range(count)]}))
    return str(path)


@pytest.mark.parametrize("role", ["sandbox", "tools", "workflow"])
async def test_a_run_outlives_a_worker_that_is_killed(stack: Stack, role: str, tmp_path: Path) -> None:
    name = f"killed-{role}"
    stack.sennit("run", plan_of(tmp_path, seconds=4), "--id", name, "--detach")
    await is_running(stack, name)
    (victim, *_) = stack.containers(role)
    stack.engine.crash(victim["Id"])
    stack.sennit("run", plan_of(tmp_path, seconds=4), "--id", name, "--timeout", "3m")
    assert json.loads(stack.sennit("output", name)) == [0, 1, 2, 3]
    await stack.is_healthy()
    assert stack.engine.inspect(victim["Id"])["RestartCount"] == 1


async def is_running(stack: Stack, name: str) -> None:
    """Wait until a call of a run is under way."""
    async with asyncio.timeout(LONGEST):
        while "running" not in stack.sennit("status", name, expect=4):
            await asyncio.sleep(0.5)


async def test_down_drains_and_up_goes_on(stack: Stack, tmp_path: Path) -> None:
    """As for an upgrade: what runs comes to its end first, and nothing of it is lost."""
    stack.sennit("run", plan_of(tmp_path, seconds=8), "--id", "drained", "--detach")
    await is_running(stack, "drained")
    stack.compose("stop")
    ended = {each["Name"]: each["State"]["ExitCode"] for each in stack.containers() if service(each) in ROLES}
    assert set(ended.values()) == {0}, ended
    stack.compose("down")
    assert stack.containers() == []
    stack.up()
    await stack.is_healthy()
    assert json.loads(stack.sennit("output", "drained")) == [0, 1, 2, 3]
    assert "attempt" not in stack.sennit("status", "drained")


def documented(word: str) -> str:
    """Return the commands for compose on the page for operators in which a word stands."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (block,) = [each for each in blocks if COMPOSE in each and word in each]
    return str(block)


async def test_a_backup_is_restored_by_the_documented_commands(stack: Stack, tmp_path: Path) -> None:
    stack.sennit("run", plan_of(tmp_path, seconds=0), "--id", "saved", "--timeout", "2m")
    stack.shell(documented("pg_dump"), tmp_path)
    stack.compose("down", "--volumes")
    stack.shell(documented("pg_restore"), tmp_path)
    await stack.is_healthy()
    assert json.loads(stack.sennit("output", "saved")) == [0, 1, 2, 3]
    ask(stack)


def test_garbage_is_collected_by_the_documented_command(stack: Stack) -> None:
    (command,) = re.findall(r"`compose (run [^`]* gc)`", PAGE)
    assert "deleted: 0 runs" in stack.compose(*command.split())
