"""`sennit gc`: delete artifacts of runs that the server no longer knows."""

import argparse
import os
import sys
from functools import partial

from starter.client.connection import configured_server
from starter.client.errors import Exit, Unreachable
from starter.client.local import has_local_runs, join_local_stack
from starter.commands.command_line import Parser
from starter.commands.launch import typed
from starter.dev.state import StateDir
from starter.dev.workers import GC, worker_environment
from starter.terminal.console import Terminal
from workflows.plan.language.limits import parse_duration

LONGEST_DAYS = 3650


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit gc --dry-run\nsennit gc --older-than 7d")
    age = typed(partial(parse_duration, longest=LONGEST_DAYS))
    age_help = "keep what was written in this time (default: 30d)"
    parser.add_argument("--older-than", type=age, default=parse_duration("30d"), metavar="30d", help=age_help)
    parser.add_argument("--dry-run", action="store_true", help="say what would be deleted, and delete nothing")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Replace this process by `python -m workers gc`, which works on the store of a worker with this environment, or
    on that of the local stack; never returns.
    """
    environment = dict(os.environ)
    if configured_server(args.address, args.namespace) is not None:
        given = {"TEMPORAL_ADDRESS": args.address, "TEMPORAL_NAMESPACE": args.namespace}
        environment |= {name: value for name, value in given.items() if value}
    elif has_local_runs():
        server = await join_local_stack(args.namespace, terminal.say, as_it_is=True)
        environment = worker_environment(StateDir.find(), server.address, 0, environment)
    else:
        raise Unreachable("there is no Temporal server; pass --address or set TEMPORAL_ADDRESS")
    command = [*GC, "--older-than", str(args.older_than), "--output", terminal.output]
    os.execve(sys.executable, [*command, *["--dry-run"] * args.dry_run], environment)  # noqa: S606  # one of our own
