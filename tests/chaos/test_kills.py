"""Processes die by SIGKILL in the middle of runs. The runs finish, and what had ended is not done again."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chaos.histories import replayed
from chaos.queries import Onlooker
from doubles.runs import View, call, status_of, until
from doubles.worker_processes import WorkerProcesses
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

pytestmark = [pytest.mark.server, pytest.mark.chaos]
LIMIT = 100.0
GATHERED = """
import asyncio

async def main():
    first = await nap(value="a")
    found = await asyncio.gather(nap(value="b"), stay(value="c", file="killed"), stay(value="d", file="killed"))
    return [each["value"] for each in (first, *found, await nap(value="e"))]
"""
TASKS = """
async def look(text: str):
    first = await nap(value=text)
    return (await stay(value=first["value"], file="killed"))["value"]

async def main():
    found = await parallel([task(look, text=text) for text in "bcd"])
    return [*found, (await nap(value="e"))["value"]]
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[DevServer]:
    """A server of one's own, with its database in a file."""
    binary = await obtain(pinned_only=True)
    own = DevServer(binary, tmp_path / "temporal.db", tmp_path / "server.log", port=0, headless=True)
    await own.start()
    yield own
    await own.stop()


@pytest.fixture
async def processes(server: DevServer, tmp_path: Path) -> AsyncIterator[WorkerProcesses]:
    """Workers of that server."""
    own = WorkerProcesses(server.address, tmp_path / "state")
    yield own
    own.kill()


async def begin(client: Client, name: str, plan: dict[str, Any], **fields: Any) -> tuple[WorkflowHandle[Any, Any], str]:
    """Start a run; returns it with its first run id, under which its calls are logged."""
    request = {"plan": plan, **fields}
    handle = await client.start_workflow("AgentRun", request, id=f"agent-{name}", task_queue=queues.WORKFLOW)
    return handle, handle.first_execution_run_id or ""


async def report_of(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    report: dict[str, Any] = await asyncio.wait_for(handle.result(), LIMIT)
    return report


def process_of(identity: str) -> int:
    """Return the process in a worker's identity: `workflow@host:4711 0.1.0`."""
    return int(identity.partition(" ")[0].rpartition(":")[2])


async def last_runner(handle: WorkflowHandle[Any, Any]) -> str:
    """Return the identity of the worker that took the run's last workflow task."""
    found = ""
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
            found = event.workflow_task_started_event_attributes.identity
    return found


def have_succeeded(names: list[str], view: View) -> bool:
    return all(status_of(view, name) == "succeeded" for name in names)


async def test_a_killed_tools_worker_loses_only_the_calls_in_flight(
    server: DevServer, processes: WorkerProcesses
) -> None:
    """One run of single nodes, and three whose calls share an activity: a plan, with five that have edges and three
    siblings, and two programs. The runs have been told what has ended there. The slow calls last until the worker is
    dead.
    """
    client = await connect(server.address)
    (doomed,) = processes.start("tools")
    processes.start("workflow")
    single = [call("quick", args={"value": 1}), call("slow", "stay", args={"file": "killed", "value": 2}),
              {"id": "j", "kind": "join", "inputs": ["quick", "slow"]}]  # fmt: skip
    grouped = [
        call("a", args={"value": "a"}),
        call("b", args={"value": "$a.value"}),
        call("c", "stay", args={"value": "$b.value", "file": "killed"}),
        call("d", args={"value": "$b.value"}),
        call("e", args={"value": "$c.value$d.value"}),
        call("x", args={"value": "x"}),
        call("y", args={"value": "y"}),
        call("z", "stay", args={"value": "z", "file": "killed"}),
        {"id": "all", "kind": "join", "inputs": ["e", "x", "y", "z"]},
    ]
    alone, first = await begin(client, "single", {"nodes": single})
    together, second = await begin(client, "grouped", {"nodes": grouped, "fuse": "on"})
    nodes = [{"id": "main", "kind": "program", "script": GATHERED}]
    program, third = await begin(client, "program", {"nodes": nodes, "answer": "$main", "fuse": "on"})
    nodes = [{"id": "main", "kind": "program", "script": TASKS}]
    tasks, fourth = await begin(client, "tasks", {"nodes": nodes, "answer": "$main", "fuse": "on"})
    await processes.until_called(first, "quick", "slow")
    await processes.until_called(second, "c", "d", "z", "x", "y")
    await processes.until_called(third, "main_2", "main_3", "main_4")
    await processes.until_called(fourth, "main_7", "main_8", "main_9")
    processes.start("tools")
    await until(alone, partial(have_succeeded, ["quick"]))
    await until(together, partial(have_succeeded, ["a", "b", "d", "x", "y"]))
    await until(program, partial(have_succeeded, ["main_1", "main_2"]))
    await until(tasks, partial(have_succeeded, ["main_2", "main_4", "main_6"]))
    processes.kill(doomed)
    (processes.index / "killed").touch()
    reports = await asyncio.gather(report_of(alone), report_of(together), report_of(program), report_of(tasks))
    assert [report["answer"] for report in reports] == [
        [{"value": 1}, {"value": 2}],
        [{"value": "aa"}, {"value": "x"}, {"value": "y"}, {"value": "z"}],
        ["a", "b", "c", "d", "e"],
        ["b", "c", "d", "e"],
    ]
    in_tasks = Counter(processes.calls(fourth))
    assert [in_tasks.pop(f"main_{n}~1") > 1 for n in (7, 8, 9)] == [True] * 3, "cut off"
    assert in_tasks == {"main_2~1": 1, "main_4~1": 1, "main_6~1": 1, "main_10~1": 1}
    in_program = Counter(processes.calls(third))
    assert [in_program.pop(f"main_{n}~1") > 1 for n in (3, 4)] == [True] * 2, "cut off"
    assert in_program == {f"main_{n}~1": 1 for n in (1, 2, 5)}
    assert Counter(processes.calls(first)) == {"quick~1": 1, "slow~1": 2}
    counted = Counter(processes.calls(second))
    assert counted == {"a~1": 1, "b~1": 1, "c~1": 2, "d~1": 1, "e~1": 1, "x~1": 1, "y~1": 1, "z~1": 2}


async def test_a_worker_that_is_killed_in_a_call_made_early_costs_the_run_only_that(
    server: DevServer, processes: WorkerProcesses
) -> None:
    """Both branches are under way when their worker dies, and so is the call that decides between them."""
    client = await connect(server.address)
    (doomed,) = processes.start("tools")
    processes.start("workflow")
    nodes = [call("s", "stay", args={"file": "killed"})]
    for name, status in (("y", "succeeded"), ("n", "failed")):
        branch = call(name, "stay", args={"file": "killed", "value": name})
        nodes.append({**branch, "when": {"ref": "$s:status", "op": "eq", "value": status}})
    handle, run = await begin(client, "early", {"nodes": nodes, "answer": "$y"}, speculate="on")
    await processes.until_called(run, "s", "early.y", "early.n")
    processes.kill(doomed)
    processes.start("tools")
    (processes.index / "killed").touch()
    report = await report_of(handle)
    assert (report["status"], report["answer"]) == ("done", {"value": "y"})
    early = report["figures"]["speculation"]
    assert (early["calls"], early["hits"], early["wasted"]) == (2, 0, 2)


async def test_killed_workflow_workers_lose_nothing_and_a_killed_server_goes_on_from_its_database(
    server: DevServer, processes: WorkerProcesses
) -> None:
    """First the worker that holds the run, with a second one up; then every worker at once; then the server."""
    client = await connect(server.address)
    runners = processes.start("workflow", "workflow")
    processes.start("tools")
    nodes = [call(f"n{i}", args={"seconds": 1, "value": f"$n{i - 1}.value." if i else "."}) for i in range(8)]
    handle, run = await begin(client, "chain", {"nodes": nodes})
    await processes.until_called(run, "n1")
    holder = process_of(await last_runner(handle))
    assert holder in runners
    processes.kill(holder)
    await processes.until_called(run, "n4")
    processes.kill()
    before = processes.calls(run)
    processes.start("workflow", "tools")
    report = await report_of(handle)
    assert report["answer"] == {"value": "." * 8}
    again = [node for node, count in Counter(processes.calls(run)).items() if count > 1]
    print(f"\n{len(before)} calls before the last kill, {len(processes.calls(run))} in all; called twice: {again}")
    assert len(again) <= 1
    assert set(again) <= set(before[-1:])
    nodes = [call(f"n{i}", args={"seconds": 0.5, "value": f"$n{i - 1}.value." if i else "."}) for i in range(6)]
    handle, run = await begin(client, "restart", {"nodes": nodes})
    await processes.until_called(run, "n2")
    server.kill()
    await server.start()
    restarted = (await connect(server.address)).get_workflow_handle(handle.id)
    assert (await report_of(restarted))["answer"] == {"value": "." * 6}
    assert all(count <= 2 for count in Counter(processes.calls(run)).values())


async def test_looking_at_a_run_whose_worker_is_killed_changes_nothing(
    server: DevServer, processes: WorkerProcesses
) -> None:
    """The end of a call that a join has cancelled is news to nobody, but the workflow task for it moves the clock."""
    client = await connect(server.address)
    (runner,) = processes.start("workflow")
    processes.start("tools")
    nodes = [
        call("a", args={"value": "a", "seconds": 0.2}),
        call("b", args={"value": "b", "seconds": 60}),
        {"id": "race", "kind": "join", "inputs": ["a", "b"], "policy": "first"},
        call("c", args={"value": "$race.value", "seconds": 12}),
        call("d", args={"value": "$c.value", "seconds": 0.5}),
        call("e", args={"value": "$d.value", "seconds": 0.5}),
        call("f", args={"value": "$e.value", "seconds": 0.5}),
    ]
    handle, run = await begin(client, "looked-at", {"nodes": nodes})
    await processes.until_called(run, "c")
    onlooker = Onlooker(client)
    looking = asyncio.create_task(onlooker.look(lambda: [handle.id]))
    await asyncio.sleep(8)
    processes.kill(runner)
    await asyncio.sleep(2.5)
    (runner,) = processes.start("workflow")
    await processes.until_called(run, "d")
    processes.kill(runner)
    processes.start("workflow")
    report = await report_of(handle)
    looking.cancel()
    assert (report["status"], report["answer"]) == ("done", {"value": "a"})
    assert onlooker.answers > 10
    assert onlooker.problems == []
    assert [each.wrong async for each in replayed(client)] == [""]


ITEM = """
async def main(n):
    first = await nap(value=n, seconds=1)
    last = await nap(value=first["value"] * 10, seconds=1)
    return last["value"]
"""


async def test_items_that_are_runs_of_their_own_survive_the_death_of_all_workers(
    server: DevServer, processes: WorkerProcesses
) -> None:
    """What had ended in one of them is not called again, and each is still one run."""
    client = await connect(server.address)
    processes.start("workflow", "tools")
    do = {"kind": "program", "script": ITEM, "arguments": {"n": "$item.n"}}
    nodes = [call("list", "count", args={"count": 4}), {"id": "m", "kind": "map", "over": "$list.items", "do": do}]
    handle, _ = await begin(client, "items", {"nodes": nodes, "answer": "$m"})
    log = processes.index / "calls.log"
    async with asyncio.timeout(LIMIT):
        while not log.exists() or log.read_text().count(" value_") < 5:
            await asyncio.sleep(0.05)
    processes.kill()
    before = Counter(line.split()[0] + line.split()[1] for line in log.read_text().splitlines())
    processes.start("workflow", "tools")
    assert (await report_of(handle))["answer"] == [0, 10, 20, 30]
    after = Counter(line.split()[0] + line.split()[1] for line in log.read_text().splitlines())
    again = [name for name, count in after.items() if count > 1]
    print(f"\n{sum(before.values())} calls before the kill, {sum(after.values())} in all; called twice: {again}")
    assert len(after) == 4 * 2, "four items, each with two calls"
    assert len(again) <= 4, "only what ran in the moment of the kill"
    assert sum(before.values()) > len(again)


PROGRAM = """
async def look(number: int):
    return (await nap(value=number))["value"]

async def main():
    found = [(await nap(value=number))["value"] for number in range(3)]
    return found + await parallel([task(look, number=number) for number in range(3, 6)])
"""


async def test_a_worker_that_dies_where_a_program_goes_on_calls_nothing_again(
    server: DevServer, tmp_path: Path
) -> None:
    """Between the end of a call and the step behind it, and when that step has stored what it called."""
    client = await connect(server.address)
    processes = WorkerProcesses(server.address, tmp_path / "state", SENNIT_TOOLS="doubles.tools,doubles.dying_programs")
    try:
        processes.start("workflow")
        node = {"id": "main", "kind": "program", "script": PROGRAM}
        handle, run = await begin(client, "dying", {"nodes": [node]})
        for moment in ("before", "after"):
            (processes.state / "die").write_text(moment)
            [doomed] = processes.start("tools")
            async with asyncio.timeout(LIMIT):
                while processes.running(doomed):
                    await asyncio.sleep(0.05)
        processes.start("tools")
        assert (await report_of(handle))["answer"] == list(range(6))
        assert set(Counter(processes.calls(run)).values()) == {1}
    finally:
        processes.kill()
