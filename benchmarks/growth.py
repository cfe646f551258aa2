"""What a run leaves behind: events and bytes of its histories, and how far its
worker processes grow.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psutil
from temporalio.client import Client, WorkflowHandle

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Histories:
    """What a logical run wrote, in all the runs that it was continued in."""

    events: int
    size: int
    runs: int


async def histories(client: Client, handle: WorkflowHandle[Any, Any]) -> Histories:
    """Read them from the last run back to the first."""
    events, size, runs = 0, 0, 0
    run: str | None = (await handle.describe()).run_id
    while run:
        history = await client.get_workflow_handle(handle.id, run_id=run).fetch_history()
        events += len(history.events)
        size += sum(event.ByteSize() for event in history.events)
        runs += 1
        run = (
            history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
            or None
        )
    return Histories(events, size, runs)


async def growth(
    tops: Mapping[str, Sequence[psutil.Process]], work: Awaitable[Value]
) -> tuple[Value, dict[str, tuple[float, float]]]:
    """Return what the work returns, and for each role the MB of memory before it
    and at most during it.
    """
    before = _memory(tops)
    most = dict(before)
    going = asyncio.ensure_future(work)
    while not going.done():
        await asyncio.wait([going], timeout=0.5)
        most = {role: max(most[role], now) for role, now in _memory(tops).items()}
    return going.result(), {role: (before[role], most[role]) for role in before}


def _memory(tops: Mapping[str, Sequence[psutil.Process]]) -> dict[str, float]:
    """Return the resident MB of the processes of each role, with their children."""
    found = {
        role: [each for top in tree for each in (top, *top.children())]
        for role, tree in tops.items()
    }
    return {role: sum(map(_resident, processes)) / 1e6 for role, processes in found.items()}


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:  # an interpreter of a script, which has ended meanwhile
        return 0
