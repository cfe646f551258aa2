"""From a command line to a connection, and from there to a run that is waited for."""

import argparse
from typing import Any

from starter.client.client import Sennit
from starter.client.connection import configured_place, hush, reach
from starter.client.errors import Exit, Refused, Unreachable
from starter.client.local import has_local_runs, join_local_stack
from starter.client.request import docs_folder
from starter.terminal.console import Terminal
from starter.terminal.wait import attend, detach


async def connect(
    args: argparse.Namespace, terminal: Terminal, *, docs: str | None = None, for_new: bool = False
) -> Sennit:
    """Connect to the server that flags, environment or profile name, else to the local stack.

    A folder that has to be here is looked for before anything is started, and where no local stack ever ran none is
    started just to look for a run in it. Raises Refused or Unreachable.
    """
    hush()
    place = configured_place(args.address, args.namespace)
    if docs:
        docs_folder(docs, near=place is None or place.near)
    if place is None and not for_new and not has_local_runs():
        raise Unreachable("no Temporal server is named by --address or TEMPORAL_ADDRESS, and none ever ran here")
    place = place or await join_local_stack(args.namespace, terminal.say, as_it_is=not for_new)
    return Sennit(await reach(place), place)


async def launch(args: argparse.Namespace, terminal: Terminal, *, docs: str | None, **what: Any) -> Exit:
    """Start a run, or join the one of that id, and wait for it as the flags say."""
    if args.again and args.id is None:
        raise Refused("--again starts the run of an --id anew; without --id every run is new")
    sennit = await connect(args, terminal, docs=docs, for_new=True)
    run = await sennit.start(
        **what,
        docs=docs,
        tools=list(filter(None, args.tools.split(","))) if args.tools is not None else None,
        approval=args.approval,
        on_failure=args.on_failure,
        window=args.window,
        budget=args.budget,
        max_replans=getattr(args, "max_replans", None),  # a plan file is run as it is written
        approve_replans_above=args.approve_replans_above,
        tenant=args.tenant,
        id=args.id,
        again=args.again,
    )
    if args.detach:
        return detach(run, terminal)
    return await attend(run, terminal, wait=args.wait, limit=args.timeout)
