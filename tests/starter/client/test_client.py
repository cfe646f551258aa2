"""The client against a real Temporal server, with a fake AgentRun workflow."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from doubles.resets import reset
from pydantic import BaseModel
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import (
    InvalidRequest,
    NoAnswer,
    NoResult,
    NotAllowed,
    Refused,
    RunIsOver,
    RunNotFound,
    ServerUnreachable,
)
from sennit.starter.client.run import FAST, SLOW, pause_after
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.plan.programs.program_plan import program_plan

pytestmark = pytest.mark.timeout(60)

SECOND = timedelta(seconds=1)
SLOW_PAGES: list[str] = []
"""Runs whose next later page is not answered."""


@workflow.defn(name="AgentRun")
class StandIn:
    """Does what its goal says; answers like the real one in form."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.request: dict[str, Any] = {}

    @workflow.run
    async def run(self, request: Any = None) -> Any:
        self.request = request
        goal = request.get("goal", "")
        if goal == "refuse":
            raise ApplicationError("nodes[0]: no\nnodes[1]: no", ["a", "b"], type="InvalidPlan", non_retryable=True)
        if goal == "fail":
            raise ApplicationError("n1 failed", self.report("failed"), type="RunFailed", non_retryable=True)
        if goal == "new":
            request = {**request, "goal": "wait"}
            workflow.continue_as_new(request)
        if "plan" in request or "plan_packed" in request:
            self.called = workflow.start_activity("tool", task_queue="nobody's", start_to_close_timeout=SECOND)
            await workflow.sleep(0.01)
        if goal == "wait":
            await workflow.wait_condition(lambda: bool(self.answers))
        return self.report("partial" if goal == "partial" else "done")

    def report(self, status: str) -> dict[str, Any]:
        info = workflow.info()
        return {"id": info.workflow_id, "run_id": info.run_id, "status": status, "answer": self.answers or "42"}

    @workflow.query
    def plan(self, page: Any = None) -> dict[str, Any]:
        start, limit = page["from"], min(page["limit"], 2)
        if start and workflow.info().workflow_id in SLOW_PAGES:
            SLOW_PAGES.remove(workflow.info().workflow_id)
            raise ApplicationError("a slow page")
        nodes = [{"id": f"n{i}", "kind": "tool", "status": "running"} for i in range(start, min(start + limit, 5))]
        after = start + limit if start + limit < 5 else None
        status = {"status": "running", "phase": "run", "counts": {"running": 5}, "nodes": nodes, "next": after}
        return {"id": workflow.info().workflow_id, "run_id": workflow.info().run_id, **status}

    @workflow.query
    def script(self, request: Any = None) -> dict[str, Any]:
        if request["node"] == "odd":
            return {"another": "form"}
        return {"problem": "the run has no program"} if not request["node"] else {**request, "script": "# short"}

    @workflow.update
    def answer(self, request: Any = None) -> str:
        self.answers[request["node"]] = request["value"]
        return f"{request['node']} has its answer"

    @answer.validator
    def _fits(self, request: Any = None) -> None:
        if request["value"] == 7:
            raise ApplicationError("value: 7 is not one of yes, no", type="InvalidUpdate")


@pytest.fixture
async def sennit(client: Client) -> AsyncIterator[Sennit]:
    worker = Worker(client, task_queue=WORKFLOW, workflows=[StandIn], workflow_runner=UnsandboxedWorkflowRunner())
    async with worker:
        yield Sennit(client, local_server(client.service_client.config.target_host, "http://127.0.0.1:8233"))


async def test_a_started_run_has_the_slug_of_its_goal_and_a_link(sennit: Sennit) -> None:
    run = await sennit.start(goal="How high is Mont Blanc?")
    assert run.id.startswith("agent-how-high-is-mont-blanc-")
    assert run.ui_url == f"http://127.0.0.1:8233/namespaces/default/workflows/{run.id}/{run.run_id}"
    ending = await run.outcome()
    assert (ending.report.answer, ending.report.ui_url, ending.code) == ("42", run.ui_url, 0)
    found = await sennit.client.get_workflow_handle(run.id).describe()
    assert await found.static_summary() == "How high is Mont Blanc?"
    memo = dict(await found.memo())
    assert list(memo.pop("request")) == ["goal"]
    assert memo == {"sennit": version("sennit"), "title": "How high is Mont Blanc?"}


@pytest.mark.parametrize(("nodes", "counted"), [([{"id": "a"}, {"id": "b"}], {"nodes": 2}), (7, {})])
async def test_the_memo_describes_plan_and_caller_and_queues_are_fair_to_tenants(
    sennit: Sennit, monkeypatch: pytest.MonkeyPatch, nodes: Any, counted: dict[str, int]
) -> None:
    """Also of a plan of a wrong form, which is for the run to refuse."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    monkeypatch.setenv("TRACEPARENT", trace)
    run = await sennit.start(plan={"nodes": nodes}, title="nightly", tenant="acme")
    found = await sennit.client.get_workflow_handle(run.id).describe()
    memo = dict(await found.memo())
    assert list(memo.pop("request")) == ["plan", "tenant"]
    assert memo == {"sennit": version("sennit"), "title": "nightly", "traceparent": trace, **counted}
    assert found.raw_description.workflow_execution_info.priority.fairness_key == "acme"


async def test_a_fork_has_the_request_of_its_origin_but_for_what_it_is_given(sennit: Sennit) -> None:
    script = "async def main(a: int, b: int = 2):\n    return a\n"
    first = await sennit.start(program=script, inputs={"a": 1}, tenant="acme", budget={"tokens": 10}, title="nightly")
    await first.outcome()
    origin = await sennit.origin(first.id)
    mended = origin.with_script(script.replace("return a", "return b"), inputs={"b": 3})
    fork = await sennit.fork(mended, inputs={"b": 3}, budget={"tokens": 20}, model=None)
    await fork.outcome()
    assert fork.id.startswith(f"{first.id}-fork-")
    again = await sennit.origin(fork.id)
    assert again.homes == (fork.run_id, first.run_id)
    assert again.request == {
        "inputs": {"a": 1, "b": 3}, "tenant": "acme", "budget": {"tokens": 20}, "title": "nightly",
    }  # fmt: skip
    assert again.plan == program_plan(script.replace("return a", "return b"), {"a": 1, "b": 3})


async def test_a_run_that_goes_on_and_a_sub_agent_have_no_fork(sennit: Sennit) -> None:
    await sennit.start(goal="wait", id="here")
    with pytest.raises(Refused, match="here still runs; change its program with: sennit edit here FILE"):
        await sennit.origin("here")
    child = await sennit.client.start_workflow(
        "AgentRun", {"goal": "x", "depth": 1}, id="here.sub", task_queue=WORKFLOW
    )
    await child.result()
    with pytest.raises(Refused, match="fork the run above it, here"):
        await sennit.origin("here.sub")
    await (await sennit.find("here")).update("answer", node="n1", value="x")


async def test_an_id_starts_one_run_however_often_it_is_asked_for(sennit: Sennit) -> None:
    first = await sennit.start(goal="wait", id="one")
    second = await sennit.start(goal="wait", id="one")
    assert (first.joined, second.joined, first.run_id == second.run_id) == (False, True, True)
    assert await second.update("answer", node="n1", value="x") == "n1 has its answer"
    assert (await first.result()).answer == {"n1": "x"}
    third = await sennit.start(goal="wait", id="one")
    assert (await third.result()).answer == {"n1": "x"}
    for other in ({"goal": "done"}, {"goal": "wait", "budget": {"calls": 3}}, {"goal": "wait", "tools": ["search"]}):
        message = f"the id one belongs to the run 'wait', and this asks for {other['goal']!r} "
        with pytest.raises(InvalidRequest, match=message):
            await sennit.start(id="one", **other)
    anew = await sennit.start(goal="done", id="one", again=True)
    assert (anew.joined, (await anew.result()).answer) == (False, "42")


async def test_the_view_has_every_page_and_changes_until_the_end(sennit: Sennit) -> None:
    run = await sennit.start(goal="wait")
    assert [node.id for node in (await run.view()).nodes] == ["n0", "n1", "n2", "n3", "n4"]
    seen = []
    async for view in run.watch():
        seen.append(view)
        await run.update("answer", node="n1", value="x")
    assert len(seen) == 1


async def test_a_program_is_shown_or_it_says_why_not(sennit: Sennit) -> None:
    run = await sennit.start(goal="x")
    assert (await run.script("main")).script == "# short"
    with pytest.raises(Refused, match=f"{run.id}: the run has no program"):
        await run.script()
    with pytest.raises(Refused, match="its script has another form"):
        await run.script("odd")


async def test_a_later_page_that_nobody_answers_is_asked_for_again(sennit: Sennit) -> None:
    run, silences = await sennit.start(goal="wait"), list[str]()
    SLOW_PAGES.append(run.id)
    async for view in run.watch(on_silence=silences.append):
        assert len(view.nodes) == 5
        await run.update("answer", node="n1", value="x")
    assert ["a slow page" in silence for silence in silences] == [True]


def test_a_run_whose_worker_was_lost_is_asked_again_at_once() -> None:
    assert pause_after(10.0, SLOW, answered=False) == FAST
    assert pause_after(10.0, SLOW, answered=True) == 20.0
    assert pause_after(0.01, SLOW, answered=True) == SLOW


async def test_watching_may_stop_without_ending_the_run(sennit: Sennit) -> None:
    run = await sennit.start(goal="wait")
    async with aclosing(run.watch(every=True)) as views:
        async for _ in views:
            break
    assert (await sennit.look_up(run.id))[1]
    await run.cancel()
    assert ((await run.result()).status, (await run.outcome()).code) == ("cancelled", 1)


async def test_a_run_that_continued_as_new_is_one_run(sennit: Sennit) -> None:
    run = await sennit.start(goal="new")
    waiter = asyncio.create_task(run.result())
    while (await run.view()).run_id == run.run_id:
        await asyncio.sleep(0)
    await run.update("answer", node="n1", value="x")
    assert (await waiter).answer == {"n1": "x"}


async def test_a_run_that_was_reset_is_one_run_and_one_that_was_terminated_is_over(
    sennit: Sennit, client: Client
) -> None:
    run = await sennit.start(goal="wait")
    waiter = asyncio.create_task(run.result())
    await run.view()
    again = await reset(client, client.get_workflow_handle(run.id))
    await run.update("answer", node="n1", value="x")
    report = await waiter
    assert (report.answer, report.run_id) == ({"n1": "x"}, (await again.describe()).run_id)
    ended = await sennit.start(goal="wait")
    await client.get_workflow_handle(ended.id).terminate(reason="enough")
    assert (await ended.result()).problem == "the run was terminated: enough"


async def test_another_workflow_is_no_run(sennit: Sennit) -> None:
    await sennit.client.start_workflow("Other", id="other", task_queue="nowhere")
    with pytest.raises(Refused, match="other is a workflow of type Other"):
        await sennit.find("other")


async def test_a_big_plan_travels_packed(sennit: Sennit) -> None:
    nodes = [{"id": f"n{i}", "kind": "tool", "tool": "search", "args": {"query": "x" * 100}} for i in range(2000)]
    run = await sennit.start(plan={"nodes": nodes}, id="packed")
    await run.result()
    history = await sennit.client.get_workflow_handle("packed").fetch_history()
    data = history.events[0].workflow_execution_started_event_attributes.input.payloads[0].data
    assert b"plan_packed" in data
    assert len(data) < 64 * 1024


async def test_without_a_worker_a_run_is_silent_but_its_end_is_known(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.starter.client.run.QUERY_TIMEOUT", SECOND)
    monkeypatch.setattr("sennit.starter.client.decisions.UPDATE_TIMEOUT", 1.0)
    sennit = Sennit(client, local_server("127.0.0.1:1", None))
    run = await sennit.start(goal="wait", id="alone")
    with pytest.raises(NoAnswer):
        await run.view()
    with pytest.raises(NoAnswer, match="no worker took the update"):
        await run.update("answer", node="n1", value="x")
    messages: list[str] = []
    async for _ in run.watch(on_silence=lambda text: _end(messages, text, sennit)):
        raise AssertionError
    assert messages
    assert (await run.result()).status == "failed"


_ENDERS: set[asyncio.Task[None]] = set()


def _end(messages: list[str], text: str, sennit: Sennit) -> None:
    if not messages:
        _ENDERS.add(asyncio.create_task(sennit.client.get_workflow_handle("alone").terminate(reason="enough")))
    messages.append(text)


class Height(BaseModel):
    metres: int


async def test_a_result_has_the_type_that_was_asked_for_or_there_is_none(sennit: Sennit) -> None:
    run = await sennit.start(goal="wait", result=Height)
    assert await run.answer("metres", 4806) == "metres has its answer"
    assert await run.result() == Height(metres=4806)
    assert (await run.report()).answer == {"metres": 4806}
    text = await sennit.start(goal="now", result=Height)
    with pytest.raises(NoResult, match="the answer is no Height") as wrong:
        await text.result()
    assert wrong.value.report.answer == "42"
    assert await (await sennit.find(text.id, result=int)).result() == 42
    part = await sennit.start(goal="partial", result=str)
    with pytest.raises(NoResult, match="answers only a part"):
        await part.result()
    assert (await (await sennit.find(part.id)).result()).status == "partial"


async def test_each_cause_has_an_error_of_its_own_with_the_reason(sennit: Sennit) -> None:
    with pytest.raises(RunNotFound, match="there is no run nobody in namespace default at 127"):
        await sennit.find("nobody")
    with pytest.raises(InvalidRequest, match="`tenant`: is a name of at most 64 bytes"):
        await sennit.start(goal="x", tenant="é" * 33)
    refused = await sennit.start(goal="refuse")
    with pytest.raises(InvalidRequest, match=r"nodes\[0\]: no\nnodes\[1\]: no"):
        await refused.result()
    assert (await refused.outcome()).code == 2
    run = await sennit.start(goal="wait")
    with pytest.raises(NotAllowed, match="7 is not one of yes, no"):
        await run.answer("n1", 7)
    with pytest.raises(InvalidRequest, match="unknown field `nod`"):
        await run.update("answer", nod="n1", value=7)
    with pytest.raises(NotAllowed, match="still runs"):
        await run.fork()
    await run.answer("n1", "yes")
    await run.result()
    with pytest.raises(RunIsOver, match="is over"):
        await run.answer("n1", "yes")
    await run.cancel()
    assert (await run.result()).status == "done"


async def test_a_client_of_ones_own_may_have_any_converter_and_codec(sennit: Sennit, client: Client) -> None:
    class Counting(PayloadCodec):
        seen = 0

        async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
            Counting.seen += len(payloads)
            return list(payloads)

        async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
            return list(payloads)

    converter = replace(DataConverter.default, payload_codec=Counting())
    own = await Client.connect(client.service_client.config.target_host, data_converter=converter)
    run = await Sennit(own).start(goal="now")
    assert (await run.result()).answer == "42"
    assert Counting.seen > 0


async def test_no_connection_starts_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SENNIT_STATE", str(tmp_path / "state"))
    with pytest.raises(ServerUnreachable, match=r"Sennit.local\(\)"):
        await Sennit.connect()
    assert not (tmp_path / "state").exists()
