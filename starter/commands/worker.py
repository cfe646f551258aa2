"""`sennit worker`: become a worker process."""

import argparse
import os
import sys

from starter.client.errors import Exit
from starter.commands.command_line import Parser
from starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe("ROLE", "sennit worker tools\nsennit worker all --address temporal.example.com:7233")
    parser.add_argument("role", metavar="ROLE", help="what it serves: workflow, llm, tools, sandbox, all")


async def run(args: argparse.Namespace, _: Terminal) -> Exit:
    """Replace this process by `python -m workers ROLE`, connected as the flags say; never returns."""
    for flag, variable in (("address", "TEMPORAL_ADDRESS"), ("namespace", "TEMPORAL_NAMESPACE")):
        if getattr(args, flag):
            os.environ[variable] = getattr(args, flag)
    command = [sys.executable, "-P", "-m", "workers", args.role]  # -P: the current folder has no modules of ours
    os.execv(sys.executable, command)  # noqa: S606  # a program of our own
