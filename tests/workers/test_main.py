"""`python -m sennit.workers`: a wrong call is answered by one line and exit code 2; the catalogue needs no server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sennit.activities.programs import type_check
from sennit.workers.__main__ import main

GREETING = '''
from pydantic import BaseModel

from sennit.activities.toolbox import tool

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
        [sys.executable, "-m", "sennit.workers", *arguments],
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_catalogue_is_one_json_object_with_the_users_tools_and_nothing_they_print(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text(GREETING)
    env = {"SENNIT_TOOLS": "greeting", "SENNIT_TOOLS_PATH": str(tmp_path), "SENNIT_SANDBOX": "off"}
    done = _workers("catalogue", **env)
    assert (done.returncode, done.stderr) == (0, "imported\n")
    catalogue = json.loads(done.stdout)
    names = {tool["name"] for tool in catalogue["tools"]}
    assert {"search", "read", "calculate", "greet"} <= names
    assert not {"python", "shell"} & names
    assert catalogue["roles"] == ["all", "workflow", "llm", "tools", "sandbox"]
    assert catalogue["models"] == ["offline", "openai", "anthropic", "pydantic-ai"]
    assert catalogue["prices"]["worker"] == [0, 0]


@pytest.mark.skipif(type_check._program() is None, reason="ty is not installed")
def test_the_types_of_a_program_are_checked_against_the_tools(tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text("async def main() -> int:\n    return await calculate(expression=1)\n")
    done = _workers("check", str(tmp_path / "look.py"), SENNIT_SANDBOX="off")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert {problem["line"] for problem in found} == {2}
    assert any("expected 'int'" in problem["message"] for problem in found)


def test_mcp_servers_need_their_extra(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')")
    done = _workers("catalogue", SENNIT_MCP="mcp.json", SENNIT_SANDBOX="off", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "needs sennit[mcp]; mcp is not installed" in done.stderr


def test_agents_need_their_extra(tmp_path: Path) -> None:
    (tmp_path / "a2a.py").write_text("raise ModuleNotFoundError(name='a2a')")
    done = _workers("catalogue", SENNIT_A2A="agents.json", SENNIT_SANDBOX="off", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "needs sennit[a2a]; a2a is not installed" in done.stderr


FILES = {
    "broken.py": "import os; raise RuntimeError('no such luck ' + os.environ.get('APP_TOKEN', ''))",
    "temporal.toml": "not toml",
    "mcp.json": "{}",
    "file": "",
}
CLOSED = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hunter2222"}
BROKEN = {"SENNIT_TOOLS": "broken", "SENNIT_TOOLS_PATH": "{tmp}"}


@pytest.mark.parametrize(
    ("role", "env", "reason"),
    [
        ("wrong", {}, "role 'wrong' is unknown; there are all, "),
        ("workflow", {"SENNIT_DRAIN": "soon"}, "SENNIT_DRAIN='soon': must be seconds"),
        ("catalogue", BROKEN, "SENNIT_TOOLS: tool module 'broken' does not import: RuntimeError: no such luck"),
        ("tools", BROKEN, "SENNIT_TOOLS: tool module 'broken' does not import: RuntimeError: no such luck"),
        ("catalogue", {**BROKEN, "APP_TOKEN": "hunter2222"}, "no such luck [redacted]"),
        ("catalogue", {"SENNIT_TOOLS_PATH": "{tmp}:/nope"}, "SENNIT_TOOLS_PATH: there is no folder /nope"),
        ("sandbox", {}, "SENNIT_SANDBOX='off': no sandbox works here: it is turned off\n"),
        ("sandbox", {"SENNIT_SANDBOX": "docker"}, "must be one of auto, bwrap, landlock, strict, off"),
        ("catalogue", {"SENNIT_MCP": "{tmp}/mcp.json"}, "SENNIT_MCP: {tmp}/mcp.json: mcpServers: is missing"),
        ("catalogue", {"SENNIT_MCP": "{tmp}/no.json"}, "no.json cannot be read"),
        ("catalogue", {"SENNIT_A2A": "{tmp}/no.json"}, "no.json cannot be read"),
        ("catalogue", {"SENNIT_A2A": "http://me:pw@a"}, "SENNIT_A2A: the URL has a user name or password"),
        ("catalogue", {"SENNIT_WRITE_ROOT": "{tmp}/no"}, "SENNIT_WRITE_ROOT: '{tmp}/no' is "),
        ("workflow", {"TEMPORAL_CONFIG_FILE": "{tmp}/temporal.toml"}, "TOML"),
        ("llm", {"SENNIT_MODEL": "offline,anthropic:m"}, "names anthropic:m and ANTHROPIC_API_KEY is not set; in"),
        ("tools", {"SENNIT_INDEX": "{tmp}/file/index"}, "SENNIT_INDEX='{tmp}/file/index' cannot be used: Not a dir"),
        ("tools", {"AWS_ENDPOINT_URL": "x", "SENNIT_ARTIFACTS": "s3://bucket/p"}, "AWS_ENDPOINT_URL is no URL"),
        (
            "store",
            {"SENNIT_ARTIFACTS": "{tmp}/file/artifacts"},
            "artifact store {tmp}/file/artifacts: Not a dir",
        ),
        ("store", {**CLOSED, "SENNIT_ARTIFACTS": "s3://bucket/p"}, "SENNIT_ARTIFACTS='s3://bucket/p': artifact store"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    role: str,
    env: dict[str, str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name in [name for name in os.environ if name.startswith(("SENNIT_", "TEMPORAL_"))]:
        monkeypatch.delenv(name)
    for name, value in {"SENNIT_SANDBOX": "off", "SENNIT_STATE": "{tmp}/state", **env}.items():
        monkeypatch.setenv(name, value.replace("{tmp}", str(tmp_path)))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr("sennit.workers.telemetry.start_log", lambda *_: None)
    with capture_logs():
        assert main([role]) == 2
    stdout, stderr = capsys.readouterr()
    assert (stdout, stderr.count("\n")) == ("", 1)
    assert reason.replace("{tmp}", str(tmp_path)) in stderr
    assert "hunter2222" not in stderr


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("all", "more"), 2), (("--help",), 0), (("--nope",), 2)])
def test_usage_names_the_roles(arguments: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    stdout, stderr = capsys.readouterr()
    assert "all, workflow, llm, tools" in (stdout if code == 0 else stderr)
