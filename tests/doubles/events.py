"""What a run's history says: whether it was ever failed_tasks, what it started, what it weighs."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle

FAILED_OR_TIMED_OUT = (EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)

HARMLESS = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
)


async def failed_tasks(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the workflow tasks of a run that failed or timed out, as `failed_in` does."""
    return failed_in((await handle.fetch_history()).events)


def failed_in(events: Iterable[HistoryEvent]) -> list[str]:
    """Return the workflow tasks that failed or timed out, with their reason; a well run has none.

    One that wanted to end the run just when something came in, or that a hundred events overtook, is done over by the
    server, and is well; so is one to which the run was reset.
    """
    found = []
    for event in events:
        reason = event.workflow_task_failed_event_attributes
        if event.event_type in FAILED_OR_TIMED_OUT and reason.cause not in HARMLESS:
            cause = WorkflowTaskFailedCause.Name(reason.cause)
            found.append(f"{EventType.Name(event.event_type)}: {cause}: {reason.failure.message}")
    return found


async def activities(handle: WorkflowHandle[Any, Any]) -> list[tuple[str, str]]:
    """Return (activity type, activity id) of everything a run started, in order."""
    found = []
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            started = event.activity_task_scheduled_event_attributes
            found.append((started.activity_type.name, started.activity_id))
    return found


async def kinds(handle: WorkflowHandle[Any, Any]) -> Counter[str]:
    """Return how often each type of event is in a run's history."""
    return Counter([EventType.Name(event.event_type) async for event in handle.fetch_history_events()])


async def weight(handle: WorkflowHandle[Any, Any]) -> tuple[int, int]:
    """Return how many events and bytes a run's history has, the bytes as the server stores its events."""
    sizes = [event.ByteSize() async for event in handle.fetch_history_events()]
    return len(sizes), sum(sizes)


async def activity_positions(handle: WorkflowHandle[Any, Any]) -> dict[str, int]:
    """Return the place in the history where each activity was scheduled, and where the planner's plan came."""
    found: dict[str, int] = {}
    scheduled: dict[int, str] = {}
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            name = event.activity_task_scheduled_event_attributes.activity_id
            scheduled[event.event_id] = name
            found[name] = event.event_id
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            done = scheduled[event.activity_task_completed_event_attributes.scheduled_event_id]
            found[f"{done} done"] = event.event_id
    return found
