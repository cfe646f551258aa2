"""`python` and `shell`: what goes in, what comes out. What must not come out is in tests/security."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import call
from doubles.sandboxes import sandbox_of
from doubles.stores import store_in
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.limits import MAX_SANDBOX_CHARACTERS, MAX_SANDBOX_SECONDS
from sennit.activities.sandbox.output_files import MAX_SANDBOX_FILES
from sennit.activities.sandbox.tools import code_tools
from sennit.activities.toolbox import Tool, ToolArgumentError, ToolContext, ToolError, load_tools
from sennit.activities.toolbox.errors import SandboxLimit, ToolResultError
from sennit.workflows.messages import queues


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, Tool]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        found = code_tools(sandbox_of("auto", Path(folder)))
        yield {each.name: each for each in found}


async def python(tools: dict[str, Tool], context: ToolContext, code: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = await tools["python"].call({"code": code, **more}, context)
    return result


async def test_data_goes_in_and_the_result_comes_out(tools: dict[str, Tool], context: ToolContext) -> None:
    done = await python(tools, context, "result = {'sum': sum(data), 'of': len(data)}\nprint('hé')", data=[1, 2, 3.5])
    assert done == {
        "exit_code": 0, "stdout": "hé\n", "stderr": "", "files": {}, "left_out": [], "truncated": False,
        "result": {"sum": 6.5, "of": 3},
    }  # fmt: skip


async def test_files_go_in_and_new_ones_come_out(tools: dict[str, Tool], context: ToolContext) -> None:
    code = """
import lib.twice, pathlib
pathlib.Path('out').mkdir()
open('out/a.txt', 'w').write(lib.twice.twice(open('in.txt').read()))
open('raw.bin', 'wb').write(b'\\0')
"""
    given = {"in.txt": "ab", "lib/twice.py": "def twice(text): return text * 2"}
    done = await python(tools, context, code, files=given)
    assert (done["exit_code"], done["files"], done["left_out"], done["result"]) == (
        0, {"out/a.txt": "abab"}, ["raw.bin"], None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "exit_code", "expected"),
    [
        ("1 / 0", 1, 'File "main.py", line 1, in <module>\n    1 / 0'),
        ("def f(:", 1, 'File "main.py", line 1\n    def f(:'),
        ("raise SystemExit(7)", 7, ""),
        ("import os; os.abort()", 134, ""),
        ("result = object()", 1, "not JSON serializable"),
    ],
)
async def test_code_that_fails_says_where(
    tools: dict[str, Tool], context: ToolContext, code: str, exit_code: int, expected: str
) -> None:
    done = await python(tools, context, code)
    assert done["exit_code"] == exit_code
    assert expected in done["stderr"]


async def test_what_is_no_answer_is_an_error(tools: dict[str, Tool], context: ToolContext) -> None:
    with pytest.raises(SandboxLimit, match=r"^stopped after 1 s; it had written: going"):
        await python(tools, context, "print('going', flush=True)\nwhile True: pass", timeout_s=1)
    with pytest.raises(ToolResultError, match="longer than 1,000,000"):
        await python(tools, context, "result = 'x' * 2_000_000")
    with pytest.raises(ToolError, match="JSON"):
        await python(tools, context, "result = float('nan')")
    with pytest.raises(ToolResultError, match="not a JSON value"):
        await python(tools, context, "open('result.json', 'w').write('[' * 100_000)")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a//b", "x\0", "./a", "a\nb", "a\x1b"])
async def test_a_file_cannot_be_put_elsewhere(tools: dict[str, Tool], context: ToolContext, name: str) -> None:
    with pytest.raises(ToolArgumentError, match="is not a "):
        await python(tools, context, "1", files={name: "x"})
    with pytest.raises(ToolArgumentError, match="below another file"):
        await python(tools, context, "1", files={"a": "x", "a/b": "x"})


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"timeout_s": MAX_SANDBOX_SECONDS + 1}, "120"),
        ({"files": {f"{n}": "" for n in range(MAX_SANDBOX_FILES + 1)}}, "50"),
        ({"files": {"a": "x" * MAX_SANDBOX_CHARACTERS, "b": "x"}}, "more than 1,000,000 characters in all"),
        ({"files": {"x" * 201: ""}}, "is not a relative path"),
        ({"code": "x" * 100_001}, "100,?000"),
    ],
)
async def test_what_goes_in_is_bounded(
    tools: dict[str, Tool], context: ToolContext, more: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolArgumentError, match=problem):
        await tools["python"].call({"code": "1", **more}, context)


async def test_a_shell_command_runs_likewise(tools: dict[str, Tool], context: ToolContext) -> None:
    done = await tools["shell"].call(
        {"command": "tr a-z A-Z < in.txt | tee out.txt; exit 3", "files": {"in.txt": "abc\n"}}, context
    )
    assert (done["exit_code"], done["stdout"], done["files"]) == (3, "ABC\n", {"out.txt": "ABC\n"})


async def test_a_plan_runs_code_on_the_sandbox_queue(client: Client, tmp_path: Path, tools: dict[str, Tool]) -> None:
    registry = load_tools(["doubles.tools"], (), tools.values())
    assert {each["name"]: each["queue"] for each in registry.catalogue()}["python"] == queues.SANDBOX
    host = Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", None, ()), registry, identity="tests")
    shout = {"kind": "tool", "tool": "shell", "args": {"command": "printf x$(cat data.json)", "data": "$item.n"}}
    plan = {
        "nodes": [
            call("n", "count", args={"count": 4}),
            call("p", "python", args={"code": "result = sum(item['n'] for item in data)", "data": "$n.items"}),
            {"id": "m", "kind": "map", "over": "$n.items", "as": "item", "do": shout},
        ],
        "answer": ["$p.result", "$m[3].stdout"],
    }
    async with serving(client, host):
        handle = await client.start_workflow("AgentRun", {"plan": plan}, id="agent-code", task_queue=queues.WORKFLOW)
        assert (await handle.result())["answer"] == [6, "x3"]
        used = [
            (event.activity_task_scheduled_event_attributes.activity_id,
             event.activity_task_scheduled_event_attributes.task_queue.name)
            async for event in handle.fetch_history_events()
            if event.HasField("activity_task_scheduled_event_attributes")
        ]  # fmt: skip
    queue = dict(used)
    assert (queue["n"], queue["p"], queue["m[0]"]) == (queues.TOOLS, queues.SANDBOX, queues.SANDBOX)
