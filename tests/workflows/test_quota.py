"""Runs under the quota of their namespace: they wait in line, begin in order, and give back what they have not used."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from doubles.events import failed_in
from doubles.local_workers import Handle, Start, serving, starting
from doubles.runs import call, failure_of, insist, until
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError
from temporalio.worker import Replayer

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.runs.quota import QuotaRule, quota_limits
from sennit.activities.toolbox import load_tools
from sennit.workflows import run_quota
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.messages.quota import QUOTA_ID, STATE_QUERY, PlaceCall
from sennit.workflows.plan.quota import PlaceReply, QuotaState
from sennit.workflows.run_quota import RunQuota

Under = Callable[[str], AbstractAsyncContextManager[Start]]
GATE = {"nodes": [{"id": "g", "kind": "gate", "question": "Go on?", "schema": {"type": "boolean"}}]}
SHORT = {"nodes": [call("a", args={"value": 1})]}


@pytest.fixture
async def under(client: Client, cache: Path, artifacts: Path, docs: Path) -> AsyncIterator[Under]:
    """Start runs under a quota, whose workflow replays at the end."""
    paths = WorkerPaths(artifacts, cache, docs, (Path("/"),))

    @asynccontextmanager
    async def begin(quota: str) -> AsyncIterator[Start]:
        rule = QuotaRule(quota_limits(quota))
        host = Activities(paths, load_tools(["doubles.tools"]), identity="tests", approval="never", quota=rule)
        async with serving(client, host, cached=0), starting(client) as start:
            yield start

    await _end_quota(client)
    yield begin
    with suppress(RPCError):
        history = await _quota(client).fetch_history()
        assert failed_in(history.events) == []
        replayer = Replayer(workflows=[RunQuota], data_converter=DATA_CONVERTER)
        await replayer.replay_workflow(history)
    await _end_quota(client)


def _quota(client: Client) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(QUOTA_ID)


async def _end_quota(client: Client) -> None:
    with suppress(RPCError):
        await _quota(client).terminate("a test begins or ends")


async def state_of(client: Client) -> QuotaState:
    state: QuotaState = await _quota(client).query(STATE_QUERY, result_type=QuotaState)
    return state


def is_queued(view: dict[str, Any]) -> bool:
    return view["phase"] == "queued" and bool(view.get("progress"))


def asks(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


async def answer(handle: Handle) -> None:
    await insist(handle, "answer", {"node": "g", "value": True})
    await handle.result()


async def test_a_run_waits_in_line_and_begins_when_another_one_ends(client: Client, under: Under) -> None:
    async with under("runs=1") as start:
        first = await start(plan=GATE)
        await until(first, asks)
        second = await start(plan=GATE)
        view = await until(second, is_queued)
        assert view["status"] == "running"
        assert view["progress"] == "1 of 1 runs of the namespace go on"
        third = await start(plan=SHORT)
        assert "and 1 run waits before this one" in (await until(third, is_queued))["progress"]
        await answer(first)
        await until(second, asks)
        assert is_queued(await third.query("plan"))
        await answer(second)
        assert (await third.result())["status"] == "done"
        state = await state_of(client)
        assert not state.places
        assert not state.line


async def test_a_run_that_is_cancelled_in_line_leaves_it(client: Client, under: Under) -> None:
    async with under("runs=1") as start:
        first = await start(plan=GATE)
        await until(first, asks)
        second, third = await start(plan=SHORT), await start(plan=SHORT)
        for handle in (second, third):
            await until(handle, is_queued)
        await second.cancel()
        assert await failure_of(second) is not None
        details = (await second.query("__temporal_workflow_metadata")).current_details
        assert "cancelled" in details
        assert "queued" not in details, "it waits for nothing any more"
        await answer(first)
        assert (await third.result())["status"] == "done"
        assert not (await state_of(client)).line


async def test_a_run_that_is_cancelled_while_it_asks_gives_back_what_it_is_given(
    client: Client, under: Under, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the quota would count a place of a run that is over, until it looks."""
    asked, goes_on, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    take = QuotaRule.take

    async def slow(rule: QuotaRule, client: Client, call: PlaceCall) -> PlaceReply:
        asked.set()
        await goes_on.wait()
        reply = await take(rule, client, call)
        answered.set()
        return reply

    monkeypatch.setattr(QuotaRule, "take", slow)
    async with under("runs=1") as start:
        handle = await start(plan=GATE)
        await asked.wait()
        await handle.cancel()
        await asyncio.sleep(0.5)
        goes_on.set()
        await answered.wait()
        assert await failure_of(handle) is not None
        assert not (await state_of(client)).places


async def test_the_place_of_a_run_that_was_terminated_becomes_free(
    client: Client, under: Under, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_quota, "LOOK_EVERY_WITH_LINE", timedelta(seconds=2))
    async with under("runs=1,tokens_a_day=100000") as start:
        first = await start(plan=GATE, budget={"tokens": 30_000})
        await until(first, asks)
        second = await start(plan=SHORT, budget={"tokens": 1_000})
        await until(second, is_queued)
        await first.terminate("a person has ended it")
        assert (await second.result())["status"] == "done"
        assert (await state_of(client)).spent.tokens == 30_000, "nobody has said what it has really used"


async def test_the_quota_looks_for_ended_runs_also_while_runs_keep_asking(
    client: Client, under: Under, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_quota, "LOOK_EVERY_WITH_LINE", timedelta(seconds=3))
    async with under("runs=1") as start:
        first = await start(plan=GATE)
        await until(first, asks)
        second = await start(plan=GATE)
        await until(second, is_queued)
        await first.terminate("a person has ended it")
        others: list[Handle] = []
        while not asks(await second.query("plan")):
            assert len(others) < 20, "runs that ask put off every look"
            others.append(await start(plan=SHORT))
            await until(others[-1], is_queued)
            await asyncio.sleep(0.5)
        await answer(second)
        for handle in others:
            assert (await handle.result())["status"] == "done"


async def test_a_run_reserves_its_budget_and_gives_the_rest_back(client: Client, under: Under) -> None:
    async with under("tokens_a_day=10000,cost_usd_a_day=5") as start:
        unbounded = await start(plan=SHORT)
        cause = await failure_of(unbounded)
        assert "this run has no limit of them: start it with --budget tokens=N" in str(cause)
        budget = {"tokens": 6_000, "cost_usd": 1.0}
        first = await start(plan=GATE, budget=budget)
        await until(first, asks)
        second = await start(plan=SHORT, budget=budget)
        view = await until(second, is_queued)
        assert view["progress"] == "the runs that go on may still spend what is left of the day"
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await first.execute_update("raise_budget", {"tokens": 7_000})
        assert "tokens may be 6000 at most, by SENNIT_BUDGET_MAX or SENNIT_QUOTA" in str(refused.value.cause)
        await answer(first)
        assert (await second.result())["status"] == "done"
        assert (await state_of(client)).spent.tokens == 0
        greedy = await start(plan=SHORT, budget={"tokens": 20_000, "cost_usd": 1.0})
        assert "have used 0 of 10,000 tokens today, and this one may use 20,000" in str(await failure_of(greedy))


async def test_a_plan_with_problems_takes_no_place(client: Client, under: Under) -> None:
    async with under("runs=1") as start:
        first = await start(plan=GATE)
        await until(first, asks)
        wrong = await start(plan={"nodes": [call("a", "no_such_tool")]})
        assert "no_such_tool" in str(await failure_of(wrong))
        await answer(first)


async def test_a_quota_that_continues_as_new_or_is_gone_harms_no_run(
    client: Client, under: Under, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_quota, "MAX_QUOTA_ASKS", 2)
    async with under("runs=1") as start:
        first = await start(plan=GATE)
        await until(first, asks)
        others = [await start(plan=SHORT) for _ in range(4)]
        for handle in others:
            await until(handle, is_queued)
        assert (await _quota(client).describe()).raw_description.workflow_execution_info.first_run_id != (
            await _quota(client).describe()
        ).run_id
        await answer(first)
        for handle in others:
            assert (await handle.result())["status"] == "done"

        last = await start(plan=GATE)
        await until(last, asks)
        await _quota(client).terminate("by mistake")
        await answer(last)
        assert (await (await start(plan=SHORT)).result())["status"] == "done"
