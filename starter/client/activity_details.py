"""What the server knows of a run beside the run's own view: how its activities get on, and why it does not answer."""

import json
import time
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingActivityState, TaskQueueType
from temporalio.api.failure.v1 import Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from workflows.messages.activity_options import REFUSALS
from workflows.messages.views import NodeView, RunView
from workflows.plan.language.text import one_line

LOOKED_BACK = 20  # events
PATIENT = 2.0  # seconds in which a worker should have taken a task


async def activity_details(client: Client, view: RunView) -> RunView:
    """Return the view with attempts, time and progress of what runs; as it was when the server does not say."""
    if not any(node.status == "running" for node in view.nodes):
        return view
    try:
        found = await _described(client, view.id)
    except RPCError:
        return view
    pending = {item.activity_id.partition("~")[0]: item for item in found.pending_activities}
    nodes = tuple(_with(node, pending[node.id]) if node.id in pending else node for node in view.nodes)
    return view.model_copy(update={"nodes": nodes})


def _with(node: NodeView, item: PendingActivityInfo) -> NodeView:
    changes: dict[str, Any] = {"preview": _progress(item)}
    if item.attempt > 1:
        changes["attempts"] = item.attempt
    else:  # the server keeps the times of the last attempt only
        changes["duration_ms"] = max(0, round((time.time() - item.scheduled_time.ToNanoseconds() / 1e9) * 1000))
    return node.model_copy(update=changes)


def _progress(item: PendingActivityInfo) -> str:
    """Return how an activity gets on: paused, tried again and why, what it says of itself, or that nobody took it."""
    if item.paused:
        return "paused in Temporal"
    if item.attempt > 1 and item.HasField("last_failure"):
        told = 0 < item.maximum_attempts <= REFUSALS  # above it, most are for a model that is busy, and no attempts
        most = f" of {item.maximum_attempts}" if told else ""
        return f"attempt {item.attempt}{most} after {reason(item.last_failure)}"
    waited = time.time() - item.scheduled_time.ToNanoseconds() / 1e9
    if item.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and waited > PATIENT:
        return "no worker took it yet"
    try:
        said = json.loads(item.heartbeat_details.payloads[0].data)
    except (IndexError, ValueError):
        return ""
    return one_line(said)[:200] if isinstance(said, str) else ""


def reason(failure: Failure) -> str:
    """Return a failure as people read it: its type, where it has one, and its sentence."""
    kind = failure.application_failure_info.type
    return one_line(f"{kind}: {failure.message}" if kind else failure.message)[:300]


async def why_silent(client: Client, run: str) -> str | None:
    """Return why a run does not answer, if the server can tell: its tasks fail, or nobody serves its queue."""
    try:
        found = await _described(client, run)
        if found.pending_workflow_task.attempt > 1:
            failed = await _last_failure(client, found.workflow_execution_info.execution)
            if failed:
                return f"the run cannot go on: its code fails on its worker, which tries again: {failed}"
        queue = TaskQueue(name=found.execution_config.task_queue.name)
        asked = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=queue, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
        )
        served = await client.workflow_service.describe_task_queue(asked)
    except RPCError:
        return None
    return None if served.pollers else f"no worker serves {queue.name}; the run waits for one: sennit worker workflow"


async def _described(client: Client, run: str) -> DescribeWorkflowExecutionResponse:
    asked = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=WorkflowExecution(workflow_id=run))
    return await client.workflow_service.describe_workflow_execution(asked)


async def _last_failure(client: Client, execution: WorkflowExecution) -> str | None:
    """Return why the last workflow task failed, unless one succeeded since."""
    asked = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution, maximum_page_size=LOOKED_BACK
    )
    page = await client.workflow_service.get_workflow_execution_history_reverse(asked)
    for event in page.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            return reason(event.workflow_task_failed_event_attributes.failure) or "for no stated reason"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
            return "it takes too long"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
    return None
