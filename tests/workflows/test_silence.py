"""Updates that follow tasks in which the run had nothing to say.

The SDK's core takes a task without commands that is directly followed by another for a mere sign of life, and puts
the two together whenever it replays them: what an update found settled would then come after the update. The fixture
that starts runs replays each.
"""

from functools import partial
from typing import Any

from doubles.local_workers import Start, remembered_or_not
from doubles.runs import View, approve, call, status_of, until

pytestmark = remembered_or_not


def quiet_end(last: dict[str, Any]) -> list[dict[str, Any]]:
    """Return three nodes that end one by one without starting anything, and `last`, which needs them."""
    naps = [call(f"n{index}", args={"seconds": 0.1 * index, "value": index}) for index in range(3)]
    return [*naps, {**last, "needs": ["n0", "n1", "n2"]}]


async def test_a_write_is_approved_after_silent_tasks(start: Start) -> None:
    handle = await start(plan={"nodes": quiet_end(call("w", "note", args={"text": "x"}))})
    await until(handle, lambda view: status_of(view, "w") == "waiting")
    await approve(handle, "w")
    assert (await handle.result())["status"] == "done"


async def test_a_gate_is_answered_after_silent_tasks(start: Start) -> None:
    """Another gate has its timer already, so that this one needs none."""
    nodes = quiet_end({"id": "late", "kind": "gate", "question": "?", "timeout": "1000s"})
    nodes.append({"id": "soon", "kind": "gate", "question": "?", "timeout": "10s"})
    handle = await start(plan={"nodes": nodes, "answer": ["$late", "$soon"]})
    await until(handle, lambda view: status_of(view, "late") == "waiting")
    for name in ("late", "soon"):
        await handle.execute_update("answer", {"node": name, "value": name})
    assert (await handle.result())["answer"] == ["late", "soon"]


async def test_an_item_of_a_map_that_opened_in_silence_is_given_up(start: Start) -> None:
    """The map's items wait for a lock, so that its opening starts nothing."""
    lock = [{"name": "one"}]
    nodes = [
        call("holder", "hang", args={"name": "silence"}, locks=lock),
        call("n0"),
        call("list", "count", args={"count": 3}, needs=["n0"]),
        call("other", args={"seconds": 0.3}),
        {
            "id": "m",
            "kind": "map",
            "over": "$list.items",
            "do": {"kind": "tool", "tool": "nap", "locks": lock, "on_error": "skip"},
        },
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$m"}, on_failure="partial")
    await until(handle, lambda view: status_of(view, "m[2]") == "pending" and status_of(view, "other") == "succeeded")
    await handle.execute_update("skip_node", {"node": "m[1]"})
    await handle.execute_update("skip_node", {"node": "holder"})
    report = await handle.result()
    statuses = {line["id"]: line["status"] for line in report["nodes"]}
    assert [statuses[f"m[{index}]"] for index in range(3)] == ["succeeded", "skipped", "succeeded"]


def rests(node: str, view: View) -> bool:
    return status_of(view, node) == "succeeded" and view["status"] == "blocked"


async def test_a_node_is_run_again_after_silent_tasks(start: Start) -> None:
    hold = {"id": "hold", "kind": "gate", "question": "?"}
    handle = await start(plan={"nodes": [*quiet_end(call("last", needs=[])), hold], "answer": "$hold"})
    await until(handle, partial(rests, "last"))
    for name in ("n0", "n1", "last"):
        await handle.execute_update("retry_node", {"node": name})
        await until(handle, partial(rests, name))
    await handle.execute_update("answer", {"node": "hold", "value": 1})
    assert (await handle.result())["status"] == "done"
