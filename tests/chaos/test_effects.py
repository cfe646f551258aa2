"""A worker dies between an effect and its outcome. The effect is not repeated; a person is asked, and decides."""

from pathlib import Path

import pytest
from doubles.runs import call, insist, until
from doubles.tools import posts
from doubles.worker_processes import WorkerProcesses

from starter.dev.server import DevServer
from workflows.messages import queues
from workflows.messages.converter import connect

pytestmark = [pytest.mark.server, pytest.mark.chaos]


async def test_a_write_cut_off_by_a_kill_is_not_repeated(dev_server: DevServer, tmp_path: Path) -> None:
    """Two runs lose their worker at once; one is told to write again, the other to go on without."""
    write = call("w", "post", args={"text": "paid", "after": "hang"}, timeout="15s")
    plan = {"nodes": [write, call("z")], "answer": ["$w", "$z"]}
    given = {"plan": plan, "approval": "never"}
    again, without = {"node": "w", "repeat_effect": True}, {"node": "w"}
    expected = {"retry_node": (again, "done", 2), "skip_node": (without, "partial", 1)}
    processes = WorkerProcesses(dev_server.address, tmp_path / "state")
    try:
        client = await connect(dev_server.address)
        (doomed,) = processes.start("tools")
        processes.start("workflow")
        handles = {
            update: await client.start_workflow("AgentRun", given, id=f"agent-{update}", task_queue=queues.WORKFLOW)
            for update in expected
        }
        for handle in handles.values():
            run = handle.first_execution_run_id or ""
            await processes.until_called(run, "w", "z")
            await until(handle, lambda _, run=run: posts(processes.index, run) == ["paid"])  # type: ignore[misc]
        processes.kill(doomed)
        processes.start("tools")
        for update, handle in handles.items():
            run = handle.first_execution_run_id or ""
            view = await until(handle, lambda view: bool(view["status"] == "blocked"), limit=60)
            (line,) = [line for line in view["nodes"] if line["id"] == "w"]
            assert line["error"].startswith("UnknownOutcome: post: an earlier attempt to write")
            assert (posts(processes.index, run), processes.calls(run).count("w~1")) == (["paid"], 1)
            order, status, in_all = expected[update]
            await insist(handle, update, order)
            assert (await handle.result())["status"] == status
            assert posts(processes.index, run) == ["paid"] * in_all
    finally:
        processes.kill()
