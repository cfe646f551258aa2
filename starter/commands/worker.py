"""`sennit worker` and `sennit gc`: become a process of `sennit.workers`."""

import argparse
import os
import sys
from functools import partial
from typing import NoReturn

from sennit.starter.client.connection import configured_server
from sennit.starter.client.errors import Refused, ServerUnreachable
from sennit.starter.client.local import has_local_runs, join_local_stack
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import typed
from sennit.starter.dev.messages import WrongSettings
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.worker_command import WORKERS
from sennit.starter.dev.workers import GC, refuse_foreign_store, worker_environment
from sennit.starter.limits import MAX_DAYS
from sennit.starter.terminal.console import Terminal
from sennit.workflows.plan.language.limits import parse_duration


def add_arguments(parser: Parser) -> None:
    if parser.prog.endswith(" gc"):
        parser.describe("", "sennit gc --dry-run\nsennit gc --older-than 7d")
        age = typed(partial(parse_duration, longest=MAX_DAYS))
        age_help = "keep what was written in this time (default: 30d)"
        parser.add_argument(
            "--older-than", type=age, default=parse_duration("30d"), metavar="30d", help=age_help
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be deleted, and delete nothing"
        )
        return
    parser.describe(
        "ROLE", "sennit worker tools\nsennit worker all --address temporal.example.com:7233"
    )
    parser.add_argument(
        "role", metavar="ROLE", help="what it serves: workflow, llm, tools, sandbox, all"
    )


async def run(args: argparse.Namespace, terminal: Terminal) -> NoReturn:
    """Replace this process by one of the workers; never returns."""
    if args.command == "gc":
        await _collect(args, terminal)
    _serve(args)


def _serve(args: argparse.Namespace) -> NoReturn:
    """Become `python -m sennit.workers ROLE`, connected as the flags say."""
    for flag, variable in (("address", "TEMPORAL_ADDRESS"), ("namespace", "TEMPORAL_NAMESPACE")):
        if getattr(args, flag):
            os.environ[variable] = getattr(args, flag)
    os.execv(sys.executable, [*WORKERS, args.role])  # noqa: S606  # a program of our own


async def _collect(args: argparse.Namespace, terminal: Terminal) -> NoReturn:
    """Become `python -m sennit.workers gc`, which works on the store of a worker with this
    environment, or on that of the local stack.
    """
    environment = dict(os.environ)
    if configured_server(args.address, args.namespace) is not None:
        connection = {"TEMPORAL_ADDRESS": args.address, "TEMPORAL_NAMESPACE": args.namespace}
        environment |= {name: value for name, value in connection.items() if value}
    elif has_local_runs():
        try:
            refuse_foreign_store(StateDir.find())
        except WrongSettings as wrong:
            raise Refused(str(wrong)) from None
        server = await join_local_stack(args.namespace, terminal.say, "never")
        environment = worker_environment(StateDir.find(), server.address, 0, environment)
    else:
        raise ServerUnreachable(
            "there is no Temporal server; pass --address or set TEMPORAL_ADDRESS"
        )
    command = [*GC, "--older-than", str(args.older_than), "--output", terminal.output]
    os.execve(sys.executable, [*command, *["--dry-run"] * args.dry_run], environment)  # noqa: S606  # one of our own
