"""`sennit cancel`: cancel a run."""

import argparse

from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.launch import connect
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.wait import wait_for_run


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "RUN", "sennit cancel agent-mont-blanc-1a2b3c4d\nsennit cancel nightly-1 --wait"
    )
    add_run_argument(parser)
    parser.add_argument("--wait", action="store_true", help="wait until the run is cancelled")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask a run to cancel. Return 0 once the server has the request; with --wait, the
    run's exit code at its end.
    """
    sennit = await connect(args, terminal)
    found, is_open = await sennit.look_up(args.run)
    if not is_open:
        raise Refused(f"{found.id} is over; see: sennit status {found.id}{terminal.flags}")
    await found.cancel()
    if args.wait:
        return await wait_for_run(found, terminal, wait=True)
    terminal.say(f"{found.id} will be cancelled; see: sennit status {found.id}{terminal.flags}")
    return Exit.ANSWER
