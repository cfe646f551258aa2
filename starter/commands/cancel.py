"""`sennit cancel`: cancel a run."""

import argparse

from starter.client.errors import Exit, Refused
from starter.commands.launch import connect
from starter.terminal.console import Terminal
from starter.terminal.wait import attend


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask a run to cancel; with --wait return its exit code once it is over, else 0 once the server has the order."""
    sennit = await connect(args, terminal)
    found, goes_on = await sennit.look_up(args.run)
    if not goes_on:
        raise Refused(f"{found.id} is over; see: sennit status {found.id}{terminal.flags}")
    await found.cancel()
    if args.wait:
        return await attend(found, terminal, wait=True)
    terminal.say(f"{found.id} was told to cancel; see: sennit status {found.id}{terminal.flags}")
    return Exit.ANSWER
