"""`sennit plan check` and `sennit plan draw`: plan files, without a server."""

import argparse

from starter.client.errors import Exit
from starter.commands.command_line import Parser, add_common_arguments
from starter.plans.catalogue import read_catalogue, read_type_problems
from starter.plans.plan_file import BadPlan, PlanFile, read_plan
from starter.terminal.console import Terminal
from starter.terminal.draw import mermaid, svg, text_picture

WIDTH = 80


def add_arguments(parser: Parser) -> None:
    parser.describe("check|draw PLAN", "sennit plan check plan.yaml\nsennit plan draw plan.yaml --format svg")
    actions = parser.add_subparsers(prog="sennit plan", dest="action", metavar="check|draw", required=True)
    for action, about in (("check", "say what is wrong with a plan"), ("draw", "draw a plan's graph")):
        command = actions.add_parser(action, usage=f"sennit plan {action} PLAN [flags]", help=about)
        add_common_arguments(command)
        command.add_argument("plan", metavar="PLAN", help="plan.yaml, plan.json, program.py, or - for standard input")
    formats = ("text", "mermaid", "svg")
    command.add_argument("--format", choices=formats, default="text", help="how to draw (default: text)")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check a plan, or draw it; raises BadPlan with every problem and its place."""
    file = read_plan(args.plan)
    if args.action == "check":
        return await _check(args.plan, file, terminal)
    plan = file.check(None)
    draw = {"mermaid": mermaid, "svg": svg}.get(args.format)
    terminal.answer(draw(plan) if draw else text_picture(plan, terminal.width or WIDTH))
    return Exit.ANSWER


async def _check(path: str, file: PlanFile, terminal: Terminal) -> Exit:
    as_data = terminal.output in ("json", "jsonl")
    try:
        if not file.script:  # a program's problems are told at once, those with tools among them
            file.check(None)
        catalogue = await read_catalogue()
        plan = file.check(catalogue)
        file.refuse(await read_type_problems(path) if file.script else ())
    except BadPlan as bad:
        if as_data:
            terminal.answer_json({"plan": file.name, "problems": str(bad).splitlines()})
        raise
    quote = file.quote(catalogue) if file.script else None
    if as_data:
        quoted = {"quote": quote.data()} if quote else {}
        terminal.answer_json({"plan": file.name, "nodes": len(plan.nodes), "problems": [], **quoted})
    else:
        about = f"{file.name}: {len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}, no problems"
        terminal.answer("\n".join([about, *(quote.lines() if quote else ())]))
    return Exit.ANSWER
