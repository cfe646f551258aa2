"""Joins in real runs: no activity and no hop, and everything that people and nodes see of them as ever."""

from pathlib import Path
from typing import Any

from doubles.events import activities, weight
from doubles.local_workers import Handle, Start
from doubles.runs import call, called, insist, status_of, until
from temporalio.client import Client

from sennit.starter.client.output import read_output
from sennit.workflows.plan.language.packing import pack_plan


def join(name: str, *inputs: str, policy: Any = "all", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "join", "inputs": list(inputs), "policy": policy, **fields}


async def joins_run(handle: Handle) -> list[str]:
    """Return the activities that put a join's value together."""
    return [name for kind, name in await activities(handle) if kind == "join"]


def condition(ref: str, op: str, value: Any) -> dict[str, Any]:
    return {"ref": ref, "op": op, "value": value}


async def test_joins_are_no_activities_and_consumers_bind_their_inputs(start: Start) -> None:
    """With conditions and a map that read joins, a condition on a join, and a join of joins."""
    nodes = [
        call("two", "count", args={"count": 2}),
        call("three", "count", args={"count": 3}),
        call("bad", "fail", args={"message": "broke"}, on_error="skip"),
        call("late", "hang", args={"name": "joins"}),
        join("race", "late", "two", policy="first"),
        join("both", "two", "three"),
        join("ends", "three", "bad", policy="settled"),
        join("most", "two", "three", policy={"quorum": 2}),
        join("nested", "both", "race"),
        join("never", "two", when=condition("$both.length", "eq", 3)),
        call("big", when=condition("$both[1].count", "gt", 2), args={"value": "$both[1].count"}),
        call("small", when=condition("$race.count", "gt", 2)),
        call("told", when=condition("$ends[1].status", "eq", "skipped"), args={"value": "$ends"}),
        {"id": "each", "kind": "map", "over": "$race.items", "do": call("", args={"value": "$item.n"})},
        call("deep", args={"value": "$nested[0][1].count"}),
        call("said", args={"value": "counts: ${most[0].count} ${most[1].count}"}),
    ]
    del nodes[-3]["do"]["id"]
    names = ("big", "small", "told", "each", "deep", "said", "never")
    handle = await start(plan={"nodes": nodes, "answer": {name: f"${name}" for name in names}})
    report = await handle.result()
    found = {name: value["value"] if isinstance(value, dict) else value for name, value in report["answer"].items()}
    three = {"count": 3, "items": [{"n": 0}, {"n": 1}, {"n": 2}]}
    ends = [
        {"id": "three", "status": "succeeded", "value": three, "error": None},
        {"id": "bad", "status": "skipped", "value": None, "error": "ToolError: broke"},
    ]
    assert found.pop("told") == ends
    assert found == {
        "big": 3, "small": None, "each": [{"value": 0}, {"value": 1}], "deep": 3, "said": "counts: 2 3", "never": None,
    }  # fmt: skip
    statuses = {line["id"]: line["status"] for line in report["nodes"]}
    assert (statuses["late"], statuses["never"], statuses["small"]) == ("cancelled", "skipped", "skipped")
    assert await joins_run(handle) == []


async def test_people_see_a_join_as_any_other_node(client: Client, start: Start) -> None:
    """Its status, its preview, its output, and itself as the answer."""
    nodes = [
        call("a", args={"value": "x"}),
        call("b", "fail", args={"message": "broke"}, on_error="skip"),
        join("both", "a", "b", policy="settled"),
        join("one", "a", policy="first"),
        join("pair", "a", "one"),
        {"id": "hold", "kind": "gate", "question": "Go on?"},
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$both"})
    view = await until(handle, lambda view: {status_of(view, each) for each in ("both", "pair")} == {"succeeded"})
    shown = {line["id"]: line.get("preview") for line in view["nodes"]}
    assert shown["one"] == shown["a"] == '{"value":"x"}'
    assert shown["both"] == '[a succeeded: {"value":"x"}, b skipped]'
    assert shown["pair"] == '[{"value":"x"}, {"value":"x"}]'
    assert await read_output(client, handle.id, "pair") == [{"value": "x"}] * 2
    assert await read_output(client, handle.id, "both", "[0].value.value") == "x"
    events = (await handle.query("events", {}))["events"]
    assert [each["text"] for each in events if each.get("node") == "one"] == ['{"value":"x"}']
    await insist(handle, "answer", {"node": "hold", "value": "yes"})
    report = await handle.result()
    assert report["answer"][0] == {"id": "a", "status": "succeeded", "value": {"value": "x"}, "error": None}
    line = next(line for line in report["nodes"] if line["id"] == "both")
    assert (line["status"], line["attempts"]) == ("succeeded", 0)


async def test_a_fork_takes_over_what_reads_a_join(start: Start, cache: Path) -> None:
    nodes = [call("a"), call("b", args={"value": 2}), join("j", "a", "b"), call("c", args={"value": "$j[1].value"})]
    plan = {"nodes": nodes, "answer": ["$c.value", "$j"]}
    first = await start(plan=plan)
    made = await first.result()
    fork = await start(plan=plan, origins=[first.first_execution_run_id])
    assert (await fork.result())["answer"] == made["answer"]
    assert (sum(called(cache, first).values()), sum(called(cache, fork).values())) == (3, 0)


async def test_two_hundred_inputs_and_their_consumers_take_a_history_that_grows_with_both(start: Start) -> None:
    weights = []
    for inputs, consumers in ((50, 5), (200, 20)):
        nodes = [call(f"n{place}", "count", args={"count": 0}) for place in range(inputs)]
        nodes.append(join("j", *(node["id"] for node in nodes)))
        nodes += [call(f"r{place}", args={"value": f"$j[{place}].count"}) for place in range(consumers)]
        answer = [f"$r{place}.value" for place in range(consumers)]
        handle = await start(plan_packed=pack_plan({"nodes": nodes, "answer": answer}))
        assert (await handle.result())["answer"] == [0] * consumers
        assert len(await joins_run(handle)) == 1, "it is stored once"
        events, size = await weight(handle)
        print(f"{inputs} x {consumers}: {events} events, {size} bytes")
        weights.append((events / (inputs + consumers), size / (inputs + consumers)))
    small, large = weights
    assert large[0] < small[0] * 1.2
    assert large[1] < small[1] * 1.2
