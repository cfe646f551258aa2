"""Commands that are planned and refused by name until they exist."""

import argparse

from starter.exits import Exit, Refused
from starter.terminal import Terminal


async def run(args: argparse.Namespace, _: Terminal) -> Exit:
    """Raise Refused naming the command."""
    raise Refused(f"`sennit {args.command}` is not built yet")
