"""`sennit run`: run a plan file, or a program."""

import argparse
from pathlib import Path

from starter.client.errors import Exit, Refused
from starter.commands.command_line import Parser
from starter.commands.launch import add_start_arguments, launch
from starter.plans.catalogue import read_catalogue
from starter.plans.inputs import read_inputs
from starter.plans.plan_file import PlanFile, read_plan
from starter.terminal.console import Terminal


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "PLAN", "sennit run plan.yaml --input city=Rome\nsennit run research.py --input topic=tides --id nightly-1"
    )
    parser.add_argument("plan", metavar="PLAN", help="plan.yaml, plan.json, program.py, or - for standard input")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help="an input; repeatable")
    parser.add_argument("--quote", action="store_true", help="print what a program can cost, and start nothing")
    add_start_arguments(parser, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check the plan's form, read the inputs by their declared types, start it and wait for its answer.

    The run checks the tools, against those that its workers have.
    """
    file = read_plan(args.plan)
    if args.quote:
        return await _quote(args, file, terminal)
    plan = file.check(None)
    inputs = read_inputs(args.input, plan.inputs)
    title = plan.goal or file.title or ("plan" if args.plan == "-" else Path(args.plan).stem)
    what = {"program": file.script} if file.script else {"plan": file.data}
    return await launch(args, terminal, **what, inputs=inputs, docs=args.docs, title=title)


async def _quote(args: argparse.Namespace, file: PlanFile, terminal: Terminal) -> Exit:
    """Print what a program can cost with these inputs; those that are missing have their defaults."""
    if not file.script:
        raise Refused(f"--quote: {file.name} is no program; only programs (.py) have a quote")
    catalogue = await read_catalogue()
    inputs = read_inputs(args.input, file.check(catalogue).inputs, may_lack=True)
    quote = file.quote(catalogue, inputs, args.model or "")
    if terminal.output in ("json", "jsonl"):
        terminal.answer_json(quote.data())
    else:
        terminal.answer("\n".join(quote.lines()))
    return Exit.ANSWER
