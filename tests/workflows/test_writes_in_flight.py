"""Writes that are in flight when nobody needs them any more: the run waits for them, and says what became of each."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.runs import board, call, insist, status_of, until
from doubles.tools import posts
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.runs.conclusion import RunConcluder
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit
from sennit.starter.terminal.render import report_text
from sennit.testing.models import ModelServer
from sennit.workflows.messages.contracts import Conclusion
from sennit.workflows.messages.result import WRITES
from sennit.workflows.run.subagent import prefix_below

SECONDS = 1.5


def post(name: str, **fields: Any) -> dict[str, Any]:
    """A write that is made at once, and takes its time to say so."""
    args = {"text": name, "seconds": SECONDS, **fields.pop("args", {})}
    return call(name, "post", args=args, **fields)


def race(*inputs: str, policy: Any = "first") -> dict[str, Any]:
    return {"id": "j", "kind": "join", "inputs": list(inputs), "policy": policy}


async def begun(handle: Handle, cache: Path, *names: str) -> None:
    """Wait until these writes have been made, and have not said so yet."""
    run = handle.first_execution_run_id or ""
    await until(handle, lambda _: set(names) <= set(posts(cache, run)))


async def ended(handle: Handle) -> list[dict[str, str]]:
    """Wait for a cancelled run's end; returns what it says of its writes."""
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    memo = await (await handle.describe()).memo()
    view = await handle.query("plan")
    assert (view["status"], view["writes"]) == ("cancelled", memo.get(WRITES, []))
    return list(view["writes"])


def line(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in report["nodes"] if each["id"] == name)


async def test_writes_that_joins_cut_off_are_waited_for_and_told_as_what_became_of_them(
    start: Start, cache: Path
) -> None:
    """One is made, one refuses, and of one nobody knows."""
    ends = {"made": {}, "refused": {"after": "late"}, "lost": {"after": "crash"}}
    nodes = [call("a", args={"seconds": 0.7, "value": 1}), *(post(name, args=args) for name, args in ends.items())]
    nodes += [race("a", name) | {"id": f"j_{name}"} for name in ends]
    handle = await start(plan={"nodes": nodes, "answer": [f"$j_{name}" for name in ends]}, approval="never")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", [{"value": 1}] * 3)
    became = {write["node"]: write["status"] for write in report["writes"]}
    assert became == {"made": "made", "refused": "not made", "lost": "unknown"}
    assert report["problem"] == "nobody knows whether the write `lost` was made"
    assert line(report, "made")["status"] == "cancelled"
    assert "NotNeeded" in line(report, "made")["error"]
    assert line(report, "made")["error"].endswith("its write was made all the same")
    assert "`made` made" in await board(handle)


async def test_a_cancelled_run_waits_for_its_writes_and_says_what_became_of_each(start: Start, cache: Path) -> None:
    items = call("l", args={"value": ["x", "y"]})
    each = {"kind": "tool", "tool": "post", "args": {"text": "$item", "seconds": SECONDS, "after": "crash"}}
    nodes = [post("w"), items, {"id": "m", "kind": "map", "over": "$l.value", "do": each}, post("z", needs=["w"])]
    handle = await start(plan={"nodes": nodes, "answer": "$m"}, approval="never")
    await begun(handle, cache, "w", "x", "y")
    await handle.cancel()
    await until(handle, lambda view: any(each["status"] == "in flight" for each in view["writes"]))
    assert await ended(handle) == [
        {"node": "m[0]", "status": "unknown"},
        {"node": "m[1]", "status": "unknown"},
        {"node": "w", "status": "made"},
    ]
    assert posts(cache, handle.first_execution_run_id or "").count("w") == 1
    assert status_of(await handle.query("plan"), "z") == "cancelled"


async def test_a_run_that_is_cancelled_while_it_ends_says_what_became_of_its_writes_too(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def conclude(*_: Any) -> Conclusion:
        await asyncio.sleep(600)
        raise AssertionError

    monkeypatch.setattr(RunConcluder, "conclude", conclude)
    nodes = [call("a", args={"seconds": 0.5, "value": 1}), post("w", args={"after": "crash"}), race("a", "w")]
    handle = await start(plan={"nodes": nodes, "answer": {"of": "$j"}}, approval="never")
    await until(handle, lambda view: bool(view["phase"] == "concluding"))
    await handle.cancel()
    assert await ended(handle) == [{"node": "w", "status": "unknown"}]


async def test_the_second_generation_waits_for_the_first_and_its_lock_does_too(start: Start, cache: Path) -> None:
    """An edit upstream runs a write again: never two at once, of it and of what shares its lock."""
    (cache / "source.txt").write_text("one")
    lock = [{"name": "repo", "mode": "exclusive"}]
    nodes = [
        call("s", "fetch", args={"file": "source.txt"}),
        call("w", "post", args={"text": "$s.value", "seconds": SECONDS}, locks=lock),
        call("v", "post", args={"text": "v"}, needs=["s"], locks=lock, priority=5),
    ]
    handle = await start(plan={"nodes": nodes, "answer": ["$w", "$v"]}, approval="never")
    await begun(handle, cache, "one")
    (cache / "source.txt").write_text("two")
    await insist(handle, "retry_node", {"node": "s", "repeat_effect": True})
    report = await handle.result()
    assert posts(cache, handle.first_execution_run_id or "") == ["one", "two", "v"]
    assert report["writes"] == [{"node": "w", "status": "made"}]
    assert report["status"] == "done"


async def test_of_a_run_that_was_terminated_the_history_names_the_writes_in_flight(
    client: Client, start: Start, cache: Path
) -> None:
    """Nothing waits then. A write that had ended is not in question, nor is one that a person has decided on."""
    nodes = [
        post("before", args={"seconds": 0}),
        post("odd", args={"after": "crash", "seconds": 0}),
        post("w", needs=["before"]),
        call("read", args={"seconds": 60}),
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$w"}, approval="never")
    await begun(handle, cache, "w", "odd")
    await insist(handle, "answer", {"node": "odd", "value": "looked it up"})
    await until(handle, lambda view: status_of(view, "odd") == "succeeded")
    await handle.terminate("enough")
    outcome = await (await Sennit(client).find(handle.id)).outcome()
    assert outcome.report.model_dump()["writes"] == ({"node": "w", "status": "unknown"},)
    assert "  write w: unknown: it may have been made" in report_text(outcome.report, 100).splitlines()
    assert outcome.code == Exit.FAILED


async def test_report_and_fork_of_a_terminated_run_go_by_the_ledger(client: Client, start: Start, cache: Path) -> None:
    """Both writes still come to their end; the fork asks about the one that nobody knows of."""
    nodes = [post("w", timeout="4s"), post("x", args={"after": "crash"}, timeout="4s"), call("n", needs=["w"])]
    plan = {"nodes": nodes, "answer": "$n"}
    handle = await start(plan=plan, approval="never")
    await begun(handle, cache, "w", "x")
    await handle.terminate("enough")
    first = handle.first_execution_run_id or ""
    report = await (await Sennit(client).find(handle.id)).report()
    assert [write.model_dump() for write in report.writes] == [
        {"node": "w", "status": "made"},
        {"node": "x", "status": "unknown"},
    ]
    fork = await start(plan=plan, approval="never", origins=[first])
    view = await until(fork, lambda view: bool(view["status"] == "blocked"))
    assert [item["node"] for item in view["blocked"]] == ["x"]
    assert next(line for line in view["nodes"] if line["id"] == "w")["taken_over"]
    assert posts(cache, fork.first_execution_run_id or "") == []


async def test_a_cancelled_run_tells_its_client_of_its_writes(client: Client, start: Start, cache: Path) -> None:
    handle = await start(plan={"nodes": [post("w")], "answer": "$w"}, approval="never")
    await begun(handle, cache, "w")
    await handle.cancel()
    outcome = await (await Sennit(client).find(handle.id)).outcome()
    assert "  write w: made, though it was cut off" in report_text(outcome.report, 100).splitlines()
    assert (outcome.report.status, outcome.code) == ("cancelled", Exit.FAILED)


@pytest.mark.parametrize("how", ["cancel", "join"])
async def test_a_sub_agent_lets_its_writes_end_and_its_parent_says_what_became_of_them(
    begin: Start, model_server: ModelServer, cache: Path, how: str
) -> None:
    """Its run was cancelled, by the one above it: the writes are told by their paths, those that had ended too."""
    below = [
        call("u", "post", args={"text": "u"}),
        call("v", "post", args={"text": "v", "seconds": SECONDS}, needs=["u"]),
        call("x", "post", args={"text": "x", "seconds": SECONDS, "after": "crash"}, needs=["u"]),
        call("y", "post", args={"text": "y"}, needs=["v"]),
    ]
    model_server.on("You plan work", json.dumps({"nodes": below, "answer": ["$v", "$x"]}))
    agent = {"id": "sub", "kind": "agent", "goal": "Write."}
    nodes = [agent, {"id": "g", "kind": "gate", "question": "?"}, race("sub", "g")]
    handle = await begin(plan={"nodes": nodes, "answer": "$j"}, approval="never")
    child = prefix_below(handle.first_execution_run_id or "", "sub")
    await until(handle, lambda _: {"v", "x"} <= set(posts(cache, child)))
    if how == "cancel":
        await handle.cancel()
        writes, status = await ended(handle), "cancelled"
    else:
        await insist(handle, "answer", {"node": "g", "value": "enough"})
        report = await handle.result()
        writes, status = report["writes"], report["status"]
    assert sorted(posts(cache, child)) == ["u", "v", "x"]
    assert writes == [
        {"node": "sub.x", "status": "unknown"},
        {"node": "sub.v", "status": "made"},
        {"node": "sub.u", "status": "made"},
    ]
    assert status == ("cancelled" if how == "cancel" else "partial")
