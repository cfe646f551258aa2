"""`sennit dev`: run the local stack in the foreground, or stop or restart the
one in the background.
"""

import argparse

from sennit.starter.client.errors import Exit, SennitError
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import whole
from sennit.starter.dev.messages import LocalStackFailed
from sennit.starter.dev.stack import LocalStack
from sennit.starter.limits import MAX_LOCAL_WORKERS
from sennit.starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe("", "sennit dev --workers 2\nsennit dev --restart")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--stop", action="store_true", help="stop the local stack that runs in the background"
    )
    restart_help = "start it in the background with these settings, in place of the one that runs"
    ends.add_argument("--restart", action="store_true", help=restart_help)
    count = whole(1, MAX_LOCAL_WORKERS)
    workers_help = "how many processes of workers it starts, each of every role (default: 1)"
    parser.add_argument("--workers", type=count, default=1, metavar="N", help=workers_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Run server and workers until interrupted; with --stop, stop those in the background, with
    --restart, start them anew.

    The runs of a stopped stack stay in its database and go on at the next start.
    """
    stack = LocalStack(say=terminal.say, workers=args.workers)
    try:
        if args.restart:
            await stack.restart()
            terminal.say("the local stack has started")
        elif not args.stop:
            await stack.serve()
        elif await stack.stop():
            terminal.say("the local stack is stopped; its runs go on at the next start")
        else:
            terminal.say("no local stack is running")
    except LocalStackFailed as failure:
        raise SennitError(str(failure)) from None
    return Exit.ANSWER
