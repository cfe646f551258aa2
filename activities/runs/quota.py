"""Asks for the places of runs in the quota of a namespace, and tells which of its runs are over."""

import asyncio
import itertools
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WithStartWorkflowOperation, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.limits import MAX_RUN_LOOKS
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.quota import (
    ASK_UPDATE,
    QUOTA_ID,
    QUOTA_TYPE,
    EndedRuns,
    PlaceAsked,
    PlaceCall,
    QuotaRuns,
)
from sennit.workflows.plan.language.limits import Limits, micro_dollars
from sennit.workflows.plan.quota import PlaceReply, PlaceRequest, QuotaLimits, QuotaState

EXAMPLE = "runs=20,tokens_a_day=5000000,cost_usd_a_day=100"
_LIMITS = {"runs": "runs", "tokens_a_day": "tokens_a_day", "cost_usd_a_day": "cost_a_day"}
"""What people call the limits of a quota, and what the quota does: it counts money in
millionths of a dollar.
"""
_LIMIT = timedelta(seconds=10)
_MOST = 10**12


def quota_limits(text: str) -> QuotaLimits:
    """Return the quota from `runs=20,tokens_a_day=5000000,cost_usd_a_day=100`, each part optional.
    Raises ValueError with a sentence about the part that is wrong.
    """
    values: dict[str, int] = {}
    for piece in text.split(","):
        part = piece.strip()
        if not part:
            continue
        name, equals, value = map(str.strip, part.partition("="))
        if not equals or name not in _LIMITS:
            raise ValueError(f"{part[:60]!r}: is no part of a quota; write it like {EXAMPLE}")
        if _LIMITS[name] in values:
            raise ValueError(f"{name}: is there twice; write it like {EXAMPLE}")
        values[_LIMITS[name]] = _amount(name, value)
    return QuotaLimits(**values)


def _amount(name: str, text: str) -> int:
    """Return a whole number, or an amount of dollars as the scheduler counts
    it. Raises ValueError.
    """
    try:
        if name == "cost_usd_a_day":
            amount = micro_dollars(float(text))
        else:
            amount = int(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{name}: {text[:40]!r} is no number; write it like {EXAMPLE}") from None
    if not 1 <= amount <= _MOST:
        raise ValueError(
            f"{name}: {text[:40]} is not between 1 and {_MOST:,}; write it like {EXAMPLE}"
        )
    return amount


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """The quota of this worker's namespace, as its operator has set it. The
    workflow `RunQuota` keeps it.
    """

    limits: QuotaLimits = field(default_factory=QuotaLimits)

    @property
    def counts(self) -> bool:
        """Whether there is a quota at all."""
        return self.limits != QuotaLimits()

    def ceilings(self, budget: Limits | None, ceilings: Limits | None) -> Limits | None:
        """Return what a person may raise the limits of a run to at most. The quota has reserved
        what the budget lets the run spend, so a limit that the quota counts stays as it is.
        """
        if budget is None:
            return ceilings
        fixed: dict[str, Any] = {}
        if self.limits.tokens_a_day is not None and budget.tokens is not None:
            fixed["tokens"] = budget.tokens
        if self.limits.cost_a_day is not None and budget.cost_usd is not None:
            fixed["cost_usd"] = budget.cost_usd
        if not fixed:
            return ceilings
        limits: dict[str, Any] = {}
        for name in Limits.model_fields:
            value = fixed.get(name, getattr(ceilings, name, None))
            if value is not None:
                limits[name] = value
        # Each value comes from limits that were validated.
        return Limits.model_construct(**limits)

    async def take(self, client: Client, call: PlaceCall) -> PlaceReply:
        """Ask for the place of a run. Safe to repeat. Raises RPCError, or an error of
        updates, if nobody answers.
        """
        start: WithStartWorkflowOperation[Any, None] = WithStartWorkflowOperation(
            QUOTA_TYPE,
            QuotaState(),
            id=QUOTA_ID,
            task_queue=WORKFLOW,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=(
                "the quota of this namespace: which runs go on, and what they spend in a day"
            ),
        )
        asked = PlaceAsked(request=_request_of(call), limits=self.limits)
        reply: PlaceReply = await client.execute_update_with_start_workflow(
            ASK_UPDATE,
            asked,
            start_workflow_operation=start,
            result_type=PlaceReply,
            rpc_timeout=_LIMIT,
        )
        return reply


async def ended_runs(client: Client, call: QuotaRuns) -> EndedRuns:
    """Return those of some runs that are over. One of which the server does not
    say counts as going on.
    """
    looks = asyncio.Semaphore(MAX_RUN_LOOKS)

    async def look(first_run: str, run: str) -> bool:
        async with looks:
            return await _is_over(client, run, first_run)

    answers = await asyncio.gather(*itertools.starmap(look, call.runs.items()))
    ended: list[str] = []
    for first_run, is_over in zip(call.runs, answers, strict=True):
        if is_over:
            ended.append(first_run)
    return EndedRuns(first_runs=tuple(ended))


async def _is_over(client: Client, run: str, first_run: str) -> bool:
    """Whether the chain of runs that began with `first_run` has ended, or
    another one has its id now.
    """
    try:
        found = await client.get_workflow_handle(run).describe(rpc_timeout=_LIMIT)
    except RPCError as error:
        return error.status == RPCStatusCode.NOT_FOUND
    latest = found.raw_description.workflow_execution_info.first_run_id
    if latest and latest != first_run:
        return True
    return found.status not in (
        WorkflowExecutionStatus.RUNNING,
        WorkflowExecutionStatus.CONTINUED_AS_NEW,
    )


def _request_of(call: PlaceCall) -> PlaceRequest:
    tokens = cost = None
    if call.budget is not None:
        tokens = call.budget.tokens
        if call.budget.cost_usd is not None:
            cost = micro_dollars(call.budget.cost_usd)
    return PlaceRequest(run=call.run, first_run=call.first_run, tokens=tokens, cost=cost)
