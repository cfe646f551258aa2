"""`sennit run`: run a plan file."""

import argparse
from pathlib import Path

from starter.client.errors import Exit
from starter.commands.launch import launch
from starter.plans.inputs import read_inputs
from starter.plans.plan_file import read_plan
from starter.terminal.console import Terminal


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check the plan's form, read the inputs by their declared types, start it and wait for its answer.

    Tools are checked by the run, against those its workers have.
    """
    file = read_plan(args.plan)
    plan = file.check(None)
    inputs = read_inputs(args.input, plan.inputs)
    title = "plan" if args.plan == "-" else Path(args.plan).stem
    return await launch(args, terminal, plan=file.data, inputs=inputs, docs=args.docs, title=plan.goal or title)
