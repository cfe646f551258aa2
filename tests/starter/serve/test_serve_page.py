"""docs/serve.md as its reader follows it: the client there, on a local stack, and the person who answers its run."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")
from doubles.cli_user import cli_user
from doubles.serve_process import http_server

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANSWER = ("answer", "pick-a-river", "choice", "Nile")


@pytest.mark.server
@pytest.mark.timeout(240)
def test_the_session_on_the_page_goes_as_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "serve.md").read_text()
    *_, (_, script), (_, pasted) = BLOCK.findall(page)
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


@pytest.mark.server
@pytest.mark.timeout(240)
def test_the_client_of_a2a_on_the_page_gets_the_answer(tmp_path: Path) -> None:
    """How often the client hears of progress depends on the machine; how it ends does not."""
    pytest.importorskip("a2a", reason="needs the extra a2a")
    page = (ROOT / "docs" / "serve.md").read_text()
    (_, script), (_, pasted), *_ = BLOCK.findall(page)
    with cli_user(tmp_path / "state") as person:
        written = asyncio.run(written_by(script, tmp_path, person.env))
    assert written.splitlines()[-2:] == pasted.splitlines()[-2:]


async def written_by(script: str, folder: Path, env: Mapping[str, str]) -> str:
    """Return what a client writes that is written for another port."""
    flags = ("--http", "0", "--docs", str(ROOT / "examples" / "corpus"))
    async with http_server(folder, *flags, protocol="--a2a", **env) as url:
        (folder / "client.py").write_text(script.replace("http://127.0.0.1:8766", url.removesuffix("/a2a")))
        command = (sys.executable, str(folder / "client.py"))
        client = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        written, _ = await client.communicate()
    assert client.returncode == 0
    return written.decode()
