"""`sennit list`: the runs of a namespace, newest first, and what they wait for."""

import argparse
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import get_args

from sennit.starter.client.errors import Exit
from sennit.starter.client.runs import RunSummary
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect, typed
from sennit.starter.limits import MAX_DAYS, MAX_LISTED_RUNS
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import columns
from sennit.workflows.messages.result import RunStatus
from sennit.workflows.plan.language.limits import parse_duration

SHOWN = 20
_MORE = (
    f"there are more than {MAX_LISTED_RUNS:,} such runs, and only so many were read: "
    "ask for fewer with --since or --status"
)


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "", "sennit list --status blocked\nsennit list --failed --since 2d --output jsonl"
    )
    parser.add_argument("--status", choices=get_args(RunStatus), help="only runs with this status")
    parser.add_argument("--tenant", help="only runs of this tenant")
    age = typed(partial(parse_duration, longest=MAX_DAYS))
    parser.add_argument("--since", type=age, metavar="2d", help="only runs that began in this time")
    parser.add_argument(
        "--failed", action="store_true", help="only runs that failed or have failed nodes"
    )
    parser.add_argument(
        "--limit", type=int, default=SHOWN, metavar="N", help=f"how many to show (default: {SHOWN})"
    )


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write the runs to standard output: a table, a JSON list, or with jsonl a line a run."""
    sennit = await connect(args, terminal)
    since = None
    if args.since:
        since = datetime.now(UTC) - timedelta(seconds=args.since)
    more: list[str] = []
    found = await sennit.runs(
        status=args.status,
        tenant=args.tenant,
        since=since,
        failed=args.failed,
        on_more=lambda: more.append(_MORE),
    )
    shown = found[: max(args.limit, 0)]
    terminal.results(table(shown, terminal.columns, time.time()), list(map(_as_json, shown)))
    if not found:
        terminal.say("there are no such runs")
    for sentence in more:
        terminal.say(sentence)
    if len(found) > len(shown):
        terminal.say(f"{len(found) - len(shown)} more; --limit {len(found)} shows all")
    if any(not each.has_attributes and each.closed == 0 for each in shown):
        terminal.say(
            "some runs do not tell how far they are; create the search attributes with: sennit "
            "setup"
        )
    return Exit.ANSWER


def _as_json(summary: RunSummary) -> dict[str, object]:
    fields = asdict(summary)
    del fields["has_attributes"]
    return fields


def table(runs: list[RunSummary], width: int, now: float) -> str:
    """Return a line a run: id, status, age, nodes, and what it waits for, or its title."""
    rows: list[tuple[str, ...]] = []
    abouts: list[str] = []
    for run in runs:
        about = run.title
        if run.waits_for:
            about = f"waits for {run.waits_for}"
        rows.append((run.id, run.status, _age(now - run.began), _nodes(run)))
        abouts.append(about)
    return columns(rows, abouts, width)


def _nodes(summary: RunSummary) -> str:
    if summary.nodes is None:
        return ""
    failed = ""
    if summary.failed:
        failed = f", {summary.failed} failed"
    return f"{summary.done or 0}/{summary.nodes}{failed}"


def _age(seconds: float) -> str:
    """Return how long ago a run began, in its largest unit: `40s`, `12m`, `5h`, `3d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"
