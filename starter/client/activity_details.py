"""What only the server knows of a run: how its activities get on, and why it does not answer."""

import json
import re
import time
from typing import Any, Final

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

EVENTS = 20
"""How far back in a history the reason of a failed task is looked for."""
USUAL_START = 2.0
"""Seconds within which a worker should have taken a task."""
_BEFORE = ("preparing", "planning")
_SUFFIX: Final = re.compile(r"(?:~(?P<generation>\d+))?(?:\.question)?(?:@(?P<epoch>\d+))?\Z")
"""What follows the node in an activity's id: `n1`, `n1~2` in its second generation, `n1~2@3` in the third plan.
`n1.question` puts together what it asks a person."""


async def activity_details(client: Client, view: RunView) -> RunView:
    """Return the view with attempts, time and progress of running nodes, and how planning gets on; unchanged if the
    server does not say.
    """
    if view.phase not in _BEFORE and not any(node.status == "running" for node in view.nodes):
        return view
    try:
        found = await _describe(client, view.id)
    except RPCError:
        return view
    # A replaced plan's activities may still be ending: the newest of a node's activities comes last and counts.
    pending = {_node(item.activity_id): item for item in sorted(found.pending_activities, key=_version)}
    nodes = tuple(_with_details(node, pending[node.id]) if node.id in pending else node for node in view.nodes)
    before = [_progress(item, _age(item)) for name, item in pending.items() if name.startswith("run:")]
    return view.model_copy(update={"nodes": nodes, "progress": "; ".join(filter(None, before))})


def _node(activity_id: str) -> str:
    return _SUFFIX.sub("", activity_id, count=1)


def _version(item: PendingActivityInfo) -> tuple[int, int]:
    found = _SUFFIX.search(item.activity_id)
    return (int(found["epoch"] or 1), int(found["generation"] or 1)) if found else (1, 1)


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
    """Return how an activity gets on: paused, retried and why, what it reports itself, or not taken by a worker."""
    if item.paused:
        return "paused in Temporal"
    if item.attempt > 1 and item.HasField("last_failure"):
        # a higher maximum is for calls that a busy model puts off, which are no attempts
        most = f" of {item.maximum_attempts}" if 0 < item.maximum_attempts <= REFUSALS else ""
        return f"attempt {item.attempt}{most} after {_reason(item.last_failure)}"
    if item.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and age > USUAL_START:
        return "no worker took it yet"
    try:
        progress = json.loads(item.heartbeat_details.payloads[0].data)
    except (IndexError, ValueError):
        return ""
    return one_line(progress)[:200] if isinstance(progress, str) else ""


def _reason(failure: Failure) -> str:
    """Return a failure as people read it: its type, if it has one, and its message."""
    kind = failure.application_failure_info.type
    return one_line(f"{kind}: {failure.message}" if kind else failure.message)[:300]


async def why_silent(client: Client, run: str) -> str | None:
    """Return why a run does not answer, if the server can tell: its tasks fail, or nobody serves its queue."""
    try:
        found = await _describe(client, run)
        if found.pending_workflow_task.attempt > 1:
            failure = await _last_task_failure(client, found.workflow_execution_info.execution)
            if failure:
                return f"the run cannot go on: its code fails on its worker, which tries again: {failure}"
        queue = TaskQueue(name=found.execution_config.task_queue.name)
        request = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=queue, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
        )
        served = await client.workflow_service.describe_task_queue(request)
    except RPCError:
        return None
    return None if served.pollers else f"no worker serves {queue.name}; the run waits for one: sennit worker workflow"


async def _describe(client: Client, run: str) -> DescribeWorkflowExecutionResponse:
    execution = WorkflowExecution(workflow_id=run)
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
    return await client.workflow_service.describe_workflow_execution(request)


async def _last_task_failure(client: Client, execution: WorkflowExecution) -> str | None:
    """Return why the last workflow task failed, unless one succeeded since."""
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution, maximum_page_size=EVENTS
    )
    page = await client.workflow_service.get_workflow_execution_history_reverse(request)
    for event in page.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            return _reason(event.workflow_task_failed_event_attributes.failure) or "no reason given"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
            return "it takes too long"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
    return None
