"""A person who watches one run: answers its gate, edits its program, and retries what blocks it after a look at the
ledger.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from chaos.cases import Case
from chaos.fleet import Fleet
from chaos.ledger import Ledger
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

PAUSE = 0.5
PATIENCE = 10.0
EDITS = 0.3
"""How likely it is at each look at a program that runs that it is edited."""
AWAY = (
    RPCError,
    TimeoutError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
"""A worker or the server is away, or the run has gone on meanwhile."""


@dataclass
class Watch:
    """What was seen of one run. `settled` tells how often a node had been called when it was seen to have succeeded."""

    case: Case
    run: str
    began: float = field(default_factory=time.time)
    ended: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    blocked: str = ""
    repeats: Counter[str] = field(default_factory=Counter)
    settled: dict[str, int] = field(default_factory=dict)
    retries: int = 0
    unknown: int = 0
    edited: int = 0


async def watch(client: Client, seen: Watch, fleet: Fleet, ledger: Ledger) -> None:
    """See a run through to its end."""
    chance = Random(seen.case.seed)
    handle = client.get_workflow_handle(seen.case.name)
    over = asyncio.ensure_future(_report(client, seen))
    while not over.done():
        try:
            view = await asyncio.wait_for(handle.query("plan"), PATIENCE)
            _note_settled(seen, view, fleet)
            seen.blocked = "; ".join(f"{blocked['node']}: {blocked['question']}" for blocked in view["blocked"])
            for blocked in view["blocked"]:
                await _decide(client, seen, blocked, ledger)
            await _edit(client, seen, view, chance)
        except AWAY:
            pass
        await asyncio.wait({over}, timeout=PAUSE)
    await over
    seen.ended = time.time()


async def _report(client: Client, seen: Watch) -> None:
    """Wait for the report of the last run of the id: a reset ends the one before."""
    while not seen.report and not seen.problem:
        try:
            seen.report = await client.get_workflow_handle(seen.case.name).result()
        except WorkflowFailureError as failure:
            await asyncio.sleep(1)
            status = (await client.get_workflow_handle(seen.case.name).describe()).status
            if status is not None and status.name not in ("RUNNING", "COMPLETED"):
                seen.problem = f"{status.name}: {failure.cause}"
        except RPCError:
            await asyncio.sleep(PAUSE)


def _note_settled(seen: Watch, view: dict[str, Any], fleet: Fleet) -> None:
    fleet.read_calls()
    for node in view["nodes"]:
        name = f"{node['id']}~{node.get('generation', 1)}"
        calls = fleet.called.get(f"{seen.run} {name}", [])
        if node["status"] == "succeeded" and calls:
            seen.settled.setdefault(name, len(calls))


async def _edit(client: Client, seen: Watch, view: dict[str, Any], chance: Random) -> None:
    """Now and then, give the program another script while it runs."""
    running = any(line["id"] == "program" and line["status"] == "running" for line in view["nodes"])
    if seen.edited < len(seen.case.edits) and running and chance.random() < EDITS:
        given = {"node": "program", "script": seen.case.edits[seen.edited]}
        run = client.get_workflow_handle(seen.case.name)
        await asyncio.wait_for(run.execute_update("edit_program", given), PATIENCE)
        seen.edited += 1


async def _decide(client: Client, seen: Watch, blocked: dict[str, Any], ledger: Ledger) -> None:
    """Do what the run suggests. A payment whose outcome is unknown is repeated, and may then be there twice."""
    given = dict(blocked["example"])
    if blocked["update"] == "retry_node":
        seen.retries += 1
        text = next((text for text in seen.case.payments if f"pay{text.split()[1]}" == blocked["node"]), "")
        if given.get("repeat_effect"):
            seen.unknown += 1
            seen.repeats[text] += ledger.paid(text)
    run = client.get_workflow_handle(blocked.get("run") or seen.case.name)
    await asyncio.wait_for(run.execute_update(blocked["update"], given), PATIENCE)
