"""Maps without barriers: chains of nodes in `do`, maps behind maps, conditions on items, joins of items."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import called, happens, insist, status_of, until
from temporalio.client import Client

from sennit.starter.client.decisions import Decisions
from sennit.starter.client.output import read_output
from sennit.workflows.plan.digests import digest_in

ITEMS = {
    "items": {"type": "array", "default": [{"n": index, "kind": "odd" if index % 2 else "even"} for index in range(5)]}
}
HOLD = {"id": "hold", "kind": "gate", "question": "Go on?"}


def each(name: str, do: Any, over: str = "$input.items", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "map", "over": over, "do": do, **fields}


def stage(tool: str = "nap", **fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": tool, **fields}


def release(held: Path, *names: str) -> None:
    """Let calls of `hang` with these paths end."""
    for name in names:
        (held / f"{name}.end").touch()


@pytest.mark.parametrize("fuse", ["off", "on"])
async def test_a_slow_item_holds_back_nothing_of_the_others_in_a_chain(
    start: Start, held: Path, cache: Path, fuse: str
) -> None:
    release(held, *(f"m[{index}].page" for index in range(1, 5)))
    chain = [stage("hang", id="page", args={"name": held.name}), stage(args={"value": ["$page.value", "$item.n"]})]
    handle = await start(plan={"inputs": ITEMS, "nodes": [each("m", chain)], "answer": "$m", "fuse": fuse})
    view = await until(handle, lambda view: all(status_of(view, f"m[{n}]") == "succeeded" for n in range(1, 5)))
    assert (status_of(view, "m[0].page"), status_of(view, "m[0]")) == ("running", "pending")
    release(held, "m[0].page")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": [None, n]} for n in range(5)])
    assert called(cache, handle) == Counter({f"m[{n}]{end}~1": 1 for n in range(5) for end in ("", ".page")})
    assert [line["id"] for line in report["nodes"]][:3] == ["m", "m[0].page", "m[0]"]


@pytest.mark.parametrize("fuse", ["off", "on"])
async def test_a_slow_item_holds_back_nothing_of_the_others_in_a_map_behind_a_map(
    start: Start, held: Path, cache: Path, fuse: str
) -> None:
    release(held, *(f"a[{index}]" for index in range(1, 5)))
    nodes = [
        each("a", stage("hang", args={"name": held.name})),
        each("b", stage(args={"value": ["$page.value", "b"]}), "$a", **{"as": "page"}),
        each("c", stage(args={"value": "$item.value"}), "$b"),
    ]
    handle = await start(plan={"inputs": ITEMS, "nodes": nodes, "answer": "$c", "fuse": fuse})
    view = await until(handle, lambda view: all(status_of(view, f"c[{n}]") == "succeeded" for n in range(1, 5)))
    assert (status_of(view, "a[0]"), status_of(view, "b[0]")) == ("running", "pending")
    release(held, "a[0]")
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": [None, "b"]}] * 5)
    assert called(cache, handle) == Counter({f"{name}[{n}]~1": 1 for n in range(5) for name in "abc"})


async def test_a_condition_in_do_sorts_items_and_a_skipped_one_is_null(start: Start, cache: Path) -> None:
    is_odd = {"ref": "$item.kind", "op": "eq", "value": "odd"}
    chain = [stage(id="page", when={"not": is_odd}, args={"value": "$item.n"}), stage(args={"value": "$page.value"})]
    nodes = [each("odd", stage(when=is_odd, args={"value": "$item.n"})), each("even", chain)]
    nodes.append(each("then", stage(args={"value": "$item"}), "$odd"))
    handle = await start(plan={"inputs": ITEMS, "nodes": nodes, "answer": ["$odd", "$even", "$then"]})
    report = await handle.result()
    odd = [{"value": n} if n % 2 else None for n in range(5)]
    even = [None if n % 2 else {"value": n} for n in range(5)]
    assert (report["status"], report["answer"]) == (
        "done",
        [odd, even, [{"value": each} if each else None for each in odd]],
    )
    status = {line["id"]: line["status"] for line in report["nodes"]}
    assert [status[name] for name in ("odd[0]", "odd[1]", "even[1].page", "even[1]", "then[0]")] == [
        "skipped",
        "succeeded",
        *["skipped"] * 3,
    ]
    assert not any(name in called(cache, handle) for name in ("odd[0]~1", "even[1].page~1", "even[1]~1", "then[0]~1"))


@pytest.mark.parametrize(("policy", "ends"), [("first", ["m[3]"]), ({"quorum": "40%"}, ["m[1]", "m[3]"])])
async def test_enough_items_close_a_join_and_stop_the_rest(
    start: Start, held: Path, policy: Any, ends: list[str]
) -> None:
    release(held, *ends)
    nodes = [
        each("m", [stage("hang", id="never", args={"name": held.name}), stage(args={"value": "$item.n"})]),
        {"id": "some", "kind": "join", "items": "m", "policy": policy},
    ]
    release(held, *(f"{name}.never" for name in ends))
    handle = await start(plan={"inputs": ITEMS, "nodes": nodes, "answer": "$some"})
    report = await handle.result()
    values = [{"value": int(name[2])} for name in ends]
    assert (report["status"], report["answer"]) == ("done", values[0] if policy == "first" else values)
    status = {line["id"]: line["status"] for line in report["nodes"]}
    assert [status["m"], status["m[0].never"], status["m[0]"], status["m[3]"]] == [*["cancelled"] * 3, "succeeded"]
    await happens((held / "m[0].never.cancelled").exists)


async def test_one_item_runs_again_without_the_others(client: Client, start: Start, held: Path, cache: Path) -> None:
    for n in range(5):
        (held / f"{n}.txt").write_text(f"text {n}")
    chain = [
        stage("fetch", id="page", args={"file": f"{held.name}/${{item.n}}.txt"}),
        stage(args={"value": "$page.value"}),
    ]
    nodes = [each("m", chain), each("b", stage(args={"value": "$item.value"}), "$m"), HOLD]
    handle = await start(plan={"inputs": ITEMS, "nodes": nodes, "answer": ["$b", "$hold"]})
    await until(handle, lambda view: status_of(view, "b") == "succeeded" and bool(view["status"] == "blocked"))
    await insist(handle, "retry_node", {"node": "m[2].page"})
    await until(handle, lambda view: status_of(view, "m") == "succeeded" and called(cache, handle)["m[2].page~2"] == 1)
    assert not [name for name in called(cache, handle) if name.endswith("~2") and name != "m[2].page~2"]
    (held / "2.txt").write_text("another")
    assert await read_output(client, handle.id, "m[2].page", "value") == "text 2"
    await Decisions(client, handle.id).retry("m[2].page")
    await until(handle, lambda view: status_of(view, "b") == "succeeded" and called(cache, handle)["b[2]~2"] == 1)
    names = ["m[2].page", "m[2]", "m[2].text", "m[9].page"]
    found = [digest_in(place["ref"]) for place in (await handle.query("outputs", {"nodes": names}))["places"]]
    assert (found[0] == found[1] != "", found[2:]) == (True, ["", ""])
    await insist(handle, "answer", {"node": "hold", "value": "yes"})
    report = await handle.result()
    assert report["answer"] == [[{"value": f"text {n}" if n != 2 else "another"} for n in range(5)], "yes"]
    again = [name for name in called(cache, handle) if not name.endswith("~1")]
    assert sorted(again) == ["b[2]~2", "m[2].page~2", "m[2].page~3", "m[2]~2"]


async def test_an_item_whose_chain_has_failed_is_retried_by_its_own_name(start: Start, held: Path, cache: Path) -> None:
    chain = [
        stage("fail", id="page", args={"unless": f"{held.name}/${{item.n}}.ok", "message": "no page"}),
        stage(args={"value": ["$page.value", "$item.n"]}),
    ]
    for n in (0, 1, 3, 4):
        (held / f"{n}.ok").touch()
    nodes = [each("m", chain), each("b", stage(args={"value": "$item.value"}), "$m")]
    handle = await start(plan={"inputs": ITEMS, "nodes": nodes, "answer": "$b"})
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    assert [(item["node"], item["why"]) for item in view["blocked"]] == [("m", "failed")]
    assert "m[2].page failed: ToolError: no page" in str(view["blocked"])
    (held / "2.ok").touch()
    assert await insist(handle, "retry_node", {"node": "m[2]"}) == "m[2] runs again"
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": ["recovered", n]} for n in range(5)])
    counted = called(cache, handle)
    assert counted.total() == 16
    assert [counted[name] for name in ("m[2].page~1", "m[2].page~2", "m[2]~1", "b[2]~1")] == [1, 1, 1, 1]


async def test_a_run_of_which_every_item_failed_is_partial_and_says_why(start: Start) -> None:
    """Each item is skipped by its `on_error`, so the map has a value; but nothing of it is there."""
    do = stage("calculate", args={"expression": "1 / 0"}, on_error="skip")
    handle = await start(plan={"inputs": ITEMS, "nodes": [each("m", do)], "answer": "$m"})
    report = await handle.result()
    assert report["status"] == "partial"
    assert report["problem"].startswith("every item of `m` failed: ")


async def test_a_failure_that_nothing_uses_is_a_warning_of_a_run_that_is_done(start: Start) -> None:
    lost = stage("calculate", id="lost", args={"expression": "1 / 0"})
    handle = await start(plan={"nodes": [lost, stage(id="a", args={"value": 1})], "answer": "$a"})
    report = await handle.result()
    assert (report["status"], report["answer"], report["problem"]) == ("done", {"value": 1}, None)
    assert [text for text in report["warnings"] if text.startswith("`lost` failed, and nothing uses it: ")]
