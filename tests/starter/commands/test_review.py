"""`sennit edit` and `sennit fork` show first what they would do, and ask the person at the terminal."""

import json
import os
import re
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import until
from doubles.stores import store_in
from temporalio.client import Client
from temporalio.service import RPCError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.errors import Exit, NotAllowed
from sennit.starter.commands import run as run_command
from sennit.starter.commands import update
from sennit.starter.commands.command_line import parse
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import WORKFLOW

pytestmark = pytest.mark.timeout(120)
Make = Callable[..., Any]
OLD = """
async def main():
    await note(text="one")
    seen = await nap(value=1)
    await fail(message="no")
    return seen["value"]
"""
NEW = """
async def main():
    await note(text="one")
    seen = await nap(value=1)
    await note(text="two")
    return seen["value"] + (await nap(value=2))["value"]
"""
SAID = """\
dry run, nothing has been changed:
writes
  taken over  main_1  note:3 "one"  (written TIME)
  new         main_r2_3  note:5 "two"
other calls
  taken over  main_2  nap:4 1  (ended TIME)
in all: 2 taken over, 1 new
the run then waits for calls whose ends are not recorded: the rest is known when it happens
"""


@pytest.fixture
async def notes(client: Client, tmp_path: Path) -> AsyncIterator[Path]:
    """The file to which `note` writes on the workers of the test."""
    paths = WorkerPaths(store_in(tmp_path / "store"), tmp_path, None, ())
    host = Activities(paths, load_tools(["doubles.tools"]), identity="tests", approval="never")
    async with serving(client, host):
        yield tmp_path / "notes.txt"


def _blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


def _plain(said: str) -> str:
    """Return what a command said without times."""
    return re.sub(r"\d\d:\d\d:\d\d UTC", "TIME", said)


async def _begin(client: Client, plan: dict[str, Any], **fields: Any) -> Any:
    request = {"plan": plan, "approval": "never", **fields}
    return await client.start_workflow("AgentRun", request, id=f"r-{uuid.uuid4().hex[:8]}", task_queue=WORKFLOW)


def program(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


@pytest.fixture
async def run(client: Client, notes: Path) -> Any:
    """A run whose program has failed."""
    handle = await _begin(client, program(OLD))
    await until(handle, _blocked)
    return handle


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The new script."""
    (tmp_path / "new.py").write_text(NEW)
    return str(tmp_path / "new.py")


async def test_a_dry_run_of_an_edit_only_shows(
    run: Any, file: str, notes: Path, server_address: str, make_terminal: Make
) -> None:
    terminal = make_terminal()
    words = ["edit", run.id, file, "--dry-run", "--address", server_address]
    assert await update.run(parse(words), terminal) == Exit.ANSWER
    assert _plain(terminal.out.getvalue()) == SAID
    assert (await run.query("plan"))["status"] == "blocked"
    assert "one" in notes.read_text()
    assert "two" not in notes.read_text()
    terminal = make_terminal("json")
    assert await update.run(parse(words), terminal) == Exit.ANSWER
    told = json.loads(terminal.out.getvalue())
    assert told["counts"] == {"taken over": 2, "new": 1}
    assert [call["writes"] for call in told["calls"]] == [True, False, True]


@pytest.mark.parametrize(("typed", "code"), [(b"n\n", Exit.FAILED), (b"\x04", Exit.FAILED), (b"yes\n", Exit.ANSWER)])
async def test_an_edit_asks_the_person_at_the_terminal(
    run: Any, file: str, notes: Path, server_address: str, make_terminal: Make, typed: bytes, code: Exit
) -> None:
    terminal: Terminal = make_terminal(tty=True)
    keyboard, line = os.openpty()
    with os.fdopen(line) as terminal.stdin:
        os.write(keyboard, typed)
        assert await update.run(parse(["edit", run.id, file, "--address", server_address]), terminal) == code
    os.close(keyboard)
    said = _plain(terminal.err.getvalue())  # type: ignore[attr-defined]
    assert "taken over  main_1  note:3" in said
    assert "give main this script? [y]es, [n]o: " in said
    if code is Exit.ANSWER:
        assert (await run.result())["answer"] == 3
    else:
        assert "nothing was changed" in said
        assert (await run.query("plan"))["status"] == "blocked"
        assert "two" not in notes.read_text()


@pytest.mark.parametrize(("tty", "flags"), [(True, ["--yes"]), (False, [])])
async def test_an_edit_goes_on_with_yes_or_without_a_person(
    run: Any, file: str, server_address: str, make_terminal: Make, tty: bool, flags: list[str]
) -> None:
    terminal = make_terminal(tty=tty)
    assert await update.run(parse(["edit", run.id, file, *flags, "--address", server_address]), terminal) == 0
    assert "taken over  main_1" in terminal.err.getvalue()
    assert "this script?" not in terminal.err.getvalue()
    assert "main runs again with the new script" in terminal.out.getvalue()
    assert (await run.result())["answer"] == 3


async def test_a_script_that_the_run_refuses_is_refused_as_without_a_dry_run(
    run: Any, tmp_path: Path, server_address: str, make_terminal: Make
) -> None:
    (tmp_path / "wrong.py").write_text("async def main():\n    return await nop(value=1)\n")
    words = ["edit", run.id, str(tmp_path / "wrong.py"), "--address", server_address]
    with pytest.raises(NotAllowed, match="nop"):
        await update.run(parse(words), make_terminal())
    terminal = make_terminal()
    assert await update.run(parse([*words, "--dry-run"]), terminal) == Exit.USAGE
    assert "it would be refused" in terminal.out.getvalue()


async def test_a_person_is_not_asked_about_a_script_that_would_be_refused(
    run: Any, tmp_path: Path, server_address: str, make_terminal: Make
) -> None:
    """Nothing is sent either: nobody has agreed to it."""
    (tmp_path / "wrong.py").write_text("async def main():\n    return await nop(value=1)\n")
    terminal: Terminal = make_terminal(tty=True)
    words = ["edit", run.id, str(tmp_path / "wrong.py"), "--address", server_address]
    assert await update.run(parse(words), terminal) == Exit.USAGE
    said = _plain(terminal.err.getvalue())  # type: ignore[attr-defined]
    assert "it would be refused" in said
    assert "this script?" not in said


@pytest.mark.parametrize("flags", [["--dry-run"], ["--yes", "--quiet"]])
async def test_a_fork_shows_first_what_it_takes_over(
    client: Client, run: Any, file: str, notes: Path, server_address: str, make_terminal: Make, flags: list[str]
) -> None:
    await run.execute_update("finish", {})
    await run.result()
    name, terminal = f"{run.id}-fork", make_terminal()
    words = ["fork", run.id, "--with", file, "--id", name, *flags, "--repeat-writes", "--address", server_address]
    assert await run_command.run(parse(words), terminal) == Exit.ANSWER
    if "--dry-run" not in flags:
        assert terminal.out.getvalue() == "3\n"
        return
    assert _plain(terminal.out.getvalue()) == SAID.replace("_r2_", "_")
    assert "two" not in notes.read_text()
    with pytest.raises(RPCError, match="not found"):
        await client.get_workflow_handle(name).describe()


async def test_a_fork_of_a_plan_shows_the_nodes_that_run_again(
    client: Client, notes: Path, server_address: str, make_terminal: Make
) -> None:
    nodes = [
        {"id": "a", "kind": "tool", "tool": "nap", "args": {"value": 1}},
        {"id": "w", "kind": "tool", "tool": "note", "args": {"text": "kept $a.value"}},
        {"id": "f", "kind": "tool", "tool": "fail", "args": {"message": "no"}},
        {"id": "z", "kind": "tool", "tool": "nap", "args": {"value": "$f.value"}},
    ]
    handle = await _begin(client, {"nodes": nodes, "answer": ["$w", "$z"]}, on_failure="partial")
    await handle.result()
    terminal = make_terminal("json")
    words = ["fork", handle.id, "--dry-run", "--address", server_address]
    assert await run_command.run(parse(words), terminal) == Exit.ANSWER
    told = {call["node"]: call for call in json.loads(terminal.out.getvalue())["calls"]}
    assert {name: call["fate"] for name, call in told.items()} == {
        "a": "taken over",
        "w": "taken over",
        "f": "made again",
    }
    assert told["w"]["writes"]
    assert told["f"]["why"] == "it had failed: ToolError: no"


async def test_a_fork_of_a_plan_says_what_a_person_has_answered_or_skipped(
    client: Client, notes: Path, server_address: str, make_terminal: Make
) -> None:
    nodes = [
        {"id": "f", "kind": "tool", "tool": "fail", "args": {"message": "no"}},
        {"id": "s", "kind": "tool", "tool": "fail", "args": {"message": "never"}},
    ]
    handle = await _begin(client, {"nodes": nodes, "answer": ["$f", "$s"]}, on_failure="park")
    await until(handle, lambda view: len(view["blocked"]) == 2)
    await handle.execute_update("answer", {"node": "f", "value": 1})
    await handle.execute_update("skip_node", {"node": "s"})
    await handle.result()
    terminal = make_terminal("json")
    words = ["fork", handle.id, "--dry-run", "--address", server_address]
    assert await run_command.run(parse(words), terminal) == Exit.ANSWER
    told = {call["node"]: call for call in json.loads(terminal.out.getvalue())["calls"]}
    assert {name: (call["fate"], call["why"]) for name, call in told.items()} == {
        "f": ("made again", "a person has answered it, and a fork of a plan does not take that over"),
        "s": ("made again", "it was skipped"),
    }
