"""The wheel in environments of their own, as a user installs it: `make test-wheel`, for every Python that is here.

Other packages come from the package index that pip is configured for.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from doubles.cli_user import model_process
from doubles.distribution import ROOT, build
from doubles.embedded import LEAVE, run_cells, run_child, service, use_service
from doubles.guide import follow
from doubles.other_pythons import VERSIONS, python_of

from sennit.starter.dev.binary import obtain

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]
NEIGHBOUR = "llama-index-workflows"  # its package is called workflows
OLD = ("activities", "workers", "starter")
TOOL = '''
from pydantic import BaseModel
from sennit import tool

class Words(BaseModel):
    text: str

@tool(effect="pure")
def count_words(args: Words) -> int:
    """Count the words of a text."""
    return len(args.text.split())
'''
RULING = json.dumps({"winner": "for", "why": "it was clearer"})
RULES = [{"match": "Has one side convinced you", "text": RULING}, {"match": "Argue", "text": "Because it is so."}]


@dataclass(frozen=True)
class User:
    """Somebody with an environment, in a folder with files that are named as those of every Temporal sample."""

    bin: Path
    folder: Path
    env: dict[str, str]

    def run(self, program: str, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        command = [self.bin / program, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.env | env, capture_output=True, text=True, timeout=600, check=False
        )

    def does(self, program: str, *arguments: str | Path, **env: str) -> str:
        done = self.run(program, *arguments, **env)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def types(self, line: str) -> str:
        """Run a line in a shell, as written; return what it prints, whatever its exit code."""
        env = self.env | {"PATH": f"{self.bin}{os.pathsep}{self.env['PATH']}"}
        command = ["sh", "-c", line]
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        return done.stderr + done.stdout

    def install(self, *what: str | Path) -> None:
        self.does(
            "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", *what
        )

    def uninstall(self, name: str) -> None:
        self.does("python", "-m", "pip", "uninstall", "-q", "-y", name)

    def imported(self, name: str) -> str:
        """Return where a module is found, away from the user's own files; an error where there is none."""
        done = self.run("python", "-P", "-c", f"import {name}; print({name}.__file__)")
        return done.stdout.strip() or done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("release")).wheel


@pytest.fixture(params=VERSIONS)
def user(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[User]:
    python = python_of(request.param)
    if python is None:
        pytest.skip(f"there is no Python {request.param} on this machine")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("workflows", "activities"):
        (folder / f"{name}.py").write_text(TOOL.replace("count_words", f"count_{name}"))
    foreign = ("SENNIT_", "TEMPORAL_", "OPENAI_", "ANTHROPIC_", "PYTHON", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env |= {
        "SENNIT_STATE": str(tmp_path / "state"),
        "SENNIT_TEMPORAL_CLI": str(asyncio.run(obtain(pinned_only=True))),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    made = User(tmp_path / "venv" / "bin", folder, env)
    yield made
    if (made.bin / "sennit").exists():
        made.run("sennit", "dev", "--stop")


def test_the_wheel_works_by_itself_beside_others_and_leaves_nothing(user: User, wheel: Path, tmp_path: Path) -> None:
    user.install(NEIGHBOUR)
    neighbour = user.imported("workflows")
    user.install(wheel)
    home = Path(user.imported("sennit")).parent
    follow(user.folder, user.types, lambda script: user.does("python", "-P", "-c", f"{script}{LEAVE}"))
    answers_from(user, home, tmp_path)
    takes_tools_of_any_name(user)
    can_be_embedded(user, tmp_path)
    its_types_are_seen(user)
    assert user.imported("workflows") == neighbour
    assert [user.imported(name) for name in OLD] == [f"ModuleNotFoundError: No module named '{name}'" for name in OLD]

    user.does("sennit", "dev", "--stop")
    user.uninstall("sennit")
    assert not home.exists()
    assert user.imported("sennit") == "ModuleNotFoundError: No module named 'sennit'"
    assert user.imported("workflows") == neighbour

    user.uninstall(NEIGHBOUR)
    user.install("--no-deps", wheel)
    assert "count_workflows" in user.does("sennit", "tools", SENNIT_TOOLS="workflows", SENNIT_TOOLS_PATH=".")
    user.install("--no-deps", NEIGHBOUR)
    assert user.imported("workflows") == neighbour
    assert "calculate" in user.does("sennit", "tools")


def answers_from(user: User, home: Path, place: Path) -> None:
    """The demo needs no key; a program of the library needs a model."""
    assert "the Nile: 6,650 km [1]" in user.does("sennit", "demo", "--timeout", "3m")
    assert user.does("python", "-m", "sennit", "--version") == user.does("sennit", "--version")
    with model_process(place, RULES, "--key", "a-key-of-this-test") as model:
        models = {"OPENAI_BASE_URL": model.openai_url, "OPENAI_API_KEY": "a-key-of-this-test"}
        said = user.does("sennit", "ask", "Is it?", "--program", "debate", "--timeout", "3m", **models)
    assert "it was clearer" in said
    assert "no problems" in user.does("sennit", "plan", "check", home / "examples" / "plans" / "gate.yaml")


def takes_tools_of_any_name(user: User) -> None:
    """Also of a module that has the name of another package, or of a folder of Sennit."""
    assert "count_activities" in user.does("sennit", "tools", SENNIT_TOOLS="activities", SENNIT_TOOLS_PATH=".")


def can_be_embedded(user: User, place: Path) -> None:
    """The examples of embedding, against the local stack of this user."""
    user.install("fastapi", "uvicorn")
    (place / "written").mkdir()
    user.does("sennit", "dev", "--restart", SENNIT_WRITE_ROOT=str(place / "written"))
    find = "import asyncio, sennit; print(asyncio.run(sennit.Sennit.local(renew='never')).server.address)"
    env = user.env | {"TEMPORAL_ADDRESS": user.does("python", "-P", "-c", f"{find}; {LEAVE}").strip()}
    python = str(user.bin / "python")
    with service(python, env, place / "log") as client:
        assert use_service(client, "embedded-service")["status"] == "done"
    assert run_cells(python, env, place).splitlines()[-1] == "page.md 25"
    assert run_child(python, env, place) == "done: 15\n"


def its_types_are_seen(user: User) -> None:
    # `sennit plan check` checks programs. The other two need agents of others, which this user has not installed.
    left_out = ("__pycache__", "programs", "pydantic_ai_agent.py", "langgraph_graph.py")
    shutil.copytree(ROOT / "examples", user.folder / "examples", ignore=shutil.ignore_patterns(*left_out))
    (user.folder / "wrong.py").write_text("from sennit import Sennit, Senit, tool\nSennit(1)\n")
    checker = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(user.bin / "python")]
    right = subprocess.run([*checker, "examples"], cwd=user.folder, env=user.env, capture_output=True, text=True)
    assert right.returncode == 0, right.stdout
    wrong = subprocess.run([*checker, "wrong.py"], cwd=user.folder, env=user.env, capture_output=True, text=True)
    assert 'Module "sennit" has no attribute "Senit"' in wrong.stdout
    assert 'Argument 1 to "Sennit" has incompatible type "int"' in wrong.stdout
