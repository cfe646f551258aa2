"""Tools that return or raise what JSON, a payload or a failure can hardly carry: the node pays, never the run."""

from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call
from temporalio.client import WorkflowUpdateFailedError

LOST = {
    "deep": "",
    "surrogate": "",
    "huge number": "",
    "infinite": "",
    "not json": "",
    "surrogate error": "ToolError: half a pair:",
    "long error": "ToolError: xxxx",
}
KEPT: dict[str, Any] = {"none": None, "keys": {"1": "a"}, "quotes": 'a"b\\c\u2028\u0000'}


@pytest.mark.parametrize("shape", ["answer", "group"])
async def test_an_output_that_cannot_be_kept_fails_its_node_with_a_short_reason(start: Start, shape: str) -> None:
    nodes: list[dict[str, Any]] = []
    for number, kind in enumerate(LOST):
        nodes.append(call(f"a{number}", "odd", args={"kind": kind}))
        if shape != "answer":
            nodes += [call(f"b{number}", args={"value": f"$a{number}"}), call(f"c{number}", args={"value": 1})]
            nodes.append({"id": f"j{number}", "kind": "join", "inputs": [f"b{number}", f"c{number}"]})
            nodes[-1]["policy"] = "settled"
    ends = [f"${'a' if shape == 'answer' else 'j'}{number}" for number in range(len(LOST))]
    plan = {"nodes": nodes, "answer": ends, "fuse": "on" if shape == "group" else "off"}
    handle = await start(plan=plan, on_failure="partial")
    lines = {line["id"]: line for line in (await handle.result())["nodes"]}
    queried = {line["id"]: line for line in (await handle.query("plan"))["nodes"]}
    for number, (kind, error) in enumerate(LOST.items()):
        line = lines[f"a{number}"]
        assert (line["status"], line["error"][: len(error)]) == ("failed", error), kind
        assert len(line["error"]) <= 400, kind
        assert queried[f"a{number}"]["error"] == line["error"], kind


async def test_an_unusual_output_that_is_json_is_kept(start: Start) -> None:
    nodes = [call(kind, "odd", args={"kind": kind}) for kind in KEPT]
    nodes += [call(f"{kind}_read", args={"value": f"${kind}"}) for kind in KEPT]
    answer = {kind: [f"${kind}", f"${kind}_read.value"] for kind in KEPT}
    report = await (await start(plan={"nodes": nodes, "answer": answer})).result()
    assert (report["status"], report["answer"]) == ("done", {kind: [value, value] for kind, value in KEPT.items()})


async def test_a_deep_output_is_kept_up_to_a_depth_that_every_reader_can_read(start: Start) -> None:
    depths = (120, 121, 198, 199, 201, 254)
    nodes = [call(f"a{depth}", "odd", args={"kind": "deep", "depth": depth}) for depth in depths]
    nodes += [call(f"b{depth}", args={"value": f"$a{depth}"}) for depth in depths]
    wrapped: Any = "$a120"
    for _ in range(50):
        wrapped = [wrapped]
    for answer in ([f"$a{depth}" for depth in depths], wrapped):
        report = await (await start(plan={"nodes": nodes, "answer": answer}, on_failure="partial")).result()
        for line, depth in zip(report["nodes"], depths, strict=False):
            assert line["status"] == ("succeeded" if depth <= 120 else "failed"), depth
            if depth > 120:
                sentence = "the output is nested more than 120 levels deep. Return it flatter, or as text"
                assert line["error"] == f"OutputRefused: {sentence}"


async def test_an_update_too_large_to_be_sent_back_is_refused_and_holds_up_nothing(start: Start) -> None:
    """No workflow task fails for it: the fixture that starts runs sees to that."""
    handle = await start(plan={"nodes": [{"id": "g", "kind": "gate", "question": "Which?"}], "answer": "$g"})
    for name, given in (("answer", {"node": "g", "value": "x" * 2_200_000}), ("approve", {"x" * 3_500_000: 1})):
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(name, given)
    assert await handle.execute_update("answer", {"node": "g", "value": "y"}) == "g is answered"
    assert (await handle.result())["answer"] == "y"
