"""Outputs that are too long for a prompt: the model reads on in them by calls."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call

from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

LINES = [f"{number:05d} the weir at mile {number} holds {number * 7} litres" for number in range(5_000)]
TEXT = "\n".join(LINES)[:200_000]


@pytest.fixture(autouse=True)
def long_text(cache: Path) -> None:
    (cache / "long.txt").write_text(TEXT)


def plan(over: str, *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    reader = {"id": "n7", "kind": "llm", "prompt": "Which weir is the largest? $doc.value", "context": {"over": over}}
    nodes = [call("doc", "fetch", args={"file": "long.txt"}), {**reader, **fields}, *more]
    return {"nodes": nodes, "answer": "$n7"}


def ended(report: dict[str, Any]) -> dict[str, str]:
    return {line["id"]: line["status"] for line in report["nodes"]}


async def test_an_output_is_read_on_in_by_calls(begin: Start, model_server: ModelServer) -> None:
    def read(**arguments: Any) -> Call:
        return Call("read_output", {"node": "doc.value", **arguments})

    secret = {"id": "secret", "kind": "tool", "tool": "fetch", "args": {"file": "long.txt"}}
    first = (read(**{"from": 48_000, "characters": 16_000}), read(find="MILE 3999 "))
    model_server.on("Which weir", Reply(calls=first), results=0)
    bad = (read(node="secret"), read(characters=99_000), read(find="no such words"), read(output="mine"))
    model_server.on("Which weir", Reply(calls=bad), results=2)
    model_server.on("Which weir", "The last.", results=6)
    handle = await begin(plan=plan("reference", secret))
    report = await handle.result()
    assert report["answer"] == "The last.", report
    begun, _, last = model_server.asked
    assert begun.tools == ("read_output",)
    cut = '152,000 more characters of doc.value; read_output(node="doc.value", from=48000) reads on'
    assert f"[cut: {cut}]" in begun.text
    piece, found, refused, too_much, nowhere, own = last.results
    head = "[characters 48,000 to 64,000 of 200,000 of doc.value; from=64000 reads on]"
    assert f"\n{head}\n{TEXT[48_000:64_000]}\n" in piece
    assert "the weir at mile 3999 holds" in found
    assert "there is no output 'secret' to read; there are doc.value" in refused
    assert "16000" in too_much
    assert "does not hold these words from character 0 on" in nowhere
    assert "characters 0 to 8,000 of 200,000" in own, "what is read is never the model's to say"
    assert ended(report)["n7_t1_1"] == "succeeded"


@pytest.mark.parametrize("gathers", ["a join", "the joiner"])
async def test_a_joiner_reads_on_in_its_results(begin: Start, model_server: ModelServer, gathers: str) -> None:
    lost = call("lost", "fail", args={"message": "gone"})
    both = {"id": "both", "kind": "join", "inputs": ["lost", "doc"], "policy": "settled"}
    fields = {"prompt": "$goal $both"} if gathers == "a join" else {"prompt": "$goal", "inputs": ["lost", "doc"]}
    reads = (Call("read_output", {"node": "doc", "find": "mile 3999"}), Call("read_output", {"node": "lost"}))
    model_server.on("Which weir", Reply(calls=reads), results=0)
    evidence = '[{"node": "doc", "claim": "c", "quote": "the weir at mile 3999"}, '
    evidence += '{"node": "n7_t1_1", "claim": "c", "quote": "weir at mile 3999"}]'
    model_server.on("Which weir", f'{{"answer": "That [1][2]", "evidence": {evidence}}}', results=2)
    more = [lost, *([both] if gathers == "a join" else [])]
    handle = await begin(goal="Which weir?", plan=plan("reference", *more, role="joiner", **fields))
    report = await handle.result()
    assert [piece["quote"] for piece in report["evidence"]] == ["the weir at mile 3999", "weir at mile 3999"], report
    last = model_server.asked[-1]
    assert "doc, succeeded:\n<<<DATA" in last.text
    assert "n7_t1_1, succeeded" not in last.text, "the result of a call appears once"
    assert "mile 3999 holds" in last.results[0]
    assert "there is no output 'lost' to read; there are doc" in last.results[1]
