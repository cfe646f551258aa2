"""`sennit dev`: run the local stack in the foreground, or stop the one in the background."""

import argparse

from starter.client.errors import CliError, Exit
from starter.commands.command_line import Parser
from starter.dev.messages import LocalStackFailed
from starter.dev.stack import LocalStack
from starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit dev\nsennit dev --stop")
    parser.add_argument("--stop", action="store_true", help="stop the local stack that runs in the background")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Run server and workers until interrupted; with --stop, stop those in the background.

    The runs of a stopped stack stay in its database and go on at the next start.
    """
    stack = LocalStack(say=terminal.say)
    try:
        if not args.stop:
            await stack.serve()
        elif await stack.stop():
            terminal.say("the local stack is stopped; its runs go on at the next start")
        else:
            terminal.say("no local stack is running")
    except LocalStackFailed as failure:
        raise CliError(str(failure)) from None
    return Exit.ANSWER
