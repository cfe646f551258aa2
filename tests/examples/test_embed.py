"""The examples of embedding, from the checkout, against workers in processes of their own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.embedded import EMBED, run_cells, run_child, service, use_service
from doubles.example_user import ExampleUser

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


def test_a_web_service_starts_follows_approves_and_answers(user: ExampleUser, tmp_path: Path) -> None:
    with service(sys.executable, user.env, tmp_path / "log") as client:
        report = use_service(client, "embedded-service")
    assert (report["status"], report["answer"]["path"]) == ("done", "sum.txt")


def test_a_notebook_approves_what_it_was_shown(user: ExampleUser, tmp_path: Path) -> None:
    printed = run_cells(sys.executable, user.env, tmp_path)
    assert "asked page" in printed
    assert "The Nile leads by 250 km." in printed
    assert printed.splitlines()[-1] == "page.md 25"


def test_a_workflow_of_ones_own_has_a_run_as_its_child(user: ExampleUser, tmp_path: Path) -> None:
    assert run_child(sys.executable, user.env, tmp_path) == "done: 15\n"


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no Node on this machine")
def test_a_client_in_typescript_needs_only_json(user: ExampleUser, tmp_path: Path) -> None:
    shutil.copy(EMBED / "client.mts", tmp_path)
    packages = ["@temporalio/client@^1.11", "typescript@^5", "@types/node@^20"]
    made = _npm(tmp_path, "npm", "install", "--no-audit", "--no-fund", *packages)
    if made.returncode != 0:
        pytest.skip(f"npm cannot install the Temporal client: {made.stderr[-200:]}")
    checks = ["--strict", "--module", "nodenext", "--target", "es2023", "--skipLibCheck"]
    compiled = _npm(tmp_path, "npx", "tsc", *checks, "client.mts")
    assert compiled.returncode == 0, compiled.stdout
    done = _npm(tmp_path, "node", "client.mjs", user.env["TEMPORAL_ADDRESS"])
    assert done.stdout.splitlines()[0] == "ok: Go on?", done.stderr
    assert done.stdout.splitlines()[-1] == 'done: "yes"'


def _npm(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
