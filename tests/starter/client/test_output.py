"""Outputs of real runs, as a client reads them: whole, of this run alone, or one sentence why not."""

import asyncio
import base64
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call
from temporalio.client import Client, WorkflowExecutionStatus

from sennit.starter.client import output
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Exit, InvalidRequest, NoAnswer, NoOutput, NotEnded, Refused
from sennit.starter.client.run import Run
from sennit.starter.limits import MAX_OUTPUT_CHANGES
from sennit.workflows.messages.outputs import OutputPart, OutputsCall, OutputsReply

pytestmark = pytest.mark.timeout(100)
SECRET = "hunter-2-is-no-password"


@pytest.fixture
def sennit(client: Client, start: Start) -> Sennit:
    return Sennit(client, local_server(client.service_client.config.target_host, None))


async def begun(start: Start, sennit: Sennit, *nodes: dict[str, Any], **fields: Any) -> Run[Any]:
    handle = await start(plan={"nodes": list(nodes), **fields})
    return await sennit.find(handle.id)


def told(text: str) -> dict[str, Any]:
    return {"tool": "nap", "args": {"value": text}}


async def test_a_refused_run_says_why_it_has_no_outputs(start: Start, sennit: Sennit) -> None:
    run = await begun(start, sennit, call("a", "no_such_tool"))
    with pytest.raises(InvalidRequest):
        await run.report()
    for node in ("", "a"):
        with pytest.raises(InvalidRequest, match=f"^{run.id} was refused, and nothing was run: .*`no_such_tool`"):
            await run.output(node)


async def test_every_output_is_at_hand_while_the_run_goes_on_and_after_it(start: Start, sennit: Sennit) -> None:
    run = await begun(
        start,
        sennit,
        call("list", "count", args={"count": 2}),
        {"id": "notes", "kind": "map", "over": "$list.items", "do": {"kind": "tool", **told("item $item.n")}},
        {"id": "wait", "kind": "gate", "question": "go on?", "needs": ["notes"]},
        answer={"notes": "$notes", "said": "$wait"},
    )
    async for view in run.watch():
        if view.status == "blocked":
            break
    assert await run.output("notes[1]") == {"value": "item 1"}
    assert await run.output("list", "items[1].n") == 1
    with pytest.raises(NotEnded, match=r"^`wait` has no output yet: it is waiting$"):
        await run.output("wait")
    with pytest.raises(NotEnded, match=f"^{run.id} has no answer yet; there are outputs of list, notes"):
        await run.output()
    await run.update("answer", node="wait", value="yes")
    assert (await run.result()).status == "done"
    assert await run.output(path="notes[0].value") == "item 0"
    assert await run.outputs() == {
        "list": {"count": 2, "items": [{"n": 0}, {"n": 1}]},
        "notes": [{"value": "item 0"}, {"value": "item 1"}],
        "notes[0]": {"value": "item 0"},
        "notes[1]": {"value": "item 1"},
        "wait": "yes",
    }


async def test_programs_and_their_calls_have_outputs_with_what_their_refs_name_and_tasks_have_none(
    start: Start, sennit: Sennit
) -> None:
    script = (
        "async def look(n: int):\n"
        "    found = await volume(value={'__ref__': 'data', 'n': n})\n"
        "    return {'n': n, 'found': found}\n\n\n"
        "async def main():\n"
        "    return await parallel([task(look, n=n) for n in range(2)])\n"
    )
    handle = await start(plan={"nodes": [{"id": "main", "kind": "program", "script": script}]})
    run = await sennit.find(handle.id)
    assert (await run.result()).status == "done"
    outputs = await run.outputs()
    read = [{"__ref__": "data", "n": n} for n in range(2)]
    report = await run.report()
    assert outputs.pop("main") == [{"n": n, "found": read[n]} for n in range(2)]
    assert list(outputs) == [line.id for line in report.nodes if line.kind == "tool"]
    assert list(outputs.values()) == read
    task = next(line.id for line in report.nodes if line.kind == "task")
    with pytest.raises(NoOutput, match=f"^`{task}` is a task: only its script has its value. Read that of its calls$"):
        await run.output(task)


async def test_an_output_that_no_payload_carries_comes_whole(start: Start, sennit: Sennit, client: Client) -> None:
    big = call("big", "make", args={"bytes": 3_000_000})
    run = await begun(start, sennit, big, call("a", args={"value": 1}), answer="$a")
    report = await run.result()
    assert await run.output("big") == {"text": "x" * 3_000_000}
    assert list(await run.outputs()) == ["big", "a"]
    assert report.answer_ref is None
    left = [found async for found in client.list_workflows(f"WorkflowId STARTS_WITH '{run.id}.outputs'")]
    assert [found for found in left if found.status is WorkflowExecutionStatus.RUNNING] == []


@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_long_answer_is_whole_and_keeps_its_type(start: Start, sennit: Sennit, form: str) -> None:
    answer = "$big" if form == "json" else "$big.text"
    run = await begun(start, sennit, call("big", "make", args={"bytes": 200_000}), answer=answer)
    whole = {"text": "x" * 200_000} if form == "json" else "x" * 200_000
    outcome = await run.outcome()
    assert (outcome.report.answer, outcome.report.answer_ref, outcome.report.warnings) == (whole, None, ())
    assert outcome.code is Exit.ANSWER
    assert await run.output() == whole
    kept = await sennit.client.get_workflow_handle(run.id).result()
    assert kept["answer"].endswith("[cut: the whole answer has 200,0" + ("11" if form == "json" else "00") +
                                   " bytes; `sennit output` reads it]")  # fmt: skip
    assert kept["warnings"] == [f"the answer is cut here; the whole: sennit output {run.id}"]


async def test_why_there_is_no_output_is_one_sentence(start: Start, sennit: Sennit, artifacts: Path) -> None:
    run = await begun(
        start,
        sennit,
        call("notes", "count"),
        call("bad", "fail"),
        call("after", needs=["bad"]),
        on_failure="partial",
        answer={"notes": "$notes", "bad": "$bad"},
    )
    first = (await run.result()).run_id
    for node, path, kind, sentence in (
        ("note", "", Refused, "there is no node `note`; did you mean `notes`?"),
        ("notes[0]", "", Refused, "there is no node `notes[0]`; did you mean `notes`?"),
        ("notes", "items[7].n", Refused, "${notes.items[7].n} has no value: $notes.items is a list of 3"),
        ("notes", "items[0]x", Refused, "'items[0]x' is no path into notes; write it like items[0].title"),
        ("bad", "", NoOutput, "`bad` has no output: its status is failed: ToolError: went wrong"),
        ("after", "", NoOutput, "`after` has no output: its status is skipped"),
        ("sub.n1", "", Refused, f"{run.id} has no sub-agent `sub`"),
    ):
        with pytest.raises(kind) as caught:
            await run.output(node, path)
        assert str(caught.value) == sentence
    shutil.rmtree(artifacts / "default" / first)
    with pytest.raises(NoOutput, match=r"^the output of `notes` is gone: `sennit gc` has deleted it, or"):
        await run.output("notes")
    with pytest.raises(NoOutput, match="is gone"):
        await run.outputs()


async def test_a_cut_off_run_says_so_and_keeps_what_it_has(start: Start, sennit: Sennit, client: Client) -> None:
    run = await begun(start, sennit, call("a", args={"value": 1}), call("long", args={"seconds": 60.0}), answer="$a")
    view = await run.view()
    while not any(node.status == "succeeded" for node in view.nodes):
        await asyncio.sleep(0.05)
        view = await run.view()
    await client.get_workflow_handle(run.id).terminate("enough")
    assert await run.output("a") == {"value": 1}
    with pytest.raises(NoOutput, match=r"^`long` has no output yet: it is running, and the run is over$"):
        await run.output("long")
    with pytest.raises(NoOutput, match="has no answer: the run was terminated"):
        await run.output()


async def test_a_secret_is_masked_also_in_what_was_stored_before(
    start: Start, sennit: Sennit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await begun(start, sennit, call("a", args={"value": f"it is {SECRET}"}))
    await run.result()
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    masked = []
    assert await run.output("a", on_mask=lambda: masked.append(True)) == {"value": "it is [redacted]"}
    assert masked == [True]


async def test_an_output_that_workers_mask_differently_is_never_put_together(
    sennit: Sennit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def ask(_: Client, call: OutputsCall) -> OutputsReply:
        asked.append(call.start)
        body = base64.b64encode(zlib.compress(b'"half')).decode()
        return OutputsReply(parts=(OutputPart(digest=f"{len(asked):040x}", size=10, body=body),))

    monkeypatch.setattr(output, "_ask", ask)
    with pytest.raises(NoAnswer, match="workers mask the output of a differently; give them the same secrets"):
        await output.read_output(sennit.client, "r", "a")
    assert asked == [0, 5] * MAX_OUTPUT_CHANGES
