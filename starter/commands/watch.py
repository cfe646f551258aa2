"""`sennit watch`: follow a run to its answer."""

import argparse

from starter.client.errors import Exit
from starter.commands.command_line import Parser, add_run_argument
from starter.commands.launch import add_wait_arguments, connect
from starter.terminal.console import Terminal
from starter.terminal.wait import wait_for_run


def add_arguments(parser: Parser) -> None:
    parser.describe("RUN", "sennit watch agent-mont-blanc-1a2b3c4d\nsennit watch nightly-1 --wait --timeout 10m")
    add_run_argument(parser)
    add_wait_arguments(parser)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Show a run until it is over, as `sennit ask` does for the run it started."""
    sennit = await connect(args, terminal)
    return await wait_for_run((await sennit.look_up(args.run))[0], terminal, wait=args.wait, limit=args.timeout)
