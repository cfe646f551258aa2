"""`sennit status --figures` and `sennit figures` on real runs: calls that share an activity count by themselves."""

import io
import json
from argparse import Namespace
from types import ModuleType
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call, until
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowHandle

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Exit
from sennit.starter.commands import figures, status
from sennit.starter.terminal.console import Output, Terminal

pytestmark = pytest.mark.timeout(100)
PLAN = {
    "nodes": [
        call("one", "nap", args={"seconds": 0.4}),
        call("two", "nap", args={"seconds": 0.2}),
        call("both", "nap", args={"seconds": 0.1}, needs=["one", "two"]),
        {"id": "end", "kind": "join", "inputs": ["both"]},
    ],
    "fuse": "on",
}


@pytest.fixture(autouse=True)
def connected(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the commands use the test's server."""

    async def connect(*_: Any) -> Sennit:
        return Sennit(client, local_server(client.service_client.config.target_host, None))

    for module in (status, figures):
        monkeypatch.setattr(module, "connect", connect)


async def written(module: ModuleType, form: Output = "json", **given: Any) -> str:
    terminal = Terminal(output=form, out=io.StringIO(), err=io.StringIO())
    args = Namespace(**{"since": 3600.0, "tenant": None, **given})
    assert await module.run(args, terminal) is Exit.ANSWER
    assert isinstance(terminal.out, io.StringIO)
    return terminal.out.getvalue()


async def board_of(handle: WorkflowHandle[Any, Any]) -> str:
    metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(metadata.current_details)


async def test_a_finished_run_has_the_same_figures_everywhere(start: Start, client: Client) -> None:
    handle = await start(plan=PLAN)
    report = await handle.result()
    found = report["figures"]
    assert found["calls"] == 3, "a join is no call"
    assert 700 <= found["sequential_ms"] < 900, "each call counts by its own time, though two share an activity"
    assert 500 <= found["critical_path_ms"] <= found["makespan_ms"]
    assert found["largest_width"] == 2
    assert found["parallel_ratio"] == 0.667
    assert found["saved_ms"] == found["sequential_ms"] - found["makespan_ms"]

    asked: dict[str, Any] = {"run": handle.id, "command": "status", "figures": True, "script": False, "explain": False}
    assert json.loads(await written(status, **asked)) == found
    text = await written(status, "text", **asked)
    first, second = text.splitlines()[:2]
    board = await board_of(handle)
    assert first.startswith("3 calls in ")
    assert "at once, at most 2; 67% beside another" in second
    for line in (first, second):
        assert line.replace("(", "&#40;").replace(":", "&#58;") in board


async def test_a_run_that_goes_on_has_figures_until_now(start: Start) -> None:
    gate = {"id": "g", "kind": "gate", "question": "Go?", "schema": {"type": "boolean"}}
    handle = await start(plan={"nodes": [gate, call("one")], "answer": ["$g", "$one"]})
    await until(handle, lambda view: view["counts"].get("succeeded", 0) == 1)
    page = await handle.query("figures", {"from": 0})
    assert [line["node"] for line in page["calls"]] == ["one"]
    asked: dict[str, Any] = {"run": handle.id, "command": "status", "figures": True, "script": False, "explain": False}
    assert json.loads(await written(status, **asked))["calls"] == 1


async def test_many_runs_are_put_together_without_a_worker(start: Start) -> None:
    plans = [PLAN, {"nodes": [call("only", "nap", args={"seconds": 0.3})]}]
    reports = [await (await start(plan=plan, tenant="figures")).result() for plan in plans]
    total = 0
    found: dict[str, Any] = {}
    while total < len(reports):  # the list lags behind
        found = json.loads(await written(figures, tenant=None))
        total = found["runs"]
    assert found["calls"] >= 4
    text = await written(figures, "text")
    assert "median" in text
    assert "one after the other" in text
