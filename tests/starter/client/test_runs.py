"""The list of runs, against a real Temporal server: a fake AgentRun writes the attributes that the real one writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sennit.starter.client import runs
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Refused
from sennit.starter.client.runs import RunSummary
from sennit.starter.commands import list as list_command
from sennit.starter.commands.command_line import parse
from sennit.starter.commands.list import table
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.result import WAITS_FOR

pytestmark = pytest.mark.timeout(60)

STATUS = SearchAttributeKey.for_keyword("SennitStatus")
TOTAL, DONE, FAILED = (SearchAttributeKey.for_int(f"SennitNodes{name}") for name in ("Total", "Done", "Failed"))


async def until(ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> None:
    """Ask until it holds: the visibility store lags behind."""
    while not holds(await ask()):
        await asyncio.sleep(0.1)


@workflow.defn(name="AgentRun")
class StandIn:
    """Is what its goal says."""

    @workflow.run
    async def run(self, request: Any = None) -> Any:
        goal = request["goal"]
        if goal == "silent":
            return "over"
        if goal == "mute":
            workflow.upsert_search_attributes([STATUS.value_set("running")])
            await workflow.wait_condition(lambda: False)
        status, failed = goal.partition(" ")[0], int("failed" in goal)
        changes: list[SearchAttributeUpdate[Any]] = [
            STATUS.value_set(status),
            TOTAL.value_set(3),
            DONE.value_set(2),
            FAILED.value_set(failed),
        ]
        workflow.upsert_search_attributes(changes)
        if status == "blocked":
            workflow.upsert_memo({WAITS_FOR: "approval publish"})
        if goal == "with child":
            await workflow.execute_child_workflow("AgentRun", {"goal": "done"}, id=f"{workflow.info().workflow_id}.n1")
        await workflow.wait_condition(lambda: status not in ("running", "blocked"))
        return "over"


@pytest.fixture
async def sennit(client: Client, server_address: str) -> AsyncIterator[Sennit]:
    async with Worker(client, task_queue=WORKFLOW, workflows=[StandIn], workflow_runner=UnsandboxedWorkflowRunner()):
        yield Sennit(client, local_server(server_address, None))


@pytest.fixture
async def ids(sennit: Sennit) -> AsyncIterator[Callable[..., Any]]:
    """List the ids of this test's runs that fit."""
    began = datetime.now(UTC)  # the tests share a server

    async def ids(**filters: Any) -> list[str]:
        return [each.id for each in await sennit.runs(**{"since": began, **filters})]

    yield ids
    for each in await sennit.runs(since=began):
        with suppress(RPCError):  # it is over, and the list does not know yet
            await sennit.client.get_workflow_handle(each.id).terminate()


async def test_runs_are_listed_newest_first_without_subagents(sennit: Sennit, ids: Callable[..., Any]) -> None:
    for name, goal in (("t-a", "done"), ("t-b", "with child"), ("t-c", "running")):
        await sennit.start(goal=goal, id=name)
    await until(ids, lambda found: found == ["t-c", "t-b", "t-a"])


async def test_a_filter_finds_what_it_says(sennit: Sennit, ids: Callable[..., Any]) -> None:
    for goal in ("done", "done failed", "blocked", "running", "partial"):
        await sennit.start(goal=goal, id=f"u-{goal.replace(' ', '-')}")
    await until(lambda: ids(status="blocked"), lambda found: found == ["u-blocked"])
    await until(lambda: ids(status="running"), lambda found: found == ["u-running"])
    await until(lambda: ids(status="partial"), lambda found: found == ["u-partial"])
    await until(lambda: ids(failed=True), lambda found: found == ["u-done-failed"])
    assert await ids(since=datetime.now(UTC) + timedelta(days=1)) == []
    assert await ids(tenant="it's \\ nobody") == []


async def test_a_run_tells_what_it_waits_for_and_a_terminated_one_has_failed(
    sennit: Sennit, ids: Callable[..., Any]
) -> None:
    run = await sennit.start(goal="blocked", id="v-a")
    await until(lambda: ids(status="blocked"), lambda found: found == ["v-a"])
    (found,) = await sennit.runs(status="blocked")
    assert (found.title, found.waits_for) == ("blocked", "approval publish")
    assert (found.nodes, found.done, found.failed) == (3, 2, 0)
    await sennit.client.get_workflow_handle(run.id).terminate()
    await until(lambda: ids(status="failed"), lambda now: now == ["v-a"])
    assert await ids(status="blocked") == []


async def test_a_run_that_could_not_write_its_end_is_found_by_the_servers_word(
    sennit: Sennit, ids: Callable[..., Any]
) -> None:
    run = await sennit.start(goal="mute", id="y-a")
    await sennit.start(goal="silent", id="y-b")
    await until(lambda: ids(status="running"), lambda found: found == ["y-a"])
    await run.cancel()
    await until(lambda: ids(status="cancelled"), lambda found: found == ["y-a"])
    await until(lambda: ids(status="done"), lambda found: found == ["y-b"])
    assert await ids(status="failed") == []


async def test_more_runs_than_one_listing_reads_are_said(
    sennit: Sennit, ids: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await sennit.start(goal="done", id=f"z-{number}")
    await until(ids, lambda found: len(found) == 3)
    more = list[bool]()
    for most in (3, 2):
        monkeypatch.setattr(runs, "MAX_LISTED_RUNS", most)
        assert len(await ids(on_more=lambda: more.append(True))) == most
        assert len(more) == 3 - most


@pytest.mark.parametrize("cut", [False, True])
async def test_the_command_says_that_it_has_not_read_all(capfd: pytest.CaptureFixture[str], *, cut: bool) -> None:
    async def read(*, on_more: Callable[[], None], **_: Any) -> list[RunSummary]:
        if cut:
            on_more()
        return [RunSummary("a", "r", "done", "", 0, 1)]

    args = parse(["list"])
    terminal = Terminal(colour="never")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(list_command, "connect", lambda *_: _soon(SimpleNamespace(runs=read)))
        await list_command.run(args, terminal)
    assert ("there are more than 5,000 such runs" in capfd.readouterr().err) == cut


async def _soon(found: Any) -> Any:
    return found


async def test_a_namespace_without_the_attributes_is_listed_and_a_filter_names_setup(sennit: Sennit) -> None:
    from temporalio.api.operatorservice.v1 import RemoveSearchAttributesRequest

    names = ["SennitStatus"]
    await sennit.start(goal="silent", id="w-a")
    await sennit.client.operator_service.remove_search_attributes(
        RemoveSearchAttributesRequest(search_attributes=names, namespace="default")
    )
    try:
        await until(lambda: _refused(sennit), lambda refused: "sennit setup" in refused)
        await until(lambda: sennit.runs(), lambda runs: "w-a" in [each.id for each in runs])  # visible a moment later
    finally:
        from temporalio.api.enums.v1 import IndexedValueType
        from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

        await sennit.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                search_attributes={"SennitStatus": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD}, namespace="default"
            )
        )


async def _refused(sennit: Sennit) -> str:
    try:
        await sennit.runs(status="blocked")
    except Refused as refused:
        return str(refused)
    return ""


def test_the_table_shows_a_line_a_run() -> None:
    runs = [
        RunSummary("nightly-1", "r", "blocked", "Nightly", 900, 0, "publish: approval", 10, 7, 1),
        RunSummary("agent-nile", "r", "done", "Which is longer, the Nile or the Amazon?", 0, 50),
    ]
    assert table(runs, 90, 1000.0).splitlines() == [
        "nightly-1   blocked  1m   7/10, 1 failed  waits for publish: approval",
        "agent-nile  done     16m                  Which is longer, the Nile or the Amazon?",
    ]
    assert table([], 80, 0.0) == ""
