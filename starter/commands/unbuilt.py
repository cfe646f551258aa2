"""Commands that are planned and refused by name until they exist."""

import argparse

from starter.client.errors import Exit, Refused
from starter.terminal.console import Terminal


async def run(args: argparse.Namespace, _: Terminal) -> Exit:
    """Raise Refused naming the command."""
    raise Refused(f"`sennit {args.command}` is not built yet")
