"""The runs of a namespace, newest first, as Temporal's visibility store knows
them: no worker is asked.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import Refused
from sennit.starter.client.server_errors import error_of
from sennit.starter.limits import MAX_LISTED_RUNS
from sennit.workflows.messages.result import WAITS_FOR, RunStatus

WORKFLOW_TYPE = "AgentRun"
CALLER = "sennit_caller"
"""The memo of a run that an agent has started through `sennit serve`: whose agent."""
_ENDED: Mapping[WorkflowExecutionStatus, RunStatus] = {
    WorkflowExecutionStatus.RUNNING: "running",
    WorkflowExecutionStatus.COMPLETED: "done",
    WorkflowExecutionStatus.CANCELED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list. `waits_for` names the node that needs a person or a server; numbers are None
    where the namespace lacks search attributes. `began` and `closed` are seconds of the Unix clock,
    `closed` 0 while the run goes on. `caller` says whose agent has started it through `sennit
    serve`; it is empty for all other runs.
    """

    id: str
    run_id: str
    status: RunStatus
    title: str
    began: float
    closed: float
    waits_for: str = ""
    nodes: int | None = None
    done: int | None = None
    failed: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    caller: str = ""
    has_attributes: bool = False


async def read_runs(
    client: Client,
    *,
    status: RunStatus | None,
    tenant: str | None,
    since: datetime | None,
    failed: bool,
    on_more: Callable[[], None],
) -> list[RunSummary]:
    """Return the latest run of each id that fits, the newest first, without sub-agents. If more fit
    than one listing reads, `on_more` is called.

    Raises Refused if the namespace lacks the search attribute that a filter needs; another
    SennitError if the server does not answer.
    """
    found: dict[str, RunSummary] = {}
    try:
        async for each in _executions(
            client, _query(status, tenant, since, failed=failed), on_more
        ):
            summary = await summary_of(each)
            if each.id not in found or found[each.id].began < summary.began:
                found[each.id] = summary
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT and (status or tenant or failed):
            why = (
                "this namespace lacks the search attributes that --status, --tenant and --failed "
                "read"
            )
            raise Refused(f"{why}; create them with: sennit setup") from None
        raise error_of(error) from None
    return sorted(found.values(), key=lambda each: (-each.began, each.id))


async def _executions(
    client: Client, query: str, on_more: Callable[[], None]
) -> AsyncIterator[WorkflowExecution]:
    read = 0
    async for each in client.list_workflows(query):
        if read == MAX_LISTED_RUNS:
            on_more()
            return
        read += 1
        if each.parent_id is None:
            yield each


def _query(
    status: RunStatus | None, tenant: str | None, since: datetime | None, *, failed: bool
) -> str:
    """Return the list filter, which finds the same runs as `_status` would. A reset and a
    continuation leave a run behind that is over but not the run's end.
    """
    parts = [f"WorkflowType = '{WORKFLOW_TYPE}'", "ExecutionStatus != 'ContinuedAsNew'"]
    if status in ("running", "blocked"):
        parts += ["ExecutionStatus = 'Running'", f"SennitStatus = '{status}'"]
    elif status == "failed":
        parts.append(
            "(SennitStatus = 'failed' OR ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut'))"
        )
        parts.append("ExecutionStatus != 'Canceled'")
    elif status == "cancelled":  # one that waits for its writes to end says so itself
        parts.append("(ExecutionStatus = 'Canceled' OR SennitStatus = 'cancelled')")
    elif status == "done":
        silent = (
            "ExecutionStatus = 'Completed' AND (SennitStatus IS NULL OR SennitStatus IN "
            "('running', 'blocked'))"
        )
        parts.append(f"(SennitStatus = 'done' AND ExecutionStatus != 'Canceled' OR {silent})")
    elif status:
        parts += [f"SennitStatus = '{status}'", "ExecutionStatus != 'Canceled'"]
    if failed:
        ended = "ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut')"
        parts.append(f"(SennitNodesFailed > 0 OR SennitStatus = 'failed' OR {ended})")
    if tenant:
        quoted = tenant.replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"SennitTenant = '{quoted}'")
    if since:
        parts.append(f"StartTime >= '{since.isoformat()}'")
    return " AND ".join(parts)


async def summary_of(found: WorkflowExecution) -> RunSummary:
    """Return a run as lists show it, from what the server knows of it: no worker is asked."""
    values = {pair.key.name: pair.value for pair in found.typed_search_attributes}
    memo = await found.memo()
    closed = 0.0
    if found.close_time:
        closed = found.close_time.timestamp()
    waits = ""
    # The memo of a run that was ended may still say it.
    if found.status is WorkflowExecutionStatus.RUNNING:
        waits = str(memo.get(WAITS_FOR) or "")
    tokens = values.get("SennitTokens")
    if tokens is not None:
        tokens = int(tokens)
    return RunSummary(
        id=found.id,
        run_id=found.run_id,
        status=_status(found.status, values),
        title=str(memo.get("title") or ""),
        began=found.start_time.timestamp(),
        closed=closed,
        waits_for=waits,
        nodes=values.get("SennitNodesTotal"),
        done=values.get("SennitNodesDone"),
        failed=values.get("SennitNodesFailed"),
        tokens=tokens,
        cost_usd=values.get("SennitCostUsd"),
        caller=str(memo.get(CALLER) or ""),
        has_attributes="SennitStatus" in values,
    )


def _status(status: WorkflowExecutionStatus | None, values: Mapping[str, Any]) -> RunStatus:
    """Return the run's own status where it could still write one; the server's
    word about any other end.
    """
    recorded: RunStatus | None = values.get("SennitStatus")
    ended: RunStatus = "failed"
    if status:
        ended = _ENDED.get(status, "failed")
    if recorded is None or ended == "cancelled":
        return ended
    was_cut_off = recorded in ("running", "blocked") and ended != "running"
    return ended if was_cut_off else recorded
