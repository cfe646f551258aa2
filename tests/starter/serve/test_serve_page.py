"""docs/serve.md as its reader follows it: the client there, on a local stack, and the person who answers its run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")
from doubles.cli_user import cli_user

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANSWER = ("answer", "pick-a-river", "choice", "Nile")


@pytest.mark.server
@pytest.mark.timeout(240)
def test_the_session_on_the_page_goes_as_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "serve.md").read_text()
    (_, script), (_, pasted) = BLOCK.findall(page)
    assert "sennit " + " ".join(ANSWER) in page
    (tmp_path / "agent.py").write_text(script)
    with cli_user(tmp_path / "state") as person:
        env = {**person.env, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, str(tmp_path / "agent.py")]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout is not None
            written = ""
            for line in agent.stdout:
                written += line
                if line.startswith("for the person:"):
                    answered = person.sennit(*ANSWER)
                    assert answered.returncode == 0, answered.stderr
        assert agent.returncode == 0
    assert written == pasted
