"""How soon another worker took over a run whose worker was killed, read from the run's history."""

from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client


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
