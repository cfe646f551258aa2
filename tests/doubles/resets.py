"""Resets of runs, as `temporal workflow reset` and the web UI make them."""

import uuid
from collections.abc import Callable
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle

EVERYTHING = (
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
)


async def reset(
    client: Client,
    handle: WorkflowHandle[Any, Any],
    before: Callable[[HistoryEvent], bool] | None = None,
    *,
    without: tuple[ResetReapplyExcludeType.ValueType, ...] = (),
) -> WorkflowHandle[Any, Any]:
    """Reset a run, when such an event has come, to the last workflow task that ended before the first of them; without
    `before`, to the last one so far.

    Returns the run that goes on. What came later, but for the kinds in `without`, comes again.
    """
    run = (await handle.describe()).run_id
    task = 0
    async for event in client.get_workflow_handle(handle.id, run_id=run).fetch_history_events(
        wait_new_event=before is not None
    ):
        if before is not None and before(event):
            break
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            task = event.event_id
    return await reset_to(client, handle, task, without=without)


async def reset_to(
    client: Client,
    handle: WorkflowHandle[Any, Any],
    task: int,
    *,
    without: tuple[ResetReapplyExcludeType.ValueType, ...] = (),
) -> WorkflowHandle[Any, Any]:
    """Reset a run to the workflow task that ends with this event, and return the run that goes on."""
    run = (await handle.describe()).run_id
    asked = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run or ""),
        reason="a test",
        workflow_task_finish_event_id=task,
        request_id=str(uuid.uuid4()),
        reset_reapply_exclude_types=without,
    )
    await client.workflow_service.reset_workflow_execution(asked)
    return client.get_workflow_handle(handle.id)


def scheduled(name: str) -> Callable[[HistoryEvent], bool]:
    """Whether an event schedules the activity of that id."""
    return lambda event: event.activity_task_scheduled_event_attributes.activity_id == name
