"""The command as a whole: exit codes and streams where no server is needed."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sennit.__main__ import main
from sennit.activities.programs import type_check
from sennit.starter.client.errors import Exit

PLAN = "nodes:\n- {id: a, kind: tool, tool: calculate, args: {expression: 1 + 1}}\n"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server is named, and none was ever started."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "SENNIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SENNIT_STATE", str(tmp_path / "state"))
    (tmp_path / "none.toml").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["ask", ""], "sennit: the goal is empty"),
        (["ask", "x" * 40_000], "sennit: `goal`: is 40,000 bytes; at most 32,768"),
        (["ask", "\udcff"], 'sennit: `goal`: "\\udcff" holds half a surrogate pair'),
        (["ask", "x", "--docs", "nowhere"], "sennit: --docs nowhere: there is no such folder"),
        (["ask", "x", "--again"], "sennit: --again"),
        (["ask", "x", "--address", "host"], "sennit: the Temporal address is HOST:PORT"),
        (["run", "nowhere.yaml"], "nowhere.yaml: No such file or directory"),
        (["fork", "r", "--with", "nowhere.py"], "nowhere.py: No such file or directory"),
        (["plan", "check", "nowhere.yaml"], "nowhere.yaml: No such file or directory"),
        (["update", "r", "edit_node", "node=n1"], "sennit: `edit_node` is no update; there are retry_node"),
        (["update", "r", "explode"], "sennit: `explode` is no update"),
        (["update", "r", "answer", "nod=n1", "value=1"], "sennit: answer: unknown field `nod`"),
        (["update", "r", "answer", "{"], "sennit: the fields of answer are not JSON"),
        (["update", "r", "answer", "n1"], "sennit: 'n1': write a field as name=value"),
        (["retry", "r", "7"], "sennit: retry_node: `node`"),
    ],
)
def test_what_the_client_can_see_is_refused_with_2_before_anything_starts(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(argv) == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.out == ""
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("command", ["status", "watch", "cancel", "finish", "fork"])
def test_no_stack_is_started_just_to_look_for_a_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "r"]) == Exit.UNREACHABLE
    assert "there is no Temporal server; pass --address" in capsys.readouterr().err


def test_an_unreachable_server_exits_5_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "r", "--address", "127.0.0.1:1"]) == Exit.UNREACHABLE
    assert capsys.readouterr().err == "sennit: no Temporal server at 127.0.0.1:1: Connection refused\n"


def test_a_plan_is_drawn_on_stdout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert main(["plan", "draw", "plan.yaml"]) == 0
    captured = capsys.readouterr()
    assert 'a  tool  calculate "1 + 1"' in captured.out
    assert captured.err == ""


def test_a_program_is_quoted_and_nothing_starts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "async def main(goal: str, k: int = 2):\n    return [await ask(goal) for _ in range(k)]\n"
    )
    assert main(["plan", "check", "p.py"]) == 0
    checked = capsys.readouterr().out.splitlines()
    assert checked[:2] == ["p.py: 1 node, no problems", "calls: 2 (ask 2)"]
    assert main(["run", "p.py", "--quote", "--input", "k=3", "--output", "json"]) == 0
    quoted = json.loads(capsys.readouterr().out)
    assert quoted["functions"] == {"ask": {"least": 3, "most": 3}}
    assert not (tmp_path / "state").exists()
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert main(["run", "plan.yaml", "--quote"]) == Exit.USAGE
    assert "plan.yaml is no program" in capsys.readouterr().err


def test_a_check_reports_its_stages_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Form and references of a plan with its tools; names and types of a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_SANDBOX", "off")
    for name in ("SENNIT_WRITE_ROOT", "SENNIT_MCP", "SENNIT_A2A", "SENNIT_HTTP_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "p.yaml").write_text(
        "nodes:\n- {id: a, kind: llm, prompt: 7}\n- {id: b, kind: tool, tool: write, args: {path: $c}}\n"
        "- {id: p, kind: tool, tool: python, args: {code: x}}\n- {id: d, kind: llm, prompt: x, model: 'foo:bar'}\n"
    )
    assert main(["plan", "check", "p.yaml"]) == Exit.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "3", "3", "4", "5"]
    assert "the tool `write` is off here: SENNIT_WRITE_ROOT names no folder" in lines[1]
    assert "refers to no node" in lines[2]
    assert "the tool `python` is off here: no sandbox works here: it is turned off" in lines[3]
    assert "`foo:bar`" in lines[4]
    assert "offline, openai, anthropic" in lines[4]
    (tmp_path / "p.py").write_text(
        "async def main() -> int:\n    await serch(query='x')\n    return await calculate(expression=1)\n"
    )
    assert main(["plan", "check", "p.py"]) == Exit.USAGE
    lines = capsys.readouterr().err.splitlines()
    of_types = ["3"] if type_check._program() is not None else []
    assert sorted({line.split(":")[1] for line in lines}) == ["2", *of_types]
    assert "there is no `serch`; did you mean `search`?" in lines[0]
    (tmp_path / "w.yaml").write_text(
        "nodes:\n- {id: a, kind: llm, prompt: x}\n- {id: b, kind: gate, question: x, schema: {enum: [yes, no]}}\n"
        "answer: $b\n"
    )
    assert main(["plan", "check", "w.yaml"]) == 0
    warned = capsys.readouterr()
    assert warned.out == "w.yaml: 2 nodes, no problems\n"
    assert [line.split(": ")[1] for line in warned.err.splitlines()] == ["w.yaml:2", "w.yaml:3"]
    assert main(["plan", "check", "w.yaml", "--output", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 2


def test_a_plan_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLAN.encode())))
    assert main(["plan", "draw", "-", "--format", "mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart TD")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff", "not UTF-8"),
        (b" \n", "is empty"),
        (b"x" * 40_000, "is 40,000 bytes; at most 32,768"),
        (b"x" * 3_000_000, "is longer than 32,768 bytes"),
    ],
)
def test_a_goal_on_standard_input_is_bounded_text(
    body: bytes, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))
    assert main(["ask", "-"]) == Exit.USAGE
    assert message in capsys.readouterr().err


def sennit(*argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sennit", *argv], capture_output=True, text=True, timeout=60, **more)


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_crash_is_one_line_and_a_traceback_only_on_request(debug: str, tmp_path: Path) -> None:
    code = "import sennit.starter.commands.tools as it, sennit.__main__ as m\nit.run = None\nm.main(['tools'])"
    environment = {**os.environ, "SENNIT_DEBUG": debug}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("sennit: this is a defect of sennit: TypeError: ")
    assert ("Traceback" in ended.stderr) is bool(debug)


def test_a_reader_who_leaves_early_sees_no_traceback(tmp_path: Path) -> None:
    nodes = "".join(f"- {{id: n{n}, kind: tool, tool: t}}\n" for n in range(5000))
    (tmp_path / "plan.yaml").write_text(f"nodes:\n{nodes}answer: $n0\n")
    command = f"{sys.executable} -m sennit plan draw plan.yaml | head -n 1"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""


def test_the_module_and_the_script_are_one_command() -> None:
    assert sennit("--version").stdout == "sennit 0.1.0\n"


def test_help_is_quick_because_no_sdk_is_loaded() -> None:
    code = "import sys, sennit.__main__ as m; m.main(['--help']); sys.exit('temporalio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["list"],
        ["status", "r"],
        ["ask", "Which?"],
        ["finish", "r"],
        ["schedule", "list"],
        ["schedule", "run", "s"],
        ["schedule", "add", "s", "@daily", "--goal", "Which?"],
    ],
)
def test_a_missing_namespace_names_the_command_that_creates_it(
    argv: list[str], server_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--address", server_address, "--namespace", "no where"]
    assert main([*argv, *where]) == Exit.USAGE
    way = f"create it with: sennit setup --address {server_address} --namespace 'no where'"
    assert capsys.readouterr().err.splitlines()[-1] == f"sennit: Namespace no where is not found; {way}"
