"""`sennit approve RUN --edit-plan`: another plan from an editor or a file, and the question about it."""

import asyncio
import io
import shlex
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import until
from doubles.stores import store_in
from temporalio.client import Client, WorkflowHandle

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.errors import Exit, NoAnswer, NotAllowed, Refused
from sennit.starter.client.run import Run
from sennit.starter.commands import update
from sennit.starter.commands.command_line import parse
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.prompt import Typist
from sennit.workflows.messages.queues import WORKFLOW

pytestmark = pytest.mark.timeout(120)
PLAN = {"nodes": [{"id": "a", "kind": "tool", "tool": "nap", "args": {"value": "first"}}], "answer": "$a.value"}


@pytest.fixture
async def waiting(client: Client, tmp_path: Path) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """A run whose plan waits for approval."""
    paths = WorkerPaths(store_in(tmp_path / "store"), tmp_path, None, ())
    host = Activities(paths, load_tools(["doubles.tools"]), identity="tests", approval="never")
    async with serving(client, host):
        request = {"plan": PLAN, "approve_plan": True}
        name = f"w-{uuid.uuid4().hex[:8]}"
        handle = await client.start_workflow("AgentRun", request, id=name, task_queue=WORKFLOW)
        await until(handle, lambda view: bool(view["blocked"]))
        yield handle
        await handle.cancel()


async def test_an_editor_changes_the_plan_and_the_person_is_asked_again(
    waiting: WorkflowHandle[Any, Any],
    server_address: str,
    make_terminal: Callable[..., Terminal],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")

    async def yes(self: Typist, prompt: str) -> str | None:
        assert prompt == "run this plan? [y]es, [n]o, [n]o and what to do instead: "
        return "y"

    monkeypatch.setattr(Typist, "ask", yes)
    monkeypatch.setattr(Terminal, "has_person", True)
    words = ["--address", server_address, "approve", waiting.id, "--edit-plan"]
    terminal = make_terminal()
    with pytest.raises(Refused, match="the plan is as it was: nothing was changed"):
        await update.run(parse(words), terminal)

    with editor.open("a") as file:
        file.write("path.write_text(path.read_text().replace('first', 'edited'))\n")
    assert await update.run(parse(words), terminal) == Exit.ANSWER
    report = await asyncio.wait_for(waiting.result(), 60)
    assert (report["status"], report["answer"]) == ("done", "edited")


async def test_a_plan_that_another_person_has_edited_meanwhile_is_not_replaced(
    waiting: WorkflowHandle[Any, Any],
    server_address: str,
    make_terminal: Callable[..., Terminal],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one is told, and keeps the text."""
    other = tmp_path / "other.yaml"
    other.write_text("nodes:\n- {id: a, kind: tool, tool: nap, args: {value: theirs}}\n")
    words = ["--address", server_address, "approve", waiting.id, "--edit-plan"]

    def edited(text: str) -> str:
        mine = tmp_path / "mine.yaml"
        mine.write_text(text.replace("first", "mine"))
        command = [sys.executable, "-m", "sennit", *words, str(other)]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        return str(mine)

    monkeypatch.setattr("sennit.starter.commands.edit_plan._edited", edited)
    monkeypatch.setattr(Terminal, "has_person", True)
    terminal = make_terminal()
    with pytest.raises(NotAllowed, match="another one by now"):
        await update.run(parse(words), terminal)
    assert "mine" in (tmp_path / "mine.yaml").read_text()

    # Nor is it by the command that is named to send the text again.
    assert isinstance(terminal.err, io.StringIO)
    again = shlex.split(terminal.err.getvalue().partition("with: sennit ")[2].splitlines()[0])
    with pytest.raises(NotAllowed, match="another one by now"):
        await update.run(parse(["--address", server_address, *again]), make_terminal())
    [item] = (await waiting.query("plan"))["blocked"]
    assert 'nap "theirs"' in item["shown"]


async def test_the_text_of_a_person_is_kept_if_nobody_answers(
    waiting: WorkflowHandle[Any, Any],
    server_address: str,
    make_terminal: Callable[..., Terminal],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    editor, terminal = tmp_path / "editor.py", make_terminal()
    editor.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('first', 'edited'))\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    monkeypatch.setattr(Terminal, "has_person", True)

    async def silent(*_: Any, **_fields: Any) -> str:
        raise NoAnswer("no worker answers")

    monkeypatch.setattr(Run, "edit_plan", silent)
    with pytest.raises(NoAnswer):
        await update.run(parse(["--address", server_address, "approve", waiting.id, "--edit-plan"]), terminal)
    assert isinstance(terminal.err, io.StringIO)
    told = terminal.err.getvalue()
    kept = Path(told.partition("--edit-plan ")[2].split()[0])
    assert "your text is kept; look at the run" in told
    assert "edited" in kept.read_text()
    kept.unlink()


async def test_a_file_with_an_unknown_tool_changes_nothing(
    waiting: WorkflowHandle[Any, Any], server_address: str, make_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    file, terminal = tmp_path / "plan.yaml", make_terminal()
    words = ["--address", server_address, "approve", waiting.id, "--edit-plan", str(file)]
    file.write_text("nodes:\n- {id: a, kind: tool, tool: knap, args: {value: x}}\n")
    with pytest.raises(Refused, match="knap"):
        await update.run(parse(words), terminal)
    file.write_text("nodes:\n- {id: a, kind: tool, tool: nap, args: {value: second}}\nanswer: $b\n")
    with pytest.raises(Refused, match=r"plan\.yaml:3"):
        await update.run(parse(words), terminal)
    with pytest.raises(Refused, match="about the whole plan"):
        await update.run(parse([*words, "--set", "a=1"]), terminal)

    file.write_text(file.read_text().replace("$b", "$a.value"))
    with pytest.raises(NotAllowed, match="another one by now"):
        await update.run(parse([*words, "--digest", "1" * 20]), terminal)
    assert await update.run(parse(words), terminal) == Exit.ANSWER
    [item] = (await waiting.query("plan"))["blocked"]
    assert 'nap "second"' in item["shown"]
    words = ["--address", server_address, "reject", waiting.id, "--digest", str(item["example"]["digest"])]
    assert await update.run(parse([*words, "--reason", "no"]), terminal) == Exit.ANSWER
