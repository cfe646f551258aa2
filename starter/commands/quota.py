"""`sennit quota`: what the quota of a namespace lets its runs have, which of them
go on, and which wait.
"""

import argparse

from temporalio.client import WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.below import QUERY_TIMEOUT
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit, NoAnswer, NoNamespace
from sennit.starter.client.server_errors import error_of
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import columns
from sennit.workflows.messages.quota import QUOTA_ID, STATE_QUERY
from sennit.workflows.plan.language.limits import dollars, dollars_text
from sennit.workflows.plan.language.text import clean
from sennit.workflows.plan.quota import QuotaState, Spending


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit quota\nsennit quota --output json")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the runs that go on and those that wait to standard output, and the
    limits to standard error.

    Raises NoAnswer if no worker answers, or another SennitError.
    """
    sennit: Sennit = await connect(args, terminal)
    state = await _state(sennit)
    if state is None:
        terminal.say(
            "no run has asked for a place: SENNIT_QUOTA is not set, or nothing has run since"
        )
        state = QuotaState()
    else:
        for line in limit_lines(state):
            terminal.say(line)
    terminal.results(table(state, terminal.columns), run_rows(state))
    return Exit.ANSWER


async def _state(sennit: Sennit) -> QuotaState | None:
    """Return the quota of the namespace; None if it has none, or none any more."""
    quota = sennit.client.get_workflow_handle(QUOTA_ID)
    try:
        state: QuotaState = await quota.query(
            STATE_QUERY,
            result_type=QuotaState,
            reject_condition=QueryRejectCondition.NOT_OPEN,
            rpc_timeout=QUERY_TIMEOUT,
        )
    except WorkflowQueryRejectedError:
        return None
    except WorkflowQueryFailedError as error:
        raise NoAnswer(f"the quota cannot be read: {error}") from None
    except RPCError as error:
        problem = error_of(error)
        if error.status == RPCStatusCode.NOT_FOUND and not isinstance(problem, NoNamespace):
            return None
        raise problem from None
    return state


def limit_lines(state: QuotaState) -> list[str]:
    """Return a line for each limit of a quota, with how much of it is taken."""
    limits = state.limits
    spent = state.spent
    reserved = state.reserved
    lines: list[str] = []
    if limits.runs is not None:
        lines.append(f"runs: {len(state.places):,} of {limits.runs:,} go on")
    if limits.tokens_a_day is not None:
        used = f"{spent.tokens:,} of {limits.tokens_a_day:,} used today"
        lines.append(f"tokens: {used}, {reserved.tokens:,} reserved")
    if limits.cost_a_day is not None:
        used = f"{dollars_text(spent.cost)} of {dollars_text(limits.cost_a_day)} used today"
        lines.append(f"cost: {used}, {dollars_text(reserved.cost)} reserved")
    return lines


def run_rows(state: QuotaState) -> list[dict[str, object]]:
    """Return a row for each run that goes on, and for each that waits, in the order of the line."""
    rows = [_row(place.run, "running", place.reserved) for place in state.places.values()]
    rows += [_row(request.run, "queued", request.spending) for request in state.line.values()]
    return rows


def _row(run: str, status: str, most: Spending) -> dict[str, object]:
    return {"id": run, "status": status, "tokens": most.tokens, "cost_usd": dollars(most.cost)}


def table(state: QuotaState, width: int) -> str:
    """Return a line a run: its id, whether it goes on or waits, and what it may spend."""
    rows: list[list[str]] = []
    abouts: list[str] = []
    for row in run_rows(state):
        rows.append([clean(str(row["id"])), str(row["status"])])
        parts: list[str] = []
        if row["tokens"]:
            parts.append(f"{row['tokens']:,} tokens")
        if row["cost_usd"]:
            parts.append(f"${row['cost_usd']:,.2f}")
        abouts.append(", ".join(parts))
    return columns(rows, abouts, width)
