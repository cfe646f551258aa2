"""`sennit watch`: follow a run to its answer."""

import argparse

from starter.client.errors import Exit
from starter.commands.launch import connect
from starter.terminal.console import Terminal
from starter.terminal.wait import attend


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Show a run until it is over, as `sennit ask` does for the run it started."""
    sennit = await connect(args, terminal)
    return await attend(await sennit.find(args.run), terminal, wait=args.wait, limit=args.timeout)
