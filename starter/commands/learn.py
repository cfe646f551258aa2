"""`sennit learn`: what earlier runs teach. Becomes a process of `sennit.workers`, which
reads their artifact store.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from sennit.starter.commands.command_line import Parser
from sennit.starter.dev.worker_command import LEARN
from sennit.starter.plans.learned import store_environment
from sennit.starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "", "sennit learn --tenant acme --output json\nsennit learn --export runs.jsonl"
    )
    parser.add_argument(
        "--tenant", default="", help="what the runs of this tenant teach (default: those of none)"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--forget", action="store_true", help="delete all that is known of these runs"
    )
    export_help = (
        "write what runs said, one conversation a line; needs workers with SENNIT_LEARN=full"
    )
    action.add_argument("--export", type=Path, metavar="FILE.jsonl", help=export_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> NoReturn:
    """Replace this process by one that reads the store of a worker with this environment,
    or of the local stack.
    """
    environment = store_environment(args.address, args.namespace)
    command = [*LEARN, f"--tenant={args.tenant}", "--output", terminal.output]
    if args.forget:
        command.append("--forget")
    if args.export:
        command.append(f"--export={args.export.absolute()}")
    os.execve(sys.executable, command, environment)  # noqa: S606  # one of our own
