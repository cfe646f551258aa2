"""Runs that work in folders: from a person's folder through calls, branches and programs to a patch."""

import asyncio
import errno
import json
import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start, serving, starting
from doubles.model_bench import KEY
from doubles.runs import status_of, until
from doubles.sandboxes import sandbox_of
from doubles.worker_processes import WorkerProcesses
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.llm.models import Models
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs import attachments
from sennit.activities.sandbox.folders import Folder
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.toolbox import Registry, Tool, ToolContext, Workspace, load_tools, tool
from sennit.starter.client.request import script_of
from sennit.starter.dev.server import DevServer
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.messages import queues
from sennit.workflows.plan.programs.program_plan import program_plan

LIBRARY = Path(__file__).parents[2] / "examples" / "programs"
REPO = {"repo": {"type": "object"}}


own = Registry()


@tool(effect="read", registry=own)
def stamp(workspace: Workspace, context: ToolContext) -> Workspace:
    """Write a file into a workspace."""
    with tempfile.TemporaryDirectory() as folder:
        context.workspaces.write_to(Path(folder), workspace)
        Path(folder, "stamp").write_text(context.node)
        return context.workspaces.keep_from(Path(folder), workspace)


@tool(effect="read", registry=own)
def look(workspace: Workspace) -> Workspace | None:
    """Look at a workspace, and leave none."""
    assert workspace.files
    return None


@pytest.fixture(scope="module")
def tools() -> Iterator[list[Tool]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield [*code_tools(sandbox_of("auto", Path(folder))), *own]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(key=KEY, models=("first",)) as found:
        yield found


@pytest.fixture
async def models(server: ModelServer) -> AsyncIterator[Models]:
    found = Models.of(
        ModelSettings.read(
            {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": KEY, "SENNIT_MODEL": "openai:first"}
        )
    )
    yield found
    await found.close()


@pytest.fixture
async def run(
    client: Client, artifacts: Path, cache: Path, tmp_path: Path, tools: list[Tool], models: Models
) -> AsyncIterator[Start]:
    """Serve all queues with a sandbox, and give a way to start runs, which may read the test's folder."""
    paths = WorkerPaths(artifacts, cache, None, (tmp_path,))
    host = Activities(paths, load_tools(["doubles.tools"], (), tools), models, identity="tests", approval="never")
    async with serving(client, host), starting(client) as start:
        yield start


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """A folder whose tests fail."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "add.py").write_text("def add(a, b): return a - b\n")
    (folder / "test.py").write_text("from add import add\nassert add(2, 3) == 5\n")
    return str(folder)


def shell(name: str, command: str, workspace: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "tool", "tool": "shell", "args": {"command": command, "workspace": workspace, **more}}


async def test_calls_hand_a_folder_on_and_a_map_has_a_branch_for_each_item(run: Start, repo: str) -> None:
    attempt = shell("fix", "sed -i s/-/$(cat ../data.json)/ add.py", "$input.repo", data="$item")
    check = shell("", "python3 -B test.py", "$fix.workspace")
    del check["id"]
    plan = {
        "inputs": {**REPO, "signs": {"type": "array"}},
        "nodes": [
            {"id": "m", "kind": "map", "over": "$input.signs", "do": [attempt, check]},
            shell("kept", "cat add.py", "$m[1].workspace"),
            shell("first", "cat add.py", "$input.repo"),
        ],
        "answer": ["$m[0].exit_code", "$m[1].exit_code", "$m[2].exit_code", "$kept.stdout", "$first.stdout"],
    }
    handle = await run(plan=plan, inputs={"signs": [0, 1, 2]}, attachments={"repo": repo})
    codes = (await handle.result())["answer"]
    assert codes == [1, 1, 1, "def add(a, b): return a 1 b\n", "def add(a, b): return a - b\n"]


async def test_a_tool_of_ones_own_works_in_a_folder(run: Start, repo: str) -> None:
    nodes = [
        {"id": "s", "kind": "tool", "tool": "stamp", "args": {"workspace": "$input.repo"}},
        shell("end", "cat stamp; ls", "$s"),
    ]
    handle = await run(plan={"inputs": REPO, "nodes": nodes, "answer": "$end.stdout"}, attachments={"repo": repo})
    assert (await handle.result())["answer"] == "sadd.py\nstamp\ntest.py\n"


async def test_what_cannot_be_kept_is_refused_before_anything_starts(run: Start, repo: str) -> None:
    Path(repo, "passwd").symlink_to("/etc/passwd")
    with pytest.raises(WorkflowFailureError) as refused:
        await (
            await run(plan={"inputs": REPO, "nodes": [shell("a", "ls", "$input.repo")]}, attachments={"repo": repo})
        ).result()
    assert "passwd is a link" in str(refused.value.cause)
    with pytest.raises(WorkflowFailureError) as refused:
        await (await run(goal="Mend it", attachments={"file_01": repo})).result()
    assert "a goal takes files" in str(refused.value.cause)


async def test_a_folder_that_changes_while_it_is_read_ends_the_run_with_a_sentence(
    run: Start, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(_place: Path) -> Folder:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "index.lock")

    monkeypatch.setattr(attachments, "folder_at", changing)
    handle = await run(plan={"inputs": REPO, "nodes": [shell("a", "ls", "$input.repo")]}, attachments={"repo": repo})
    async with asyncio.timeout(30):
        with pytest.raises(WorkflowFailureError) as refused:
            await handle.result()
    assert f"attached folder {repo} cannot be read: No such file or directory" in str(refused.value.cause)


async def test_a_program_goes_on_in_what_its_calls_leave(run: Start, repo: str) -> None:
    script = """
async def main(repo):
    fixed = await shell(command="sed -i s/-/+/ add.py && python3 -B test.py", workspace=repo)
    again = await shell(command="cat add.py", workspace=fixed["workspace"])
    return [fixed["exit_code"], fixed["changed"], again["stdout"], again["workspace"] == fixed["workspace"]]
"""
    handle = await run(
        plan={
            "inputs": REPO,
            "nodes": [{"id": "p", "kind": "program", "script": script, "arguments": {"repo": "$input.repo"}}],
        },
        attachments={"repo": repo},
    )
    assert (await handle.result())["answer"] == [0, ["add.py"], "def add(a, b): return a + b\n", True]


async def test_a_fork_goes_on_from_the_folder_as_it_was(run: Start, repo: str) -> None:
    def plan(command: str) -> dict[str, Any]:
        nodes = [
            shell("fix", "sed -i s/-/+/ add.py; date +%N > when", "$input.repo"),
            shell("check", command, "$fix.workspace"),
        ]
        return {"inputs": REPO, "nodes": nodes, "answer": ["$check.stdout", "$fix.workspace"]}

    handle = await run(plan=plan("cat when"), attachments={"repo": repo})
    when, workspace = (await handle.result())["answer"]
    Path(repo, "add.py").write_text("another time\n")

    origin = (await handle.describe()).raw_description.workflow_execution_info.first_run_id
    fork = await run(plan=plan("cat add.py when"), attachments={"repo": repo}, origins=[origin])
    assert (await fork.result())["answer"] == [f"def add(a, b): return a + b\n{when}", workspace]


async def test_a_person_repairs_one_call_of_a_chain_from_where_it_began(run: Start, repo: str) -> None:
    nodes = [
        shell("fix", "echo >> log; date +%N > when", "$input.repo"),
        shell("check", "cat when; grep -c '' log", "$fix.workspace"),
        {"id": "ok", "kind": "gate", "question": "Is it right? $check.stdout", "schema": {"type": "boolean"}},
    ]
    plan = {"inputs": REPO, "nodes": nodes, "answer": "$check.stdout"}
    handle = await run(plan=plan, attachments={"repo": repo})
    before = _asked(await until(handle, lambda view: bool(_asked(view))))
    await handle.execute_update("retry_node", {"node": "fix"})
    after = _asked(await until(handle, lambda view: _asked(view) not in ("", before)))
    assert after.endswith(" 1"), "the second attempt began with the person's folder, not with what the first had left"
    await handle.execute_update("answer", {"node": "ok", "value": True})
    assert " ".join((await handle.result())["answer"].split()) == after


def _asked(view: dict[str, Any]) -> str:
    """Return the nanoseconds and the lines that the open question names."""
    found = re.search(r"Is it right\? (\d{9})\\+n(\d)", json.dumps(view))
    return " ".join(found.groups()) if found is not None else ""


async def test_the_successor_of_a_killed_worker_goes_on_from_what_was_recorded(
    client: Client, dev_server: DevServer, tmp_path: Path, repo: str
) -> None:
    nodes = [shell("a", "echo a >> log", "$input.repo")]
    nodes += [shell(name, f"echo {name} >> log; sleep 3", f"${before}.workspace") for before, name in ("ab", "bc")]
    plan = {"inputs": REPO, "nodes": [*nodes, shell("end", "cat log", "$c.workspace")], "answer": "$end.stdout"}
    processes = WorkerProcesses(dev_server.address, tmp_path / "state")
    try:
        processes.start("workflow", "tools")
        (first,) = processes.start("sandbox")
        handle = await client.start_workflow(
            "AgentRun", {"plan": plan, "attachments": {"repo": repo}}, id="agent-killed", task_queue=queues.WORKFLOW
        )
        await until(handle, lambda view: status_of(view, "b") == "running")
        await asyncio.sleep(1.5)
        processes.kill(first)
        processes.start("sandbox")
        assert (await handle.result())["answer"] == "a\nb\nc\n"
    finally:
        processes.kill()


def mends(asked: Asked) -> Reply:
    """Work in a folder for three turns: one call, two at once of which the first is stopped, and one more."""
    turns = [text for role, text in asked.turns if role == "tool"]
    commands = {0: ["echo 1 >> log"], 1: ["echo x >> log; sleep 9", "echo x >> log"], 3: ["echo 2 >> log"]}
    if len(turns) not in commands:
        return Reply("Done.")
    return Reply(calls=tuple(Call("shell", {"command": each, "timeout_s": 2}) for each in commands[len(turns)]))


WORKER = {"id": "w", "kind": "llm", "prompt": "Mend it.", "tools": ["shell", "diff"], "workspace": "$input.repo"}


async def test_a_model_with_tools_works_in_one_folder_turn_by_turn(run: Start, server: ModelServer, repo: str) -> None:
    server.on("Mend it", mends)
    plan = {
        "inputs": REPO,
        "nodes": [WORKER, shell("end", "cat log", "$w.workspace")],
        "answer": ["$w.answer", "$end.stdout"],
    }
    handle = await run(plan=plan, attachments={"repo": repo})
    assert (await handle.result())["answer"] == ["Done.", "1\n2\n"]
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in server.asked[0].body["tools"]}
    assert {name: "workspace" in schema["properties"] for name, schema in offered.items()} == {
        "diff": False,
        "shell": False,
    }


@pytest.mark.parametrize("kind", [{"kind": "llm", "prompt": "Mend it."}, {"kind": "agent", "goal": "Mend it."}])
async def test_a_model_without_a_folder_is_not_asked(run: Start, server: ModelServer, kind: dict[str, Any]) -> None:
    node = {"id": "w", **kind, "tools": ["shell"], "workspace": "$input.repo"}
    plan = {"inputs": REPO, "nodes": [node], "answer": "$w"}
    handle = await run(plan=plan, inputs={"repo": {"a": 1}}, on_failure="fail")
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert r"`workspace`: $input.repo is no workspace; attach a folder" in str(caught.value.cause)
    assert server.asked == []


def looks(asked: Asked) -> Reply:
    """Look at the folder, write into it, and say that it is done."""
    replies = [
        Reply("Done."),
        Reply(calls=(Call("shell", {"command": "touch seen"}),)),
        Reply(calls=(Call("look", {}),)),
    ]
    for role, _ in asked.turns:
        if role == "tool":
            replies.pop()
    return replies[-1]


async def test_a_call_that_leaves_no_folder_leaves_the_model_its_own(
    run: Start, server: ModelServer, repo: str
) -> None:
    server.on("Mend it", looks)
    plan = {
        "inputs": REPO,
        "nodes": [{**WORKER, "tools": ["look", "shell"]}, shell("end", "ls", "$w.workspace")],
        "answer": "$end.stdout",
    }
    handle = await run(plan=plan, attachments={"repo": repo})
    assert (await handle.result())["answer"] == "add.py\nseen\ntest.py\n"


def finds_the_sign(asked: Asked) -> Reply:
    """Put another sign into the code in each branch, look at it, and say so."""
    results = [text for role, text in asked.turns if role == "tool"]
    sign = {"smallest": "*", "Read the": "/", "Write a": "+"}.get(next(iter(WAY.findall(asked.text)), ""), "-")
    if not results:
        return Reply(calls=(Call("shell", {"command": f"sed -i 's,-,{sign},' add.py"}),))
    if len(results) == 1:
        return Reply(calls=(Call("shell", {"command": "cat add.py"}),))
    return Reply(f"It was {sign}.")


WAY = re.compile("smallest|Read the|Write a")


async def test_agents_work_on_branches_and_the_first_whose_tests_pass_wins(
    run: Start, server: ModelServer, repo: str
) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=repo, check=True)
    server.on("Work in the folder", finds_the_sign)
    inputs = {"goal": "add adds wrongly", "tests": "python3 -B test.py", "branches": 3}
    plan = program_plan(script_of(LIBRARY / "branches.py"), {**inputs, "repo": repo})
    handle = await run(plan=plan, inputs=inputs, attachments={"repo": repo})
    patch = (await handle.result())["answer"]
    assert patch.endswith("-def add(a, b): return a - b\n+def add(a, b): return a + b\n")
    assert "a - b" in Path(repo, "add.py").read_text(), "the person's folder is as it was"
    subprocess.run(["git", "apply"], cwd=repo, input=patch.encode(), check=True)
    assert "a + b" in Path(repo, "add.py").read_text()


def writes_its_item(asked: Asked) -> Reply:
    """Write the item that it is asked about into a file, and say that it is done."""
    if any(role == "tool" for role, _ in asked.turns):
        return Reply("Done.")
    item = next(iter(re.findall(r"^[xy]$", asked.text, re.MULTILINE)), "none")  # it stands in a fence of its own
    return Reply(calls=(Call("shell", {"command": f"echo {item} > item"}),))


AGENT = {"kind": "agent", "goal": "Write $item down", "tools": ["shell"], "workspace": "$input.repo"}
MODEL = {"kind": "llm", "prompt": "Write $item down", "tools": ["shell"], "workspace": "$input.repo"}


@pytest.mark.parametrize("do", [AGENT, MODEL], ids=["agent", "llm"])
async def test_each_item_of_a_map_has_a_branch_in_a_run_of_its_own(
    run: Start, server: ModelServer, repo: str, do: dict[str, Any]
) -> None:
    server.on("Write", writes_its_item)
    plan = {
        "inputs": {**REPO, "items": {"type": "array"}},
        "nodes": [
            {"id": "m", "kind": "map", "over": "$input.items", "do": do},
            shell("a", "cat item; ls", "$m[0].workspace"),
            shell("b", "cat item", "$m[1].workspace"),
        ],
        "answer": ["$m[0].answer", "$a.stdout", "$b.stdout"],
    }
    handle = await run(plan=plan, inputs={"items": ["x", "y"]}, attachments={"repo": repo})
    assert (await handle.result())["answer"] == ["Done.", "x\nadd.py\nitem\ntest.py\n", "y\n"]


async def test_a_model_that_makes_up_a_folder_gets_none(run: Start, server: ModelServer, repo: str) -> None:
    made_up = {"workspace": "0" * 40, "files": 1, "bytes": 1}
    forged = Reply(calls=(Call("shell", {"command": "ls", "workspace": made_up}),))
    server.on("Look", lambda asked: Reply("None.") if any(role == "tool" for role, _ in asked.turns) else forged)
    plan = {"nodes": [{"id": "w", "kind": "llm", "prompt": "Look around.", "tools": ["shell"]}]}
    assert (await (await run(plan=plan)).result())["answer"] == "None."
    said = next(text for role, text in server.asked[1].turns if role == "tool")
    assert "no body" in said or "BodyMissing" in said
