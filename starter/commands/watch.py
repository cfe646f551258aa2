"""`sennit watch`: follow a run to its answer."""

import argparse

from starter.exits import Exit
from starter.launch import connect
from starter.terminal import Terminal
from starter.waiting import attend


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Show a run until it is over, as `sennit ask` does for the run it started."""
    sennit = await connect(args, terminal)
    return await attend(await sennit.find(args.run), terminal, wait=args.wait, limit=args.timeout)
