"""`sennit dev`: the local stack in the foreground, or stopped."""

import argparse

from starter.client.errors import Exit
from starter.client.local import serve_local_stack, stop_local_stack
from starter.terminal.console import Terminal


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Run server and workers until interrupted; with --stop end those in the background."""
    return await (stop_local_stack(terminal.say) if args.stop else serve_local_stack(terminal.say))
