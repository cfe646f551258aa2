"""`sennit figures`: what parallelism has brought to many runs, for what their calls
waited, and what has failed.
"""

import argparse
from datetime import UTC, datetime, timedelta
from functools import partial

from sennit.starter.client.errors import Exit
from sennit.starter.client.figures import figures_of_runs
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect, typed
from sennit.starter.limits import MAX_DAYS, MAX_LISTED_RUNS
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.figures import many_text
from sennit.workflows.plan.figures.many import together
from sennit.workflows.plan.language.limits import parse_duration

WEEK = 7 * 86_400.0
_MORE = (
    f"there are more than {MAX_LISTED_RUNS:,} such runs, and only so many were read: ask for "
    "fewer with --since"
)


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "", "sennit figures --since 7d\nsennit figures --since 1d --tenant acme --output json"
    )
    age = typed(partial(parse_duration, longest=MAX_DAYS))
    since_help = "runs that began in this time (default: 7d)"
    parser.add_argument("--since", type=age, default=WEEK, metavar="7d", help=since_help)
    parser.add_argument("--tenant", help="only runs of this tenant")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the figures of runs that are over to standard output. No worker is asked."""
    sennit = await connect(args, terminal)
    since = datetime.now(UTC) - timedelta(seconds=args.since)
    more: list[str] = []
    runs = await sennit.runs(tenant=args.tenant, since=since, on_more=lambda: more.append(_MORE))
    closed = [run for run in runs if run.closed]
    by_run = await figures_of_runs(sennit.client, runs)
    figures = together(list(by_run.values()))

    text = "no run that is over has figures"
    if figures.runs:
        text = many_text(figures)
    still_open = len(runs) - len(closed)
    without = len(closed) - figures.runs
    data = {**figures.model_dump(mode="json"), "runs_without": without, "runs_open": still_open}
    terminal.result(text, data)
    terminal.say(_said(figures.runs, without, still_open))
    for sentence in more:
        terminal.say(sentence)
    return Exit.ANSWER


def _said(runs: int, without: int, is_open: int) -> str:
    """Return of how many runs these are the figures, and how many have none."""
    text = f"{runs:,} run{'s' * (runs != 1)}"
    if without:
        text += (
            f"; {without:,} more ended without a report, or in an older Sennit, and have no figures"
        )
    if is_open:
        text += f"; {is_open:,} still go on: sennit status RUN --figures"
    return text
