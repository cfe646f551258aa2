"""`sennit edit` and `sennit fork` ask about a write with another text, unless `--repeat-writes` is given."""

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import until
from doubles.stores import store_in
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.errors import Exit
from sennit.starter.commands import run as run_command
from sennit.starter.commands import update
from sennit.starter.commands.command_line import parse
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import WORKFLOW

pytestmark = pytest.mark.timeout(120)
SCRIPT = """
async def main():
    await note(text="TEXT")
    return (await END)["value"]
"""
FAILS, ENDS = 'fail(message="no")', "nap(value=7)"
FLAGS = [[], ["--repeat-writes"]]


@pytest.fixture
async def written(client: Client, tmp_path: Path) -> AsyncIterator[Path]:
    """The file to which `note` writes on the workers of the test."""
    paths = WorkerPaths(store_in(tmp_path / "store"), tmp_path, None, ())
    host = Activities(paths, load_tools(["doubles.tools"]), identity="tests", approval="never")
    async with serving(client, host):
        yield tmp_path / "notes.txt"


def _script(text: str, end: str) -> str:
    return SCRIPT.replace("TEXT", text).replace("END", end)


def _blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


def _asks(view: dict[str, Any]) -> bool:
    return _blocked(view) and view["blocked"][0]["why"] == "approval"


def _texts(notes: Path) -> list[str]:
    return [line.split()[-1] for line in notes.read_text().splitlines()]


async def _begin(client: Client, end: str) -> Any:
    plan = {"nodes": [{"id": "main", "kind": "program", "script": _script("old", end)}], "answer": "$main"}
    request = {"plan": plan, "approval": "never"}
    return await client.start_workflow("AgentRun", request, id=f"w-{uuid.uuid4().hex[:8]}", task_queue=WORKFLOW)


@pytest.mark.parametrize("flags", FLAGS)
async def test_an_edit(
    client: Client,
    server_address: str,
    tmp_path: Path,
    make_terminal: Callable[..., Terminal],
    written: Path,
    flags: list[str],
) -> None:
    run = await _begin(client, FAILS)
    await until(run, _blocked)
    (tmp_path / "new.py").write_text(_script("new", ENDS))
    words = ["edit", run.id, str(tmp_path / "new.py"), *flags, "--address", server_address]
    assert await update.run(parse(words), make_terminal()) == Exit.ANSWER
    if flags:
        assert (await run.result())["answer"] == 7
        assert _texts(written) == ["old", "new"]
        return
    view = await until(run, _asks)
    assert "Write this as well?" in view["blocked"][0]["shown"]
    assert _texts(written) == ["old"]
    await run.terminate()


@pytest.mark.parametrize("flags", FLAGS)
async def test_a_fork(
    client: Client,
    server_address: str,
    tmp_path: Path,
    make_terminal: Callable[..., Terminal],
    written: Path,
    flags: list[str],
) -> None:
    run = await _begin(client, ENDS)
    await run.result()
    (tmp_path / "new.py").write_text(_script("new", ENDS))
    name = f"{run.id}-again"
    words = ["fork", run.id, "--with", str(tmp_path / "new.py"), "--id", name, *flags, "--address", server_address]
    ended = await run_command.run(parse(words), make_terminal())
    if flags:
        assert ended == Exit.ANSWER
        assert _texts(written) == ["old", "new"]
        return
    assert ended == Exit.OPEN
    fork = client.get_workflow_handle(name)
    assert "Write this as well?" in (await until(fork, _asks))["blocked"][0]["shown"]
    assert _texts(written) == ["old"]
    await fork.terminate()
