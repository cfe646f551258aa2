"""`sennit dev`: run the local stack in the foreground, or stop the one in the background."""

import argparse

from starter.client.errors import Exit
from starter.client.local import serve_local_stack, stop_local_stack
from starter.commands.command_line import Parser
from starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit dev\nsennit dev --stop")
    parser.add_argument("--stop", action="store_true", help="stop the local stack that runs in the background")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Run server and workers until interrupted; with --stop, stop those in the background."""
    return await (stop_local_stack(terminal.say) if args.stop else serve_local_stack(terminal.say))
