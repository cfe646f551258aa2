"""`weft cancel`: cancel a run."""

import argparse

from starter.exits import Exit, Refused
from starter.launch import connect
from starter.terminal import Terminal
from starter.waiting import attend


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Ask a run to cancel; with --wait return its exit code once it is over, else 0 once the server has the order."""
    weft = await connect(args, terminal)
    found, goes_on = await weft.look_up(args.run)
    if not goes_on:
        raise Refused(f"{found.id} is over; see: weft status {found.id}{terminal.flags}")
    await found.cancel()
    if args.wait:
        return await attend(found, terminal, wait=True)
    terminal.say(f"{found.id} was told to cancel; see: weft status {found.id}{terminal.flags}")
    return Exit.ANSWER
