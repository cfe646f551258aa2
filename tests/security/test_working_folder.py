"""Files in the current folder that are named like modules: no command may run them."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (["tools"], ["plan", "check", "plan.yaml"], ["worker", "no-such-role"])
PLAN = "nodes:\n- {id: a, kind: tool, tool: calculate, args: {expression: '1'}}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_modules_of_the_current_folder_are_not_run(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    for name in ("workers", "activities", "starter", "structlog", "temporalio", "json"):
        (tmp_path / f"{name}.py").write_text("open('owned', 'w').close()\n")
    sennit = Path(sys.executable).with_name("sennit")
    done = subprocess.run([sennit, *command], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert not (tmp_path / "owned").exists()
    assert done.returncode == (2 if command[0] == "worker" else 0), done.stderr
