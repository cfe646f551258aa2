"""`sennit audit`: who has decided what in a run and its sub-agents, or which rule of the
operator has, and when.
"""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime

from sennit.starter.client.audit import AuditLine, audit
from sennit.starter.client.client import Sennit
from sennit.starter.client.errors import Exit
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.launch import connect
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import columns
from sennit.workflows.plan.language.text import clean, one_line


def add_arguments(parser: Parser) -> None:
    parser.describe("RUN", "sennit audit nightly-1\nsennit audit nightly-1 --output jsonl")
    add_run_argument(parser)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write a line for each decision to standard output: a table, a JSON list, or
    with jsonl a line each.
    """
    sennit: Sennit = await connect(args, terminal)
    lines, silent = await audit(sennit, args.run)
    terminal.results(table(lines, terminal.columns), [asdict(line) for line in lines])
    if not lines:
        terminal.say(f"nobody has decided anything in {args.run}")
    for path in silent:
        terminal.notice(f"the sub-agent {path} does not answer, so its decisions are missing")
    return Exit.PARTIAL if silent else Exit.ANSWER


def table(lines: list[AuditLine], width: int) -> str:
    """Return a line a decision: when, what, of which node, by whom, the digest, and why."""
    rows: list[list[str]] = []
    for line in lines:
        cells = (_when(line), line.update, line.node or "the run", _who(line), line.digest)
        rows.append([clean(one_line(cell)) for cell in cells])
    return columns(rows, [line.text for line in lines], width)


def _when(line: AuditLine) -> str:
    return f"{datetime.fromtimestamp(line.at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _who(line: AuditLine) -> str:
    if line.rule:
        return f"rule {line.rule}"
    return line.by or "nobody says who"
