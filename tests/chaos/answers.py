"""Resets to the answer of a person, and workers that have one core: what once made a run stand still for ever.

A reset gives the answer to the run again, and may have the worker that goes on join tasks which no replay joins.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from doubles.runs import call
from temporalio.api.history.v1 import HistoryEvent

ONE_CORE_SLOTS = (1, 3)
"""One worker of the runs and one of the tools, of two each."""
WARNED = """
import re

async def main():
    found = re.match("w", (await nap(value="warned", seconds=0.3))["value"])
    return found.group(0)
"""


@contextmanager
def cores_of(slot: int) -> Iterator[None]:
    """Have a worker that is started in the block run on one core if its slot says so."""
    if slot not in ONE_CORE_SLOTS or not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cores)})  # a process inherits the cores of who starts it
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


@dataclass(frozen=True)
class Piece:
    """A part of a plan behind its node `start`: nodes, and by name what the answer refers to and is to be."""

    nodes: list[dict[str, Any]]
    answers: dict[str, tuple[str, Any]]


def idle_answer(seed: int, chance: Random) -> Piece:
    """Return a gate, and calls that end while it waits: nothing waits for them, so their tasks write nothing."""
    nodes: list[dict[str, Any]] = [{"id": "idle", "kind": "gate", "question": f"Go on with {seed}, idly?"}]
    for number in range(4):
        seconds = 0.3 + 0.4 * number + 0.3 * chance.random()
        nodes.append(call(f"idle{number}", args={"value": number, "seconds": seconds}))
    nodes.append(call("awake", args={"value": "awake", "seconds": 1.5}, needs=["idle"]))
    return Piece(nodes, {"idle": ("$idle", "yes"), "awake": ("$awake.value", "awake")})


def warned() -> Piece:
    """Return two programs whose types are checked at once, and found wanting."""
    names = ("warned0", "warned1")
    nodes = [{"id": name, "kind": "program", "script": WARNED} for name in names]
    return Piece(nodes, {name: (f"${name}", "w") for name in names})


def task_of_any(events: list[HistoryEvent], chance: Random) -> int:
    """Return the event with which some workflow task ended; 0 if none has."""
    found = [event.event_id for event in events if event.HasField("workflow_task_completed_event_attributes")]
    return chance.choice(found) if found else 0


def task_of_answer(events: list[HistoryEvent], chance: Random) -> int:
    """Return the event with which a workflow task ended that has taken an update of a person; 0 if there is none."""
    found, task = list[int](), 0
    for event in events:
        if event.HasField("workflow_task_completed_event_attributes"):
            task = event.event_id
        elif event.HasField("workflow_execution_update_accepted_event_attributes"):
            found.append(task)
    return chance.choice(found) if found else 0
