"""Runs that continue as new every few nodes: the same answer, nothing twice, and people notice nothing."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start, remembered_or_not
from doubles.runs import board, call, called, happens, insist, status_of, until
from doubles.tools import calls
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.service import RPCError

from sennit.testing.models import ModelServer
from sennit.workflows.run import drain
from sennit.workflows.run.subagent import prefix_below


@pytest.fixture(autouse=True)
def short_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs drain, and continue as new, after 40 events or 5 updates."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, drain.SOFT_BOUNDS[1], 5))


async def links(client: Client, handle: Handle) -> list[Payload]:
    """Return the input of every run in a workflow's chain, the first one first."""
    inputs: list[Payload] = []
    run = (await handle.describe()).run_id
    while run:
        started = await anext(client.get_workflow_handle(handle.id, run_id=run).fetch_history_events())
        begun = started.workflow_execution_started_event_attributes
        inputs.insert(0, begun.input.payloads[0])
        run = begun.continued_execution_run_id
    return inputs


def chain(length: int) -> list[dict[str, Any]]:
    return [call(f"n{index}", args={"value": f"$n{index - 1}.value" if index else "end"}) for index in range(length)]


async def test_a_long_chain_ends_as_a_short_one_does_and_a_copy_of_its_last_run_starts_over(
    client: Client, start: Start, cache: Path
) -> None:
    """`Start Workflow Like This One` copies the input, and with it what one run hands to the next."""
    handle = await start(plan={"nodes": chain(14)}, fuse="off")
    report = await handle.result()
    inputs = await links(client, handle)
    assert len(inputs) >= 3
    assert b'"carry"' in inputs[-1].data
    copy = await start(RawValue(inputs[-1]))
    for run, found in ((handle, report), (copy, await copy.result())):
        assert (found["status"], found["answer"]) == ("done", {"value": "end"})
        assert all((line["status"], line.get("attempts", 1)) == ("succeeded", 1) for line in found["nodes"])
        assert called(cache, run) == Counter({f"n{index}~1": 1 for index in range(14)})
    assert all(line["duration_ms"] is not None for line in report["nodes"])


async def test_a_run_continues_at_temporals_suggestion_only_while_nothing_is_pending(
    client: Client, start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", drain.HARD_BOUNDS)
    monkeypatch.setattr(
        workflow.Info, "is_continue_as_new_suggested", lambda info: info.get_current_history_length() > 20
    )
    long = call("long", args={"seconds": 0.8, "value": 1})
    handle = await start(plan={"nodes": [*chain(8), long], "answer": ["$n7.value", "$long.value"]}, fuse="off")
    assert (await handle.result())["answer"] == ["end", 1]
    assert called(cache, handle) == Counter({"long~1": 1, **{f"n{index}~1": 1 for index in range(8)}})
    first = await client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id).fetch_history()
    ended = [event for event in first.events if event.HasField("activity_task_completed_event_attributes")]
    assert len(ended) >= 9, "the first run must have gone on for as long as `long` was pending"


async def test_one_task_that_knows_of_another_version_moves_no_run(
    client: Client, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that the server hands out together with the answer to the last one says so of every pinned run."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", drain.HARD_BOUNDS)
    asked: list[int] = []

    def once(info: workflow.Info) -> bool:
        asked.append(info.get_current_history_length())
        return asked[-1] == asked[0]

    monkeypatch.setattr(workflow.Info, "is_target_worker_deployment_version_changed", once)
    handle = await start(plan={"nodes": [{"id": "ask", "kind": "gate", "question": "Go on?"}]})
    await until(handle, lambda view: status_of(view, "ask") == "waiting")
    await handle.signal("upgrade", "any input")
    await insist(handle, "answer", {"node": "ask", "value": "yes"})
    assert (await handle.result())["answer"] == "yes"
    assert len(dict.fromkeys(asked)) > 1
    assert len(await links(client, handle)) == 1


async def test_a_drain_is_given_up_for_a_long_node_and_is_shown(
    client: Client, start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_MILLISECONDS", 2_000)
    monkeypatch.setattr(drain, "LATER_SHARE", 10.0)
    plan = {"nodes": [*chain(12), call("long", "hang", args={"name": "drain"})], "answer": "$n11"}
    handle = await start(plan=plan, title="nightly", fuse="off")
    view = await until(handle, lambda view: view["phase"] == "draining" and view["waits_for"] == ["long"])
    assert "nightly**" in (await board(handle)).partition("\n")[0]
    assert "Nothing starts until these have ended: `long`" in await board(handle)
    view = await until(handle, lambda view: status_of(view, "n11") == "succeeded")
    assert (view["phase"], view["waits_for"], len(await links(client, handle))) == ("running", [], 1)
    await insist(handle, "skip_node", {"node": "long"})
    assert (await handle.result())["status"] == "done"
    assert set(called(cache, handle).values()) == {1}


async def test_at_the_hard_bound_writes_end_and_all_else_begins_again_in_the_next_run(
    client: Client, begin: Start, model_server: ModelServer, cache: Path, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sub-agent lets its own write end, and the next one asks for no plan. The bounds are those of the first run."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (1_000, *drain.SOFT_BOUNDS[1:]))
    monkeypatch.setattr(drain, "HARD_BOUNDS", (60, *drain.HARD_BOUNDS[1:]))
    below = [call("v", "post", args={"text": "below", "seconds": 3}), call("s", "hang", args={"name": held.name})]
    model_server.on("You plan work", json.dumps({"nodes": below, "answer": ["$v", "$s"]}))
    nodes = [
        *chain(8),
        call("w", "post", args={"text": "above", "seconds": 3}),
        call("r", "hang", args={"name": held.name}),
        {"id": "sub", "kind": "agent", "goal": "Write."},
    ]
    plan = {"nodes": nodes, "answer": ["$n7.value", "$w", "$r.value", "$sub"]}
    handle = await begin(plan=plan, approval="never", fuse="off")
    child = prefix_below(handle.first_execution_run_id or "", "sub")
    await happens(lambda: called(cache, handle)["r~1"] == calls(cache, child).count("s~1") == 2)
    for name in ("r", "s"):
        (held / f"{name}.end").touch()
    posted = [{"posted": "below"}, {"value": None}]
    assert (await handle.result())["answer"] == ["end", {"posted": "above"}, None, posted]
    assert len(await links(client, handle)) == 2
    counted = called(cache, handle)
    assert (counted.pop("r~1"), counted.pop("w~1"), set(counted.values())) == (2, 1, {1})
    assert Counter(calls(cache, child)) == {"v~1": 1, "s~1": 2}
    assert len(model_server.asked) == 1


async def test_maps_joins_failures_and_gates_with_their_time_survive(client: Client, start: Start, cache: Path) -> None:
    template = {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}}
    nodes = [
        call("list", "count", args={"count": 12}),
        {"id": "m", "kind": "map", "over": "$list.items", "do": template},
        call("lost", "fail", on_error="skip"),
        call("few", when={"ref": "$list.count", "op": "lt", "value": 3}, needs=["m"]),
        call("many", when={"ref": "$list.count", "op": "ge", "value": 3}, needs=["m"], args={"value": "many"}),
        {"id": "j", "kind": "join", "inputs": ["lost", "m", "few", "many"], "policy": "settled"},
        {"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer"}},
        {"id": "late", "kind": "gate", "question": "?", "timeout": "3s", "on_error": {"fallback": "nobody"}},
    ]
    handle = await start(plan={"nodes": nodes, "answer": ["$j", "$g", "$late"]}, window=4, fuse="off")
    view = await until(handle, lambda view: status_of(view, "late") == status_of(view, "j") == "succeeded")
    assert len(await links(client, handle)) >= 3
    assert view["blocked"][0]["question"] == "How many?"
    await insist(handle, "answer", {"node": "g", "value": 3})
    joined, *answers = (await handle.result())["answer"]
    assert [item["status"] for item in joined] == ["skipped", "succeeded", "skipped", "succeeded"]
    assert joined[1]["value"] == [{"value": index} for index in range(12)]
    assert answers == [3, "nobody"]
    assert set(called(cache, handle).values()) == {1}


@remembered_or_not
async def test_a_parked_run_is_repaired_in_another_run_of_its_chain(client: Client, start: Start, cache: Path) -> None:
    nodes = [call("bad", "fail", args={"unless": "chain-1"}), call("behind", needs=["bad"]), *chain(10)]
    handle = await start(plan={"nodes": nodes, "answer": ["$behind.value", "$n9.value"]}, fuse="off")
    await until(handle, lambda view: view["status"] == "blocked")
    assert len(await links(client, handle)) >= 2
    (cache / "chain-1").touch()
    await insist(handle, "retry_node", {"node": "bad"})
    assert (await handle.result())["answer"] == [None, "end"]
    assert called(cache, handle)["bad~1"] == called(cache, handle)["bad~2"] == called(cache, handle)["n3~1"] == 1
    (cache / "chain-1").unlink()


@remembered_or_not
async def test_every_update_that_was_taken_is_done_even_as_the_run_continues(
    client: Client, start: Start, cache: Path
) -> None:
    """Every fifth update makes the run continue as new; those that come meanwhile are refused or done, never lost."""
    hold = {"id": "hold", "kind": "gate", "question": "?"}
    names = [f"n{index}" for index in range(4)]
    handle = await start(plan={"nodes": [*(call(name) for name in names), hold], "answer": "$hold"}, fuse="off")
    await until(handle, lambda view: view["status"] == "blocked")
    taken: Counter[str] = Counter()

    async def repeat(name: str) -> None:
        while taken[name] < 4:
            try:
                await handle.execute_update("retry_node", {"node": name})
            except WorkflowUpdateFailedError as refused:
                why = str(refused.cause)
                assert "is running" in why or "is pending" in why or "still" in why, why
            except RPCError as lost:
                if "completed" not in str(lost) and "closing" not in str(lost):
                    raise
            else:
                taken[name] += 1

    await asyncio.gather(*map(repeat, names))
    await until(handle, lambda view: view["status"] == "blocked")
    await insist(handle, "answer", {"node": "hold", "value": "yes"})
    assert (await handle.result())["status"] == "done"
    expected = {f"{name}~{generation}": 1 for name in names for generation in range(1, 6)}
    assert called(cache, handle) == Counter(expected)
    assert len(await links(client, handle)) >= 3
