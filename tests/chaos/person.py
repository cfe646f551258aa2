"""A person who watches one run: answers its gate, edits its program or ends it, approves what it asks, and retries what
blocks it after a look at the ledger.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from chaos.calls import CallLog
from chaos.cases import Case
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
CHANGES = 0.3
"""How likely it is at each look at a program that runs that it is edited, or ended."""
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
    """What was seen of one run. `settled` tells how often a node had been called with its arguments when it was seen to
    have succeeded.

    Of the edits that were sent, the run may also have taken one that it has not confirmed.
    """

    case: Case
    run: str
    began: float = field(default_factory=time.time)
    ended: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    blocked: str = ""
    repeats: Counter[str] = field(default_factory=Counter)
    settled: dict[tuple[str, str], int] = field(default_factory=dict)
    retries: int = 0
    unknown: int = 0
    edited: int = 0
    edits_sent: int = 0
    is_stopped: bool = False
    approved: int = 0


async def watch(client: Client, seen: Watch, log: CallLog, ledger: Ledger, *, pause: float = PAUSE) -> None:
    """See a run through to its end, with a pause after each look."""
    chance = Random(seen.case.seed)
    handle = client.get_workflow_handle(seen.case.name)
    over = asyncio.ensure_future(_report(client, seen))
    while not over.done():
        try:
            view = await asyncio.wait_for(handle.query("plan"), PATIENCE)
            _note_settled(seen, view, log)
            seen.blocked = "; ".join(f"{blocked['node']}: {blocked['question']}" for blocked in view["blocked"])
            # A change may come while the run waits for a decision. What it asks then may be another thing.
            if not await _change(client, seen, view, chance):
                for blocked in view["blocked"]:
                    await _decide(client, seen, view, blocked, ledger)
        except AWAY:
            pass
        await asyncio.wait({over}, timeout=pause)
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


def _note_settled(seen: Watch, view: dict[str, Any], log: CallLog) -> None:
    log.read()
    for node in view["nodes"]:
        name = f"{node['id']}~{node.get('generation', 1)}"
        calls = log.called.get(f"{seen.run} {name}", [])
        if node["status"] == "succeeded" and calls:
            # After a reset, another script of a program may have another call of that name.
            arguments = calls[-1].arguments
            seen.settled.setdefault((name, arguments), log.times(f"{seen.run} {name}", arguments))


async def _change(client: Client, seen: Watch, view: dict[str, Any], chance: Random) -> bool:
    """Now and then, give the program another script while it runs, and after the last one end the run if a person is to
    do so. Return whether something was changed.
    """
    case = seen.case
    # While a call runs again that its script has failed with, the program has failed, and an edit is welcome too.
    is_open = any(line["id"] == case.program and line["status"] in ("running", "failed") for line in view["nodes"])
    is_done = seen.edited == len(case.edits) and not case.stop
    if not is_open or is_done or chance.random() >= CHANGES:
        return False
    run = client.get_workflow_handle(case.name)
    if seen.edited < len(case.edits):
        seen.edits_sent = seen.edited + 1
        await asyncio.wait_for(run.execute_update("edit_program", case.edits[seen.edited]), PATIENCE)
        seen.edited += 1
        return True
    seen.is_stopped = True  # a reset may forget that, so it is done again if the run goes on
    if case.stop == "finish":
        await asyncio.wait_for(run.execute_update("finish", {}), PATIENCE)
    else:
        await asyncio.wait_for(run.cancel(), PATIENCE)
    return True


async def _decide(client: Client, seen: Watch, view: dict[str, Any], blocked: dict[str, Any], ledger: Ledger) -> None:
    """Do what the run suggests. A payment whose outcome is unknown is repeated, and may then be there twice."""
    given, run = dict(blocked["example"]), client.get_workflow_handle(blocked.get("run") or seen.case.name)
    if blocked["update"] == "edit_program":
        seen.problem = f"its script has failed by itself: {blocked['question']}"
        await asyncio.wait_for(run.execute_update("finish", {}), PATIENCE)
        return
    text, was_paid = "", False
    if given.get("repeat_effect"):
        text = _payment(seen, view, blocked["node"])
        was_paid = ledger.paid(text) > 0
    try:
        await asyncio.wait_for(run.execute_update(blocked["update"], given), PATIENCE)
    except WorkflowUpdateFailedError:
        raise  # it was refused, and nothing is repeated
    except AWAY:
        seen.repeats[text] += was_paid  # perhaps it was taken
        raise
    seen.repeats[text] += was_paid
    seen.unknown += bool(text)
    seen.retries += blocked["update"] == "retry_node"
    seen.approved += blocked["update"] == "approve"


def _payment(seen: Watch, view: dict[str, Any], node: str) -> str:
    """Return the text of the payment that a node makes."""
    [summary] = [line["summary"] for line in view["nodes"] if line["id"] == node]
    [text] = [text for text in seen.case.payments if text in summary]
    return text
