"""What a client learns of a run from the server, on a real one: attempts, progress, and why there is no answer."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import PendingActivityState, TimeoutType
from temporalio.api.failure.v1 import Failure, TimeoutFailureInfo
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sennit.starter.client.activity_details import activity_details, live_details, why_silent
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import NoAnswer
from sennit.starter.client.events import EventReader
from sennit.workflows.messages.views import NodeView, RunView

pytestmark = pytest.mark.timeout(60)
QUEUE = "closely"


@activity.defn(name="work")
async def work(how: str) -> None:
    if how == "busy":
        raise ApplicationError("slow\ndown", type="RateLimited")
    activity.heartbeat("half done")
    await asyncio.Event().wait()


@workflow.defn(name="Working")
class Working:
    @workflow.run
    async def run(self, how: str) -> None:
        if how == "broken":
            raise RuntimeError("an old task does not fit this code")
        await workflow.execute_activity(
            "work",
            how,
            activity_id={"unserved": "n1@2", "busy": "n1~2@3"}.get(how, "n1~2"),
            task_queue="nobody" if how == "unserved" else None,
            start_to_close_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(initial_interval=timedelta(minutes=1), maximum_attempts=3),
        )


@pytest.fixture
async def begin(client: Client) -> AsyncIterator[Callable[[str], Awaitable[RunView]]]:
    """Start a run that behaves like this; returns a view in which its node n1 runs."""
    started = []

    async def begin(how: str) -> RunView:
        handle = await client.start_workflow("Working", how, id=f"{how}-{uuid.uuid4().hex[:6]}", task_queue=QUEUE)
        started.append(handle)
        nodes = (NodeView(id="n1", kind="tool", status="running"), NodeView(id="n2", kind="tool", status="pending"))
        return RunView(id=handle.id, run_id="r", status="running", phase="running", nodes=nodes)

    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=QUEUE, workflows=[Working], activities=[work], workflow_runner=runner):
        yield begin
        for handle in started:
            await handle.terminate()


async def seen(client: Client, view: RunView, message: str) -> NodeView:
    async with asyncio.timeout(100):
        while message not in (node := (await activity_details(client, view)).nodes[0]).preview:
            await asyncio.sleep(0.1)
    return node


async def test_a_node_that_is_tried_again_says_why(client: Client, begin: Callable[[str], Any]) -> None:
    node = await seen(client, await begin("busy"), "attempt")
    assert (node.attempts, node.preview) == (2, "attempt 2 of 3 after RateLimited: slow down")


async def test_a_node_shows_its_own_progress_and_time(client: Client, begin: Callable[[str], Any]) -> None:
    node = await seen(client, await begin("well"), "half done")
    assert (node.attempts, node.preview) == (1, "half done")
    assert node.duration_ms is not None
    assert 0 <= node.duration_ms < 60_000


async def test_a_node_nobody_takes_says_so(client: Client, begin: Callable[[str], Any]) -> None:
    await seen(client, await begin("unserved"), "no worker took it yet")


NOBODY = cast("Client", None)
LOST = Failure(timeout_failure_info=TimeoutFailureInfo(timeout_type=TimeoutType.TIMEOUT_TYPE_HEARTBEAT))
Pending = Callable[..., None]


@pytest.fixture
def pending(monkeypatch: pytest.MonkeyPatch) -> Pending:
    """Say which activities the server is to name."""

    def name(*items: PendingActivityInfo) -> None:
        async def describe(*_: Any) -> DescribeWorkflowExecutionResponse:
            return DescribeWorkflowExecutionResponse(pending_activities=items)

        monkeypatch.setattr("sennit.starter.client.activity_details._describe", describe)

    return name


def running(*nodes: NodeView) -> RunView:
    return RunView(
        id="nobody",
        run_id="r",
        status="running",
        phase="running",
        nodes=nodes or (NodeView(id="n1", kind="tool", status="running"),),
    )


async def test_of_a_replaced_plan_only_the_newest_activity_counts(pending: Pending) -> None:
    names = ("n1~2", "n1~2@10", "n1@2", "n1~3@2", "n1@10", "n1~9")
    pending(*(PendingActivityInfo(activity_id=name, paused=name == "n1~2@10") for name in names))
    assert (await activity_details(NOBODY, running())).nodes[0].preview == "paused in Temporal"


async def test_a_lost_worker_is_said(pending: Pending) -> None:
    pending(PendingActivityInfo(activity_id="n1", attempt=2, maximum_attempts=3, last_failure=LOST))
    found = (await activity_details(NOBODY, running())).nodes[0]
    assert found.preview == "its worker was lost, so its call starts again: attempt 2 of 3"


@pytest.mark.parametrize("name", ["n1~2.ledger", "n1~2+49", "n1~2.goal", "n1~2.question@3", "n1~2@3.goal"])
async def test_what_is_done_for_a_node_is_told_of_its_generation(pending: Pending, name: str) -> None:
    details = Payloads(payloads=[Payload(data=b'"half done"')])
    pending(PendingActivityInfo(activity_id=name, attempt=1, heartbeat_details=details))
    (event,) = await live_details(NOBODY, "r")
    assert (event.kind, event.node, event.generation, event.text) == ("progress", "n1", 2, "half done")


async def test_after_a_lost_worker_the_next_attempt_tells_how_far_it_is(pending: Pending) -> None:
    def item(attempt: int, begun: int, beaten: int, said: bytes) -> PendingActivityInfo:
        return PendingActivityInfo(
            activity_id="n1",
            attempt=attempt,
            state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
            last_failure=LOST,
            last_started_time=Timestamp(seconds=begun),
            last_heartbeat_time=Timestamp(seconds=beaten),
            heartbeat_details=Payloads(payloads=[Payload(data=said)]),
        )

    items = [item(2, 9, 5, b'"old"'), item(2, 9, 10, b'"half"'), item(2, 9, 11, b'"all"'), item(3, 20, 11, b'"all"')]
    reader, texts = EventReader(NOBODY, "r", cast("Any", None)), list[str]()
    for each in items:
        pending(each)
        texts += [event.text for event in (*await reader._live(0), *await reader._live(0))]
    assert texts == ["its worker was lost; attempt 2 follows", "half", "all", "its worker was lost; attempt 3 follows"]


@pytest.mark.parametrize("status", ["cancelled", "failed", "skipped"])
async def test_what_still_runs_of_a_node_that_has_ended_does_not_change_it(pending: Pending, status: Any) -> None:
    pending(PendingActivityInfo(activity_id="n2", attempt=2, maximum_attempts=3))
    ended = NodeView(id="n2", kind="llm", status=status, attempts=1, duration_ms=82)
    view = running(NodeView(id="n1", kind="tool", status="running"), ended)
    assert (await activity_details(NOBODY, view)).nodes[1] == ended


async def test_planning_shows_how_it_gets_on(pending: Pending) -> None:
    pending(PendingActivityInfo(activity_id="run:plan~2", paused=True))
    view = RunView(id="r", run_id="r", status="running", phase="planning")
    assert (await activity_details(NOBODY, view)).progress == "paused in Temporal"


async def test_a_run_whose_code_fails_says_why(client: Client, begin: Callable[[str], Any]) -> None:
    view = await begin("broken")
    async with asyncio.timeout(100):
        while (why := await why_silent(client, view.id)) is None:
            await asyncio.sleep(0.1)
    assert why.endswith("which tries again: RuntimeError: an old task does not fit this code")


async def test_a_run_without_workers_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sennit.starter.client.client.WORKFLOW", "never-served")
    monkeypatch.setattr("sennit.starter.client.run.QUERY_TIMEOUT", timedelta(seconds=1))
    run = await Sennit(client, local_server("127.0.0.1:1", None)).start(goal="x")
    with pytest.raises(NoAnswer, match="no worker serves never-served; the run waits for one: sennit worker workflow"):
        await run.view()


async def test_what_the_server_does_not_say_leaves_the_view_as_it_was(client: Client) -> None:
    view = running()
    assert await activity_details(client, view) == view
    assert await why_silent(client, "nobody") is None


async def test_of_a_shared_activity_each_call_shows_whether_it_is_done(pending: Pending) -> None:
    details = Payloads(payloads=[Payload(data=b'"33 of 40 done"'), Payload(data=b"[1,2]")])
    pending(PendingActivityInfo(activity_id="a+39", attempt=1, heartbeat_details=details))
    seats = {"a": 0, "b": 1, "c": 33, "d": 40}
    view = running(*(NodeView(id=name, kind="tool", status="running", seat=("a", at)) for name, at in seats.items()))
    found = {node.id: node.preview for node in (await activity_details(NOBODY, view)).nodes}
    done, going = "done, as its activity last reported", "in an activity with others; its activity: 33 of 40 done"
    assert found == {"a": done, "b": going, "c": done, "d": going}
