"""`sennit quota`: what the quota of a namespace lets its runs have, which of them go on, and which wait."""

import argparse

from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit, NoAnswer
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import columns
from sennit.workflows.messages.quota import QUOTA_ID, STATE_QUERY
from sennit.workflows.plan.language.limits import dollars
from sennit.workflows.plan.language.text import clean
from sennit.workflows.plan.quota import QuotaState


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit quota\nsennit quota --output json")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the runs that go on and those that wait to standard output, and the limits to standard error.

    Raises NoAnswer if no worker answers.
    """
    sennit: Sennit = await connect(args, terminal)
    state = await _state(sennit)
    if state is None:
        terminal.say("no run has asked for a place: SENNIT_QUOTA is not set, or nothing has run since")
        state = QuotaState()
    else:
        for line in limit_lines(state):
            terminal.say(line)
    terminal.results(table(state, terminal.columns), run_rows(state))
    return Exit.ANSWER


async def _state(sennit: Sennit) -> QuotaState | None:
    """Return the quota of the namespace, None if it has none."""
    quota = sennit.client.get_workflow_handle(QUOTA_ID)
    try:
        state: QuotaState = await quota.query(STATE_QUERY, result_type=QuotaState)
        return state
    except WorkflowQueryFailedError as error:
        raise NoAnswer(f"the quota cannot be read: {error}") from None
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise NoAnswer(f"no worker of the role workflow answers: {error.message}") from None


def limit_lines(state: QuotaState) -> list[str]:
    """Return a line for each limit of a quota, with how much of it is taken."""
    limits = state.limits
    spent = state.spent
    today = [place.reserved for place in state.places.values() if place.day == state.day]
    lines: list[str] = []
    if limits.runs is not None:
        lines.append(f"runs: {len(state.places):,} of {limits.runs:,} go on")
    if limits.tokens_a_day is not None:
        reserved = sum(spending.tokens for spending in today)
        lines.append(f"tokens: {spent.tokens:,} of {limits.tokens_a_day:,} used today, {reserved:,} reserved")
    if limits.cost_a_day is not None:
        reserved = sum(spending.cost for spending in today)
        lines.append(f"cost: {_usd(spent.cost)} of {_usd(limits.cost_a_day)} used today, {_usd(reserved)} reserved")
    return lines


def run_rows(state: QuotaState) -> list[dict[str, object]]:
    """Return a row for each run that goes on, and for each that waits, in the order of the line."""
    rows: list[dict[str, object]] = []
    for place in state.places.values():
        reserved = {"tokens": place.reserved.tokens, "cost_usd": dollars(place.reserved.cost)}
        rows.append({"id": place.run, "status": "running", **reserved})
    for request in state.line.values():
        wished = {"tokens": request.spending.tokens, "cost_usd": dollars(request.spending.cost)}
        rows.append({"id": request.run, "status": "queued", **wished})
    return rows


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


def _usd(cost: int) -> str:
    return f"${dollars(cost):,.2f}"
