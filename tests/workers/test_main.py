"""`python -m workers`: what is wrong with the call is one line and exit code 2; the catalogue needs no server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GREETING = '''
from pydantic import BaseModel

from activities.toolbox import tool

print("imported")


class Whom(BaseModel):
    name: str


@tool(effect="pure")
async def greet(args: Whom) -> str:
    """Greets."""
    return f"hello {args.name}"
'''


def _workers(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
    return subprocess.run(
        [sys.executable, "-m", "workers", *arguments],
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_catalogue_is_one_json_object_on_stdout() -> None:
    done = _workers("catalogue")
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(done.stdout)
    assert {"search", "read", "calculate"} <= {each["name"] for each in listed["tools"]}
    assert listed["roles"] == ["all", "workflow", "llm", "tools", "sandbox"]
    assert listed["models"] == ["offline", "openai", "anthropic"]


def test_the_catalogue_has_the_users_tools_and_nothing_they_print(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text(GREETING)
    done = _workers("catalogue", SENNIT_TOOLS="greeting", SENNIT_TOOLS_PATH=str(tmp_path))
    assert "greet" in {each["name"] for each in json.loads(done.stdout)["tools"]}
    assert done.stderr == "imported\n"


@pytest.mark.parametrize("role", ["catalogue", "tools"])
def test_a_tool_module_that_fails_stops_the_worker_with_its_name(tmp_path: Path, role: str) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no such luck')")
    env = {"SENNIT_TOOLS": "broken", "SENNIT_TOOLS_PATH": str(tmp_path), "SENNIT_STATE": str(tmp_path / "state")}
    line = _refusal(_workers(role, **env))
    assert "broken" in line
    assert "no such luck" in line


def test_a_role_that_is_not_there_is_refused() -> None:
    assert "wrong" in _refusal(_workers("wrong"))


def test_the_sandbox_role_does_not_serve_without_a_sandbox() -> None:
    said = _refusal(_workers("sandbox", SENNIT_SANDBOX="off"))
    assert said == "sennit worker: SENNIT_SANDBOX='off': no sandbox works here: it is turned off\n"
    assert "must be one of auto, bwrap, landlock, off" in _refusal(_workers("sandbox", SENNIT_SANDBOX="docker"))


def test_mcp_servers_need_their_extra_and_a_file_that_is_right(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{}")
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')")
    said = _refusal(_workers("tools", SENNIT_MCP=str(tmp_path / "mcp.json"), PYTHONPATH=str(tmp_path)))
    assert "needs sennit[mcp]; mcp is not installed" in said
    pytest.importorskip("mcp")
    assert "mcp.json: mcpServers: Field required" in _refusal(_workers("all", SENNIT_MCP=str(tmp_path / "mcp.json")))
    assert "no.json cannot be read" in _refusal(_workers("all", SENNIT_MCP=str(tmp_path / "no.json")))


def test_without_a_sandbox_the_catalogue_has_no_tools_that_need_it() -> None:
    without = json.loads(_workers("catalogue", SENNIT_SANDBOX="off").stdout)["tools"]
    assert not {"python", "shell"} & {each["name"] for each in without}


def test_a_wrong_setting_names_variable_and_value() -> None:
    line = _refusal(_workers("workflow", SENNIT_DRAIN="soon"))
    assert "SENNIT_DRAIN='soon'" in line


def test_a_folder_of_tools_that_is_not_there_is_named(tmp_path: Path) -> None:
    line = _refusal(_workers("catalogue", SENNIT_TOOLS_PATH=f"{tmp_path}{os.pathsep}/nope"))
    assert "SENNIT_TOOLS_PATH: there is no folder /nope" in line


def test_a_wrong_connection_profile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "temporal.toml").write_text("not toml")
    assert "TOML" in _refusal(_workers("workflow", TEMPORAL_CONFIG_FILE=str(tmp_path / "temporal.toml")))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = _refusal(_workers("tools", SENNIT_ARTIFACTS=str(tmp_path / "file" / "artifacts")))
    assert str(tmp_path / "file") in line


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("all", "more"), 2), (("--help",), 0), (("--nope",), 2)])
def test_usage_names_the_roles(arguments: tuple[str, ...], code: int) -> None:
    done = _workers(*arguments)
    assert done.returncode == code
    assert "all, workflow, llm, tools" in (done.stdout if code == 0 else done.stderr)


def test_a_secret_in_a_refusal_is_masked(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import os; raise RuntimeError(os.environ['APP_TOKEN'])")
    line = _refusal(
        _workers("catalogue", SENNIT_TOOLS="broken", SENNIT_TOOLS_PATH=str(tmp_path), APP_TOKEN="hunter2222")
    )
    assert "hunter2222" not in line
