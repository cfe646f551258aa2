"""The `sennit` command with a tool that fails, is mended, and is retried on the local stack that has the old one."""

import json
from pathlib import Path

import pytest
from doubles.cli_user import cli_user

from sennit.starter.client.errors import Exit

pytestmark = [pytest.mark.server, pytest.mark.timeout(400)]
TOOL = """\
from sennit import ToolError, tool


@tool(effect="read")
def shout(text: str) -> str:
    \"\"\"Return a text in capitals.\"\"\"
    raise ToolError("not written yet")
"""


def plan_of(place: Path, tool: str, text: str = "ho") -> str:
    file = place / "plan.json"
    nodes = [{"id": "s", "kind": "tool", "tool": tool, "args": {"text": text}}]
    file.write_text(json.dumps({"nodes": nodes, "answer": "$s"}))
    return str(file)


def test_a_retry_runs_the_mended_tool_and_an_id_keeps_its_request(tmp_path: Path) -> None:
    """Nothing is started for a plan that `plan check` refuses: its id stays free."""
    module = tmp_path / "loud.py"
    module.write_text(TOOL)
    state = tmp_path / "state"
    with cli_user(state, SENNIT_TOOLS="loud", SENNIT_TOOLS_PATH=str(tmp_path)) as person:
        refused = person.sennit("run", plan_of(tmp_path, "shouts"), "--id", "loud")
        assert refused.returncode == Exit.USAGE
        assert "there is no tool `shouts`; did you mean `shout`?" in refused.stderr
        assert not (state / "temporal.db").exists()

        failed = person.sennit("run", plan_of(tmp_path, "shout"), "--id", "loud")
        assert failed.returncode == Exit.OPEN
        assert "not written yet" in failed.stderr
        module.write_text(TOOL.replace('raise ToolError("not written yet")', "return text.upper()"))
        retried = person.sennit("retry", "loud")
        assert retried.returncode == Exit.ANSWER
        assert "code or settings have changed: restarting the local stack" in retried.stderr
        assert person.sennit("watch", "loud", "--wait").stdout == "HO\n"

        assert person.sennit("run", plan_of(tmp_path, "shout"), "--id", "loud").stdout == "HO\n"
        other = person.sennit("run", plan_of(tmp_path, "shout", "hi"), "--id", "loud")
        assert other.returncode == Exit.USAGE
        assert "the id loud belongs to the run 'plan', and this asks for 'plan' (they differ in plan)" in other.stderr
