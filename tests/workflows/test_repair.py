"""What people do to a run: run a node again, give one up, approve, answer, finish; and what happens if they do not."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import remembered_or_not
from doubles.runs import View, call, insist, status_of, until
from doubles.tools import calls
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

pytestmark = [pytest.mark.server, remembered_or_not]
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
Handle = WorkflowHandle[Any, Any]
HOLD = {"id": "hold", "kind": "gate", "question": "Go on?"}


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


def lines(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in report["nodes"]}


def called(cache: Path, handle: Handle) -> Counter[str]:
    assert handle.first_execution_run_id is not None
    return Counter(calls(cache, handle.first_execution_run_id))


async def refused(handle: Handle, name: str, given: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await handle.execute_update(name, given)
    return str(failed.value.cause)


def family(file: str) -> dict[str, Any]:
    """A source with a child, a grandchild and a stranger, and a gate that keeps the run from ending."""
    nodes = [
        call("a", "fetch", args={"file": file}),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": "$b.value"}),
        call("z", args={"value": "alone"}),
        HOLD,
    ]
    return {"nodes": nodes, "answer": ["$c", "$z", "$hold"]}


async def test_a_node_run_again_with_the_same_output_leaves_what_is_behind_it(start: Start, cache: Path) -> None:
    (cache / "same.txt").write_text("one")
    handle = await start(plan=family("same.txt"))
    await until(handle, blocked)
    await insist(handle, "retry_node", {"node": "a"})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["a~2"] == 1)
    await insist(handle, "answer", {"node": "hold", "value": "yes"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": "one"}, {"value": "alone"}, "yes"])
    assert called(cache, handle) == Counter({"a~1": 1, "a~2": 1, "b~1": 1, "c~1": 1, "z~1": 1})


async def test_a_node_run_again_with_another_output_has_what_is_behind_it_run_again(start: Start, cache: Path) -> None:
    (cache / "other.txt").write_text("one")
    handle = await start(plan=family("other.txt"))
    await until(handle, blocked)
    (cache / "other.txt").write_text("two")
    await insist(handle, "retry_node", {"node": "a"})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["c~2"] == 1)
    await insist(handle, "answer", {"node": "hold", "value": "yes"})
    report = await handle.result()
    assert report["answer"] == [{"value": "two"}, {"value": "alone"}, "yes"]
    again = {f"{node}~{generation}": 1 for node in "abc" for generation in (1, 2)}
    assert called(cache, handle) == Counter({**again, "z~1": 1})


async def test_a_write_that_succeeded_is_repeated_only_when_that_is_said(start: Start, cache: Path) -> None:
    (cache / "source.txt").write_text("one")
    nodes = [
        call("a", "fetch", args={"file": "source.txt"}),
        call("w", "note", args={"text": "$a.value"}),
        HOLD,
    ]
    handle = await start(plan={"nodes": nodes, "answer": ["$w", "$hold"]}, approval="never")
    await until(handle, lambda view: blocked(view) and status_of(view, "w") == "succeeded")
    for node in ("w", "a"):
        said = "is running"  # an update is taken before the completion that comes in the same task
        while "is running" in said:
            said = await refused(handle, "retry_node", {"node": node})
        assert 'this may repeat what w wrote; add "repeat_effect": true' in said
    await insist(handle, "retry_node", {"node": "a", "repeat_effect": True})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["a~2"] == 1)
    assert called(cache, handle)["w~2"] == 0
    await insist(handle, "retry_node", {"node": "w", "repeat_effect": True})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["w~2"] == 1)
    await insist(handle, "answer", {"node": "hold", "value": 1})
    await handle.result()
    keys = [line.split()[0] for line in (cache / "notes.txt").read_text().splitlines()]
    run = handle.first_execution_run_id
    assert [key for key in keys if key.startswith(f"{run}/")] == [f"{run}/w/1", f"{run}/w/2"]


async def test_an_approved_write_runs_once_under_its_key(start: Start, cache: Path) -> None:
    handle = await start(plan={"nodes": [call("w", "note", args={"text": "approved"})]})
    view = await until(handle, blocked)
    assert view["blocked"][0]["command"] == f"sennit approve {handle.id} w"
    assert called(cache, handle) == Counter()
    assert await insist(handle, "approve", {"node": "w"}) == "w may run"
    report = await handle.result()
    assert report["status"] == "done"
    assert called(cache, handle) == Counter({"w~1": 1})


async def test_a_node_given_up_lets_a_tolerant_join_go_on(start: Start) -> None:
    nodes = [
        call("a", "fail"),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": 3}),
        {"id": "j", "kind": "join", "inputs": ["b", "c"], "policy": "settled"},
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert [item["status"] for item in report["answer"]] == ["skipped", "succeeded"]
    handle = await start(plan={"nodes": [*nodes[:3], {**nodes[3], "policy": "all"}]})
    await until(handle, blocked)
    assert await insist(handle, "skip_node", {"node": "a"}) == "a is given up"
    report = await until_ended(handle)
    assert lines(report)["a"]["error"] == "Skipped: a person skipped it"
    assert {name: line["status"] for name, line in lines(report).items()}["b"] == "skipped"


async def until_ended(handle: Handle) -> dict[str, Any]:
    """Finish the run if giving up a node has left it blocked; return its report."""
    view = await until(handle, lambda view: view["phase"] == "ended" or blocked(view))
    if blocked(view):
        await insist(handle, "finish", {})
    report: dict[str, Any] = await handle.result()
    return report


async def test_a_running_node_can_be_given_up(start: Start, cache: Path) -> None:
    nodes = [call("slow", "hang", args={"name": "given-up"}), call("b", needs=["slow"]), call("c", args={"value": 1})]
    handle = await start(plan={"nodes": nodes, "answer": ["$b", "$c"]})
    await until(handle, lambda _: (cache / "given-up" / "slow.begun").exists())
    await insist(handle, "skip_node", {"node": "slow"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", [None, {"value": 1}])
    assert {name: line["status"] for name, line in lines(report).items()} == {
        "slow": "skipped",
        "b": "skipped",
        "c": "succeeded",
    }
    (cache / "given-up" / "slow.begun").unlink()


async def test_a_run_finished_by_a_person_answers_with_what_there_is(start: Start, cache: Path) -> None:
    nodes = [call("slow", "hang", args={"name": "finished"}), call("c", args={"value": 1}), HOLD]
    handle = await start(plan={"nodes": nodes, "answer": ["$slow", "$c", "$hold"]})
    begun = cache / "finished" / "slow.begun"
    await until(handle, lambda view: begun.exists() and status_of(view, "c") == "succeeded")
    assert await handle.execute_update("finish") == "the run ends now with what there is"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", [None, {"value": 1}, None]), report
    assert lines(report)["slow"]["status"] == "cancelled"
    begun.unlink()


async def test_a_gate_that_nobody_answers_fails_like_any_node(start: Start) -> None:
    gate = {"id": "g", "kind": "gate", "question": "?", "timeout": "300ms"}
    report = await (await start(plan={"nodes": [gate]}, on_failure="partial")).result()
    assert report["nodes"][0]["error"] == "GateTimeout: nobody answered in time"
    report = await (await start(plan={"nodes": [{**gate, "on_error": {"fallback": "no"}}]})).result()
    assert (report["status"], report["answer"]) == ("done", "no")


async def test_a_parked_run_ends_partial_when_nobody_comes(start: Start) -> None:
    nodes = [call("a", "fail"), call("b", needs=["a"]), call("c", args={"value": 1})]
    handle = await start(plan={"nodes": nodes, "answer": ["$b", "$c"]}, park_for="1s")
    await until(handle, blocked)
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", [None, {"value": 1}])
    assert {name: line["status"] for name, line in lines(report).items()} == {
        "a": "failed",
        "b": "skipped",
        "c": "succeeded",
    }


def _failed_in(cache: Path, handle: WorkflowHandle[Any, Any], generation: int, view: View) -> bool:
    return blocked(view) and called(cache, handle)[f"a~{generation}"] == 1


async def test_a_retry_that_fails_again_parks_the_run_again(start: Start, cache: Path) -> None:
    handle = await start(plan={"nodes": [call("a", "fail"), call("b", needs=["a"])]})
    for generation in (1, 2, 3):
        await until(handle, partial(_failed_in, cache, handle, generation))
        await insist(handle, "retry_node", {"node": "a"})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["a~4"] == 1)
    await insist(handle, "finish", {})
    assert (await handle.result())["status"] == "partial"


async def test_one_item_of_a_map_is_run_again_alone(start: Start, cache: Path) -> None:
    nodes = [
        call("list", "count", args={"count": 3}),
        {
            "id": "m",
            "kind": "map",
            "over": "$list.items",
            "do": {"kind": "tool", "tool": "fail", "args": {"message": "item $item.n", "unless": "item-$item.n"}},
        },
    ]
    (cache / "item-0").touch()
    (cache / "item-2").touch()
    handle = await start(plan={"nodes": nodes})
    await until(handle, lambda view: blocked(view) and called(cache, handle)["m[1]~1"] == 1)
    (cache / "item-1").touch()
    await insist(handle, "retry_node", {"node": "m[1]"})
    report = await handle.result()
    assert report["answer"] == [{"value": "recovered"}] * 3
    assert called(cache, handle) == Counter({"m[0]~1": 1, "m[1]~1": 1, "m[2]~1": 1, "m[1]~2": 1})
    for index in range(3):
        (cache / f"item-{index}").unlink()


async def test_a_group_member_that_failed_is_run_again_alone(start: Start, cache: Path) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("b", "fail", args={"unless": "group-b"}, needs=["a"]),
        call("c", args={"value": "$a.value"}),
        {"id": "j", "kind": "join", "inputs": ["b", "c"]},
    ]
    handle = await start(plan={"nodes": nodes, "groups": [["a", "b", "c"]]})
    await until(handle, blocked)
    (cache / "group-b").touch()
    await insist(handle, "retry_node", {"node": "b"})
    assert (await handle.result())["answer"] == [{"value": "recovered"}, {"value": 1}]
    assert called(cache, handle) == Counter({"a~1": 1, "b~1": 1, "c~1": 1, "b~2": 1})
    (cache / "group-b").unlink()


async def test_every_wish_at_once_is_taken_in_order(start: Start) -> None:
    """Updates that come in one workflow task, before the run has had a turn, do not trip over each other."""
    last = {"id": "last", "kind": "gate", "question": "End?"}
    handle = await start(plan={"nodes": [call("a", "fail"), HOLD, last], "answer": ["$a", "$hold", "$last"]})
    await until(handle, lambda view: status_of(view, "a") == "failed")
    wishes = [("retry_node", {"node": "a"})] * 5 + [("answer", {"node": "hold", "value": index}) for index in range(4)]
    wishes += [("skip_node", {"node": "a"})] * 3
    taken = await asyncio.gather(*(handle.execute_update(*wish) for wish in wishes), return_exceptions=True)
    for answer in taken:
        assert isinstance(answer, str | WorkflowUpdateFailedError), answer
    await until(handle, lambda view: blocked(view) and status_of(view, "hold") == "succeeded")
    await insist(handle, "answer", {"node": "last", "value": "bye"})
    await until_ended(handle)
    assert (await handle.result())["answer"][1] in range(4)
