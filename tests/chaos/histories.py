"""What the histories of runs tell: how soon another worker took over, and whether they replay."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random

from doubles.activations import check_joins, recorded_from
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowHistory
from temporalio.workflow import NondeterminismError

from sennit.workflows.messages.trajectory import NOTE_RUN_TYPE

FAILURES = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
)


@dataclass
class Task:
    """One attempt at a workflow task. Times in seconds of the Unix clock; `completed` is 0 if it never was."""

    scheduled: float
    started: float = 0.0
    pid: int = 0
    completed: float = 0.0


async def recoveries(client: Client, name: str, killed: list[tuple[str, int, float]]) -> list[float]:
    """Return the seconds that each kill of the worker that held the run kept its next workflow task waiting."""
    tasks = await _tasks(client, name)
    found = []
    for role, pid, died in killed:
        held = [task for task in tasks if 0 < task.started <= died]
        if role == "workflow" and held and held[-1].pid == pid:
            waiting = [task for task in tasks if task.completed > died]
            if waiting:
                found.append(waiting[0].completed - max(died, waiting[0].scheduled))
    return found


async def _tasks(client: Client, name: str) -> list[Task]:
    tasks: list[Task] = []
    async for event in client.get_workflow_handle(name).fetch_history_events():
        at = event.event_time.ToMicroseconds() / 1e6
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
            tasks.append(Task(at))
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
            identity = event.workflow_task_started_event_attributes.identity
            tasks[-1].started = at
            pid = identity.partition(" ")[0].rpartition(":")[2]
            tasks[-1].pid = int(pid) if pid.isdigit() else 0  # the server's own, when a run was reset
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            tasks[-1].completed = at
    return tasks


@dataclass(frozen=True)
class Replay:
    """A history that was replayed: what is wrong with it, "" for nothing, and how many calls its run has cancelled."""

    run: str
    wrong: str
    cancelled: int


async def replayed(client: Client) -> AsyncIterator[Replay]:
    """Replay every history of the server: of all runs, those that were reset, and sub-agents. Each is also replayed in
    other workflow tasks, as `check_joins` does.
    """
    async for run in client.list_workflows(f"WorkflowType != '{NOTE_RUN_TYPE}'"):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        wrong = failures(history)
        try:
            await check_joins(await recorded_from(history), Random(history.run_id))
        except (NondeterminismError, RuntimeError, AssertionError) as failure:
            wrong = f"{wrong} {failure}".strip()
        cancels = EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED
        cancelled = sum(event.event_type == cancels for event in history.events)
        yield Replay(f"{run.id} {run.run_id}", wrong[:500], cancelled)


def failures(history: WorkflowHistory) -> str:
    """Return why workflow tasks of a history have failed, but for those that were reset or overtaken."""
    failed = [event.workflow_task_failed_event_attributes for event in history.events]
    return "; ".join(task.failure.message for task in failed if task.cause in FAILURES)
