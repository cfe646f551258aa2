"""What only the server knows of a run: how its activities get on, and why it does not answer."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingActivityState, TaskQueueType, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from sennit.workflows.messages.activity_ids import RUN, ActivityId, parse_activity_id
from sennit.workflows.messages.activity_options import REFUSALS
from sennit.workflows.messages.views import (
    ENDED_STATUSES,
    EventKind,
    NodeView,
    RunEvent,
    RunView,
)
from sennit.workflows.plan.language.text import one_line

USUAL_START = 2.0
"""Seconds within which a worker should have taken a task."""
LOST = "its worker was lost, so its call starts again"
_RUN_PHASES = ("preparing", "planning", "concluding")
"""Phases in which the run itself has activities to wait for."""


async def activity_details(client: Client, view: RunView) -> RunView:
    """Return the view with attempts, time and progress of running nodes, and how the run's own
    activities get on; unchanged if the server does not say.
    """
    runs_nodes = any(node.status == "running" for node in view.nodes)
    if view.phase not in _RUN_PHASES and not runs_nodes:
        return view
    try:
        found = await _describe(client, view.id)
    except RPCError:
        return view
    # A replaced plan's activities may still be ending: the newest of a node's activities
    # comes last and counts.
    pending = {ident.node: item for ident, item in _of_nodes(found)}
    nodes = tuple(_with_activity(node, pending) for node in view.nodes)
    parts: list[str] = []
    for item in found.pending_activities:
        if item.activity_id.startswith(RUN):
            progress = _progress(item, _age(item))
            if progress:
                parts.append(progress)
    return view.model_copy(update={"nodes": nodes, "progress": "; ".join(parts)})


def _of_nodes(
    found: DescribeWorkflowExecutionResponse,
) -> list[tuple[ActivityId, PendingActivityInfo]]:
    """Return the activities of nodes under way, the newest of each last."""
    known: list[tuple[ActivityId, PendingActivityInfo]] = []
    for item in found.pending_activities:
        ident = parse_activity_id(item.activity_id)
        if ident is not None:
            known.append((ident, item))
    known.sort(key=lambda pair: (pair[0].epoch, pair[0].generation))
    return known


def _with_activity(node: NodeView, pending: dict[str, PendingActivityInfo]) -> NodeView:
    """Return the node with how its activity gets on; of one that shares it, whether it is
    done, as last reported. A node that has ended says how it ended, even while the activity
    of a cancelled call is still stopping.
    """
    if node.status in ENDED_STATUSES:
        return node
    if node.seat is None:
        if node.id not in pending:
            return node
        return _with_details(node, pending[node.id])
    first, place = node.seat
    if first not in pending or node.status != "running":
        return node
    found = _with_details(node, pending[first])
    if _bit(pending[first], place):
        return found.model_copy(update={"preview": "done, as its activity last reported"})
    beside = ""
    if found.preview:
        beside = f"; its activity: {found.preview}"
    return found.model_copy(update={"preview": f"in an activity with others{beside}"})


def _bit(item: PendingActivityInfo, place: int) -> bool:
    """Whether a shared activity has last reported that its call at this place is done."""
    try:
        bits = json.loads(item.heartbeat_details.payloads[1].data)
        return bool(bits[place // 32] >> place % 32 & 1)
    except (IndexError, ValueError, TypeError):
        return False


def _with_details(node: NodeView, item: PendingActivityInfo) -> NodeView:
    age = _age(item)
    changes: dict[str, Any] = {"preview": _progress(item, age)}
    if item.attempt > 1:
        changes["attempts"] = item.attempt
    else:  # the server keeps the times of the last attempt only
        changes["duration_ms"] = max(0, round(age * 1000))
    return node.model_copy(update=changes)


def _age(item: PendingActivityInfo) -> float:
    return time.time() - item.scheduled_time.ToNanoseconds() / 1e9


def _progress(item: PendingActivityInfo, age: float) -> str:
    """Return how an activity gets on: paused, retried and why, what it reports itself, or
    not taken by a worker.
    """
    if item.paused:
        return "paused in Temporal"
    if item.attempt > 1 and item.HasField("last_failure"):
        # a higher maximum is for calls that a busy model puts off, which are no attempts
        most = ""
        if 0 < item.maximum_attempts <= REFUSALS:
            most = f" of {item.maximum_attempts}"
        if (
            item.last_failure.timeout_failure_info.timeout_type
            == TimeoutType.TIMEOUT_TYPE_HEARTBEAT
        ):
            return f"{LOST}: attempt {item.attempt}{most}"
        return f"attempt {item.attempt}{most} after {_reason(item.last_failure)}"
    if item.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and age > USUAL_START:
        return "no worker took it yet"
    return _heartbeat(item)


def _heartbeat(item: PendingActivityInfo) -> str:
    """Return what an activity last reported of itself, "" if it reported
    nothing that is for people.
    """
    try:
        progress = json.loads(item.heartbeat_details.payloads[0].data)
    except (IndexError, ValueError):
        return ""
    if not isinstance(progress, str):
        return ""
    return one_line(progress)[:200]


def _reason(failure: Failure) -> str:
    """Return a failure as people read it: its type, if it has one, and its message."""
    kind = failure.application_failure_info.type
    reason = failure.message
    if kind:
        reason = f"{kind}: {reason}"
    return one_line(reason)[:300]


async def live_details(client: Client, run: str) -> list[RunEvent]:
    """Return of each activity under way that its last worker was lost, and how far it is in this
    attempt, as events without a number; nothing if the server does not say.
    """
    try:
        found = await _describe(client, run)
    except RPCError:
        return []
    events = []
    for ident, item in _of_nodes(found):
        failure = item.last_failure
        is_lost = failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_HEARTBEAT
        changes: list[tuple[EventKind, str]] = []
        if is_lost:
            changes.append(("lost_worker", f"its worker was lost; attempt {item.attempt} follows"))
        if (
            not is_lost
            or item.last_heartbeat_time.ToNanoseconds() > item.last_started_time.ToNanoseconds()
        ):
            # Not what the lost attempt reported last.
            changes.append(("progress", _heartbeat(item)))
        for kind, text in changes:
            if text:
                at, generation = time.time(), ident.generation
                events.append(
                    RunEvent(
                        number=0,
                        at=at,
                        kind=kind,
                        node=ident.node,
                        generation=generation,
                        text=text,
                    )
                )
    return events


async def why_silent(client: Client, run: str) -> str | None:
    """Return why a run does not answer, if the server can tell: its tasks fail, or
    nobody serves its queue.
    """
    try:
        found = await _describe(client, run)
        if found.pending_workflow_task.attempt > 1:
            failure = await _last_task_failure(client, found.workflow_execution_info.execution)
            if failure:
                return (
                    "the run cannot go on: its code fails on its worker, which tries again: "
                    f"{failure}"
                )
        queue = TaskQueue(name=found.execution_config.task_queue.name)
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=queue,
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        served = await client.workflow_service.describe_task_queue(request)
    except RPCError:
        return None
    if served.pollers:
        return None
    return f"no worker serves {queue.name}; the run waits for one: sennit worker workflow"


async def _describe(client: Client, run: str) -> DescribeWorkflowExecutionResponse:
    return (await client.get_workflow_handle(run).describe()).raw_description


async def history_back(client: Client, execution: WorkflowExecution) -> AsyncIterator[HistoryEvent]:
    """Yield the events of a history, the last one first. Raises RPCError."""
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution, maximum_page_size=50
    )
    while True:
        page = await client.workflow_service.get_workflow_execution_history_reverse(request)
        for event in page.history.events:
            yield event
        if not page.next_page_token:
            return
        request.next_page_token = page.next_page_token


async def _last_task_failure(client: Client, execution: WorkflowExecution) -> str | None:
    """Return why the last workflow task failed, unless one succeeded since."""
    async for event in history_back(client, execution):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            return _reason(event.workflow_task_failed_event_attributes.failure) or "no reason given"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
            return "it takes too long"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
    return None
