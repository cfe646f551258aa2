"""Maps whose items are runs of their own: tool loops, programs, and nodes that run in place of others in `do`."""

import re
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import status_of, until
from temporalio.client import Client

from sennit.starter.client.decisions import Decisions
from sennit.starter.client.output import read_output
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer

LIST = {"list": {"type": "array", "default": [{"n": n, "kind": "odd" if n % 2 else "even"} for n in range(3)]}}


def each(do: Any, name: str = "m", over: str = "$input.list", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "map", "over": over, "do": do, **fields}


def tool(name: str = "nap", **fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": name, **fields}


async def test_models_of_items_call_tools(client: Client, begin: Start, model_server: ModelServer) -> None:
    def says(asked: Asked) -> Reply:
        results = [text for role, text in asked.turns if role == "tool"]
        if results:
            return Reply(f"It is {results[-1]}")
        [number] = re.findall(r'"n":\s*(\d)', asked.text)
        return Reply(calls=(Call("nap", {"value": f"seen {number}"}),))

    model_server.on("Look at", says)
    do = {"kind": "llm", "prompt": "Look at $item.", "tools": ["nap"], "max_turns": 3}
    handle = await begin(plan={"inputs": LIST, "nodes": [each(do)], "answer": "$m"})
    report = await handle.result()
    assert report["status"] == "done"
    assert [str(number) in answer for number, answer in enumerate(report["answer"])] == [True] * 3
    assert report["usage"]["calls"] == 6
    for asked in model_server.asked:
        assert "Look at [item]." in asked.text, "an item is data of nobody in particular"
    assert await read_output(client, handle.id, "m[1].value_t1_1", "value") == "seen 1"


async def test_items_run_programs(client: Client, start: Start) -> None:
    script = "async def main(n, other):\n    found = await nap(value=n * 10)\n    return [found['value'], other]\n"
    nodes = [
        {"id": "a", **tool(args={"value": "x"})},
        each({"kind": "program", "script": script, "arguments": {"n": "$item.n", "other": "$a.value"}}),
    ]
    handle = await start(plan={"inputs": LIST, "nodes": nodes, "answer": "$m"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [[0, "x"], [10, "x"], [20, "x"]])
    assert await read_output(client, handle.id, "m[2].value") == [20, "x"]


async def test_a_chain_goes_on_with_what_ran_in_place_of_a_node(start: Start, cache: Path, held: Path) -> None:
    """Item 1 has its file; the others get along with what runs instead, and item 2 has no value there either."""
    (held / "1.txt").write_text("text 1")
    chain = [
        tool(
            "fetch",
            id="page",
            args={"file": f"{held.name}/${{item.n}}.txt"},
            on_error={"instead": "spare"},
            retry={"attempts": 1},
        ),
        tool(id="spare", args={"value": "spare $item.n"}),
        tool(args={"value": ["$page.value", "$item.n"]}),
    ]
    handle = await start(plan={"inputs": LIST, "nodes": [each(chain)], "answer": "$m"})
    report = await handle.result()
    assert report["status"] == "done", report
    assert report["answer"] == [{"value": ["spare 0", 0]}, {"value": ["text 1", 1]}, {"value": ["spare 2", 2]}]


async def test_a_condition_skips_an_item_and_an_error_fails_it_by_its_node(start: Start, held: Path) -> None:
    is_odd = {"ref": "$item.kind", "op": "eq", "value": "odd"}
    script = "async def main(page):\n    return page\n"
    chain = [
        tool(id="page", when={"not": is_odd}, args={"value": "$item.n"}),
        tool("fail", id="bad", when={"ref": "$page.value", "op": "gt", "value": 1}, on_error={"fallback": 7}),
        {"kind": "program", "script": script, "arguments": {"page": "$bad"}},
    ]
    handle = await start(plan={"inputs": LIST, "nodes": [each(chain)], "answer": "$m"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [None, None, 7])
    status = {line["id"]: line["status"] for line in report["nodes"]}
    assert [status[f"m[{n}]"] for n in range(3)] == ["skipped", "skipped", "succeeded"]


@pytest.mark.parametrize("on_error", ["fail", "skip"])
async def test_an_item_that_fails_is_repaired_alone(
    client: Client, start: Start, cache: Path, held: Path, on_error: str
) -> None:
    script = "async def main(n):\n    return (await fail(unless=f'{n}', message=f'no {n}'))['value']\n"
    program = {"kind": "program", "script": script, "arguments": {"n": f"{held.name}/$item.n"}, "on_error": on_error}
    for n in (0, 2):
        (held / f"{n}").touch()
    handle = await start(plan={"inputs": LIST, "nodes": [each(program)], "answer": "$m"})
    if on_error == "skip":
        report = await handle.result()
        assert (report["status"], report["answer"]) == ("done", ["recovered", None, "recovered"])
        return
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    assert (status_of(view, "m"), status_of(view, "m[1]")) == ("failed", "failed")
    assert any("no " in (line["error"] or "") for line in view["nodes"] if line["id"] == "m[1]")
    (held / "1").touch()
    await Decisions(client, handle.id).retry("m[1]")
    report = await handle.result()
    assert report["answer"] == ["recovered"] * 3
