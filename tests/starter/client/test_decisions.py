"""What a person decides through the client: each decision does on a real run what it says, once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import call
from temporalio.client import Client

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import NotAllowed, RunIsOver
from sennit.starter.client.run import Run
from sennit.workflows.messages.views import RunView

pytestmark = pytest.mark.timeout(100)
SCRIPT = """
async def main():
    one = await nap(value=1)
    return [one["value"], (await flaky(failures=9))["value"]]
"""
BETTER = SCRIPT.replace("flaky(failures=9)", "nap(value=2)")


@pytest.fixture
def sennit(client: Client, start: Start) -> Sennit:
    return Sennit(client, local_server(client.service_client.config.target_host, None))


async def waiting(start: Start, sennit: Sennit, plan: dict[str, Any], *asks: str, **fields: Any) -> Run[Any]:
    """Return a run of this plan once it waits for nothing but decisions about these nodes."""
    handle = await start(plan=plan, **fields)
    return await until_asked(await sennit.find(handle.id), *asks)


async def until_asked(run: Run[Any], *asks: str) -> Run[Any]:
    view: RunView | None = None
    while view is None or view.status != "blocked" or {item.node for item in view.blocked} != set(asks):
        await asyncio.sleep(0.05)
        view = await run.view()
    return run


async def test_writes_are_approved_with_a_change_or_rejected_with_a_reason(start: Start, sennit: Sennit) -> None:
    nodes = [call("yes", "note", args={"text": "a"}), call("no", "note", args={"text": "b"}, on_error="skip")]
    run = await waiting(start, sennit, {"nodes": nodes, "answer": {"yes": "$yes", "no": "$no"}}, "yes", "no")
    with pytest.raises(NotAllowed, match="read it again"):
        await run.approve("yes", digest="0" * 20)
    with pytest.raises(NotAllowed, match="`yes` is about a write; name what you have read"):
        await run.approve("yes", args={"text": "longer"})
    [asked] = [item for item in (await run.view()).blocked if item.node == "yes"]
    digest = str(asked.example["digest"])
    assert await run.approve("yes", digest=digest, args={"text": "longer"}) == "yes may run with your changes of text"
    await run.reject("no", "not today")
    report = await run.result()
    assert (report.status, report.answer) == ("partial", {"yes": {"value": 6}, "no": None})


async def test_what_has_failed_is_retried_or_skipped(start: Start, sennit: Sennit, cache: Path) -> None:
    nodes = [call("again", "fail", args={"unless": "mended"}), call("never", "fail")]
    run = await waiting(start, sennit, {"nodes": nodes, "answer": {"a": "$again", "b": "$never"}}, "again", "never")
    mended = cache / "mended"
    mended.touch()
    try:
        assert await run.retry("again") == "again runs again"
        assert "never" in await run.skip("never")
        report = await run.result()
    finally:
        mended.unlink()  # other tests share the folder
    assert (report.status, report.answer) == ("partial", {"a": {"value": "recovered"}, "b": None})


async def test_a_program_is_edited_and_its_run_forked(start: Start, sennit: Sennit) -> None:
    plan = {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"}
    run = await waiting(start, sennit, plan, "main_2")
    assert await run.finish("it takes too long") == "the run ends now with what there is"
    assert (await run.report()).status == "partial"
    fork = await run.fork(SCRIPT.replace("value=1", "value=3"))
    await until_asked(fork, "main_2")
    assert "main runs again" in await fork.edit(BETTER.replace("value=1", "value=3"))
    assert (await fork.result()).answer == [3, 2]
    with pytest.raises(RunIsOver):
        await fork.finish()


async def test_of_two_answers_at_once_one_is_taken_and_the_other_told_so(start: Start, sennit: Sennit) -> None:
    plan = {"nodes": [{"id": "g", "kind": "gate", "question": "Which?"}], "answer": "$g"}
    run = await waiting(start, sennit, plan, "g")
    said = await asyncio.gather(run.answer("g", "one"), run.answer("g", "two"), return_exceptions=True)
    taken = [word for word, each in zip(("one", "two"), said, strict=True) if isinstance(each, str)]
    assert [type(each) for each in said if not isinstance(each, str)] in ([NotAllowed], [RunIsOver])
    assert (await run.result()).answer == taken[0]
