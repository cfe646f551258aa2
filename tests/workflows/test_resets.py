"""Resets: what was written is not written again, and what is still being written is waited for."""

import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doubles.activations import SEED, kinds_in, recorded_from
from doubles.local_workers import Handle, Start, remembered_or_not
from doubles.resets import EVERYTHING, reset, scheduled
from doubles.runs import approve, call, happens, insist, status_of, until
from doubles.tools import calls
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError

from sennit.testing.models import ModelServer

SECONDS = 6.0  # a write takes longer than resets do


def answered(event: HistoryEvent) -> bool:
    return event.HasField("workflow_execution_update_accepted_event_attributes")


def called(cache: Path, handle: Handle) -> list[str]:
    return calls(cache, handle.first_execution_run_id or "")


def lines(cache: Path, file: str, text: str) -> int:
    """Return how many lines of a file in the cache have that text."""
    found = cache / file
    return found.read_text().count(text) if found.exists() else 0


def transfer(tool: str, field: str) -> dict[str, Any]:
    nodes = [
        {"id": "g", "kind": "gate", "question": "How much?"},
        call("w", tool, args={field: "$g"}),
        {"id": "end", "kind": "gate", "question": "End?", "needs": ["w"]},
    ]
    return {"nodes": nodes, "answer": ["$w", "$end"]}


async def test_a_write_after_a_reset_is_the_recorded_one_or_is_refused(
    client: Client, start: Start, cache: Path
) -> None:
    """The same arguments return what was written; others need a person's word, also if the tool is idempotent."""
    first, second = 100, 999
    handle = await start(plan=transfer("pay", "amount"), approval="never")
    await insist(handle, "answer", {"node": "g", "value": first})
    await until(handle, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    again = await reset(client, handle, answered, without=EVERYTHING)
    await insist(again, "answer", {"node": "g", "value": first})
    view = await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    assert "100" in view["nodes"][1]["preview"]
    again = await reset(client, again, answered, without=EVERYTHING)
    await insist(again, "answer", {"node": "g", "value": second})
    view = await until(again, lambda view: view["nodes"][1]["status"] == "failed")
    error = view["nodes"][1]["error"]
    assert error.startswith("AlreadyWritten: pay has written")
    assert str(first) in error
    assert str(second) in error
    assert called(cache, handle) == ["w~1"]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await again.execute_update("retry_node", {"node": "w"})
    assert "this may repeat what w wrote" in str(refused.value.cause)
    await insist(again, "retry_node", {"node": "w", "repeat_effect": True})
    await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    await insist(again, "answer", {"node": "end", "value": "yes"})
    assert (await again.result())["answer"] == [{"paid": second}, "yes"]
    assert called(cache, handle) == ["w~1", "w~2"]


GIVEN_UP = ("skip_node", "finish", "answer", "cancel")


@pytest.mark.parametrize("how", GIVEN_UP)
async def test_a_write_that_was_made_before_a_reset_is_told_if_it_is_given_up(
    client: Client, start: Start, how: str
) -> None:
    """The run itself has forgotten it: it was reset to before, and does not come so far again."""
    wants = {"ref": "$g", "op": "eq", "value": "yes"}
    nodes = [
        {"id": "g", "kind": "gate", "question": "Pay?"},
        call("w", "note", args={"text": uuid.uuid4().hex}, needs=["g"], when=wants),
        {"id": "end", "kind": "gate", "question": "End?", "needs": ["g"]},
        {"id": "all", "kind": "join", "inputs": ["w", "end"], "policy": "settled"},
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$all"}, approval="never")
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    await until(handle, lambda view: view["nodes"][1]["status"] == "succeeded")
    again = await reset(client, handle, answered, without=EVERYTHING)
    told = [{"node": "w", "status": "made"}]
    view = await until(again, lambda view: view["writes"] == told and bool(view["blocked"]))
    assert [item["node"] for item in view["blocked"]] == ["g"]
    if how == "cancel":
        await again.cancel()
        with pytest.raises(WorkflowFailureError):
            await again.result()
        assert await (await again.describe()).memo_value("sennit_writes") == told
        return
    if how == "finish":
        await insist(again, "finish", {})
    else:
        if how == "skip_node":
            await insist(again, "skip_node", {"node": "w"})
        await insist(again, "answer", {"node": "g", "value": "no"})
        await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
        await insist(again, "answer", {"node": "end", "value": "yes"})
    report = await again.result()
    assert report["writes"] == told


def asks(question: str, view: dict[str, Any]) -> bool:
    return bool(view["blocked"]) and question in view["blocked"][0]["question"]


async def test_a_write_that_a_program_made_before_a_reset_is_told_until_it_makes_it_again(
    client: Client, start: Start, cache: Path
) -> None:
    mark = uuid.uuid4().hex
    script = f'async def main():\n    await ask("Pay?")\n    await note(text="{mark}")\n    return await ask("End?")\n'
    plan = {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}
    handle = await start(plan=plan, approval="never")
    asked = await until(handle, lambda view: bool(view["blocked"]))
    await insist(handle, "answer", {"node": asked["blocked"][0]["node"], "value": "yes"})
    await until(handle, partial(asks, "End?"))
    again = await reset(client, handle, answered, without=EVERYTHING)
    view = await until(again, lambda view: bool(view["writes"]) and bool(view["blocked"]))
    assert [line["status"] for line in view["writes"]] == ["made"]
    for question in ("Pay?", "End?"):
        view = await until(again, partial(asks, question))
        await insist(again, "answer", {"node": view["blocked"][0]["node"], "value": "yes"})
    report = await again.result()
    assert (report["status"], report["writes"]) == ("done", []), "its status tells that it was made"
    assert lines(cache, "notes.txt", mark) == 1


async def test_a_write_that_a_sub_agent_below_a_sub_agent_made_before_a_reset_is_told_by_its_path(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    """Each of them keeps its writes below a run prefix of its own, of which the run that was reset knows nothing."""
    inner = [call("w", "note", args={"text": uuid.uuid4().hex})]
    outer = [{"id": "in", "kind": "agent", "goal": "Inner."}]
    model_server.on("You plan work.*Outer", json.dumps({"nodes": outer, "answer": "$in"}))
    model_server.on("You plan work.*Inner", json.dumps({"nodes": inner, "answer": "$w"}))
    nodes = [
        {"id": "g", "kind": "gate", "question": "Go?"},
        {"id": "sub", "kind": "agent", "goal": "Outer.", "needs": ["g"]},
        {"id": "end", "kind": "gate", "question": "End?", "needs": ["sub"]},
    ]
    handle = await begin(plan={"nodes": nodes, "answer": ["$sub", "$end"]}, approval="never")
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    await until(handle, partial(asks, "End?"))
    again = await reset(client, handle, answered, without=EVERYTHING)
    told = [{"node": "sub.in.w", "status": "made"}]
    await until(again, lambda view: view["writes"] == told and asks("Go?", view))
    await insist(again, "answer", {"node": "g", "value": "yes"})
    view = await until(again, partial(asks, "End?"))
    assert view["writes"] == [], "the status of the sub-agent tells that they were made"
    await insist(again, "finish", {})
    assert (await again.result())["writes"] == []


async def test_a_write_in_flight_is_waited_for_after_a_reset(client: Client, start: Start, cache: Path) -> None:
    text = f"plain-{uuid.uuid4().hex}"
    nodes = [call("q"), call("w", "post", args={"text": text, "seconds": SECONDS}, timeout="30s", needs=["q"])]
    handle = await start(plan={"nodes": nodes, "answer": "$w"}, approval="never")
    await happens(lambda: lines(cache, "posts.txt", text) > 0)
    again = await reset(client, handle, scheduled("w"))
    assert (await again.result())["answer"] == {"posted": text}
    assert called(cache, handle) == ["q~1", "w~1"]


def begun(event: HistoryEvent) -> bool:
    return event.HasField("start_child_workflow_execution_initiated_event_attributes")


async def test_nobody_but_a_sub_agent_takes_over_the_artifacts_of_another_run(start: Start, cache: Path) -> None:
    first = await start(plan={"nodes": [call("n", args={"value": 1})]})
    await first.result()
    second = await start(plan={"nodes": [call("n", args={"value": 1})]}, run_prefix=first.first_execution_run_id)
    await second.result()
    assert called(cache, first) == called(cache, second) == ["n~1"]


async def test_a_write_in_flight_below_is_made_once_over_three_resets(
    client: Client, begin: Start, model_server: ModelServer, cache: Path
) -> None:
    """It is a grandchild's. Each reset but the last ends the runs below, and starts them again."""
    text = f"below-{uuid.uuid4().hex}"
    inner = [call("w", "post", args={"text": text, "seconds": SECONDS}, timeout="30s"), call("r", needs=["w"])]
    outer = [call("q"), {"id": "in", "kind": "agent", "goal": "Inner.", "needs": ["q"]}]
    model_server.on("You plan work.*Outer", json.dumps({"nodes": outer, "answer": "$in"}))
    model_server.on("You plan work.*Inner", json.dumps({"nodes": inner, "answer": "$w"}))
    agent = {"id": "sub", "kind": "agent", "goal": "Outer."}
    handle = await begin(plan={"nodes": [agent], "answer": "$sub"}, approval="never")
    await happens(lambda: lines(cache, "posts.txt", text) > 0)
    for point in (scheduled("sub.goal"), begun, None):
        handle = await reset(client, handle, point)
        await until(handle, lambda view: view["nodes"][:1] and view["nodes"][0]["preview"].startswith("run "))
    assert (await handle.result())["answer"] == {"posted": text}
    assert lines(cache, "posts.txt", text) == 1
    assert len(model_server.asked) == 2, "the plans are known"


async def test_an_approved_write_is_not_asked_about_again_after_a_reset(
    client: Client, start: Start, cache: Path
) -> None:
    end = {"id": "end", "kind": "gate", "question": "End?", "needs": ["w"]}
    nodes = [call("w", "post", args={"text": "a"}), end]
    handle = await start(plan={"nodes": nodes, "answer": ["$w", "$end"]})
    await until(handle, lambda view: bool(view["blocked"]))
    await approve(handle, "w")
    await until(handle, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    again = await reset(client, handle, scheduled("w.question"), without=EVERYTHING)
    view = await until(again, lambda view: bool(view["blocked"]))
    assert [item["node"] for item in view["blocked"]] == ["end"]
    await insist(again, "answer", {"node": "end", "value": "yes"})
    assert (await again.result())["answer"] == [{"posted": "a"}, "yes"]
    assert called(cache, handle) == ["w~1"]


@remembered_or_not
async def test_a_run_goes_on_after_a_reset_to_the_task_of_an_answer(client: Client, start: Start) -> None:
    """The server gives it the answer again. Just before it two calls had ended, whose tasks wrote nothing: the worker
    after the reset takes the last of them together with the answer, and the next replay does not.
    """
    gate = {"id": "g", "kind": "gate", "question": "Go on?"}
    others = [call(f"s{number}", args={"seconds": 0.5 + 0.8 * number}) for number in range(3)]
    late = call("late", args={"seconds": 9.0})
    nodes = [gate, *others, late, call("b", args={"value": "$g"})]
    handle = await start(plan={"nodes": nodes, "answer": ["$b", "$late"], "fuse": "off"})
    await until(handle, lambda view: [status_of(view, name) for name in ("s0", "s1", "s2")] == ["succeeded"] * 3)
    await insist(handle, "answer", {"node": "g", "value": "yes"})
    again = await reset(client, handle, answered)
    assert (await again.result())["answer"][0] == {"value": "yes"}
    run = await recorded_from(await again.fetch_history())
    assert [task for task in run.tasks if SEED in kinds_in(task)], "the run was reset"


SLEEPER = """
import asyncio

async def main():
    await asyncio.sleep(30)
    return "old"
"""


async def test_an_edit_comes_again_after_a_reset_to_the_beginning(client: Client, start: Start) -> None:
    """The server gives it to a run that has no plan yet: it waits for the plan, and is not lost."""
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": SLEEPER}], "answer": "$main"})
    await until(handle, lambda view: status_of(view, "main") == "running")
    script = SLEEPER.replace("30", "0.1").replace("old", "new")
    await insist(handle, "edit_program", {"script": script})
    assert (await handle.result())["answer"] == "new"
    again = await reset(client, handle, lambda event: event.HasField("activity_task_started_event_attributes"))
    assert (await again.result())["answer"] == "new"


POOL = """
import asyncio

async def is_slow(name: str):
    try:
        await fail(message="fast", unless=f"MARK-{name}")
        return True
    except Exception:
        return False

async def worker(name: str, bills, paid):
    while bills:
        bill = bills.pop(0)
        if await is_slow(name):
            await nap(value=name, seconds=2.0)
        paid.append((await note(text=f"MARK {bill}"))["value"])

async def main():
    bills, paid = [1, 2, 3], []
    await asyncio.gather(worker("a", bills, paid), worker("b", bills, paid))
    return [len(paid), await ask("End?")]
"""


async def test_a_reset_in_which_workers_of_a_pool_change_places_writes_nothing_twice(
    client: Client, start: Start, cache: Path
) -> None:
    """Worker `a` is fast at first, and takes the third bill. After the reset it is slow, and `b` has been waiting."""
    mark = uuid.uuid4().hex
    (cache / f"{mark}-b").touch()
    plan = {"nodes": [{"id": "main", "kind": "program", "script": POOL.replace("MARK", mark)}], "answer": "$main"}
    handle = await start(plan=plan, approval="never")
    await until(handle, lambda view: bool(view["blocked"]))
    again = await reset(client, handle, scheduled("main"), without=EVERYTHING)
    (cache / f"{mark}-a").touch()
    await until(again, lambda view: bool(view["blocked"]))
    blocked = (await again.query("plan"))["blocked"][0]
    await insist(again, "answer", {"node": blocked["node"], "value": "yes"})
    assert (await again.result())["answer"] == [3, "yes"]
    assert [lines(cache, "notes.txt", f"{mark} {bill}") for bill in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.parametrize("is_program", [False, True])
async def test_a_write_that_was_made_when_it_was_retried_is_made_no_more_after_a_reset(
    client: Client, start: Start, cache: Path, is_program: bool
) -> None:
    """At first the service has refused it. After the reset, the run comes to that first attempt again."""
    mark = uuid.uuid4().hex
    arguments = {"text": mark, "after": "refuse", "unless": mark}
    write: dict[str, Any] = call("w", "post", args=arguments)
    if is_program:
        script = f"async def main():\n    return await post(text={mark!r}, after='refuse', unless={mark!r})"
        write = {"id": "w", "kind": "program", "script": script}
    nodes = [write, {"id": "end", "kind": "gate", "question": "End?", "needs": ["w"]}]
    handle = await start(plan={"nodes": nodes, "answer": "$end"}, approval="never", on_failure="park")
    view = await until(handle, lambda view: bool(view["blocked"]))
    [failed] = [line["id"] for line in view["nodes"] if line["kind"] == "tool" and line["status"] == "failed"]
    await insist(handle, "retry_node", {"node": failed})
    await until(handle, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    assert lines(cache, "posts.txt", mark) == 1

    (cache / mark).touch()  # now the service would take it at once
    again = await reset(client, handle, scheduled("w"), without=EVERYTHING)
    await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["end"])
    await insist(again, "answer", {"node": "end", "value": "yes"})
    assert (await again.result())["answer"] == "yes"
    assert lines(cache, "posts.txt", mark) == 1
