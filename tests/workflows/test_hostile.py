"""Tools that return or raise what JSON, a payload or a failure can hardly carry: the node pays, never the run."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.runs import call
from temporalio.client import WorkflowHandle

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


def odd(kind: str, **fields: Any) -> dict[str, Any]:
    return call("a", "odd", args={"kind": kind}, **fields)


@pytest.mark.parametrize("shape", ["answer", "inner", "group"])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("deep", ""),
        ("surrogate", ""),
        ("huge number", ""),
        ("infinite", ""),
        ("not json", ""),
        ("surrogate error", "ToolError: half a pair:"),
        ("long error", "ToolError: xxxx"),
    ],
)
async def test_an_output_that_cannot_be_kept_fails_its_node_in_words(
    start: Start, kind: str, error: str, shape: str
) -> None:
    nodes, groups = [odd(kind)], []
    if shape != "answer":
        nodes += [call("b", args={"value": "$a"}), call("c", args={"value": 1})]
        nodes += [{"id": "j", "kind": "join", "inputs": ["b", "c"], "policy": "settled"}]
        groups = [["a", "b"]] if shape == "group" else []
    handle = await start(plan={"nodes": nodes, "groups": groups}, on_failure="partial")
    report = await handle.result()
    line = report["nodes"][0]
    assert line["status"] == "failed"
    assert line["error"].startswith(error)
    assert len(line["error"]) <= 400
    assert (await handle.query("plan"))["nodes"][0]["error"] == line["error"]


@pytest.mark.parametrize(("kind", "value"), [("none", None), ("keys", {"1": "a"}), ("quotes", 'a"b\\c\u2028\u0000')])
async def test_an_unusual_output_that_is_json_is_kept(start: Start, kind: str, value: Any) -> None:
    nodes = [odd(kind), call("b", args={"value": "$a"})]
    report = await (await start(plan={"nodes": nodes, "answer": ["$a", "$b.value"]})).result()
    assert (report["status"], report["answer"]) == ("done", [value, value])


@pytest.mark.parametrize("depth", [120, 121, 198, 199, 201, 254])
async def test_a_deep_output_is_kept_up_to_a_depth_that_every_reader_can_read(start: Start, depth: int) -> None:
    wrapped: Any = "$a"
    for _ in range(50):
        wrapped = [wrapped]
    nodes = [call("a", "odd", args={"kind": "deep", "depth": depth}), call("b", args={"value": "$a"})]
    for answer in ("$a", wrapped):
        handle = await start(plan={"nodes": nodes, "answer": answer}, on_failure="partial")
        report = await handle.result()
        line = report["nodes"][0]
        assert line["status"] == ("succeeded" if depth <= 120 else "failed")
        if depth > 120:
            sentence = "the output is nested more than 120 levels deep. Return it flatter, or as text"
            assert line["error"] == f"OutputRefused: {sentence}"
