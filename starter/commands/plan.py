"""`sennit plan check` and `sennit plan draw`: plan files, without a server."""

import argparse

from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands.command_line import CONNECTION, Parser, add_common_arguments
from sennit.starter.plans.catalogue import Catalogue, read_catalogue, read_type_problems
from sennit.starter.plans.plan_file import BadPlan, PlanFile, read_plan
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.draw import mermaid, svg, text_picture
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.syntax import DOUBT

WIDTH = 80


def add_arguments(parser: Parser) -> None:
    parser.describe("check|draw PLAN", "sennit plan check plan.yaml\nsennit plan draw plan.yaml --format svg")
    actions = parser.add_subparsers(prog="sennit plan", dest="action", metavar="check|draw", required=True)
    for action, about in (("check", "say what is wrong with a plan"), ("draw", "draw a plan's graph")):
        command = actions.add_parser(action, usage=f"sennit plan {action} PLAN [flags]", help=about, epilog=CONNECTION)
        add_common_arguments(command)
        command.add_argument("plan", metavar="PLAN", help="plan.yaml, plan.json, program.py, or - for standard input")
    formats = ("text", "mermaid", "svg")
    command.add_argument("--format", choices=formats, default="text", help="how to draw (default: text)")


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check a plan, or draw it; raises BadPlan with every problem and its place."""
    file = read_plan(args.plan)
    if args.action == "check":
        return await _check(file, terminal)
    plan = file.check(None)
    draw = {"mermaid": mermaid, "svg": svg}.get(args.format)
    terminal.answer(draw(plan) if draw else text_picture(plan, terminal.width or WIDTH))
    return Exit.ANSWER


async def _check(file: PlanFile, terminal: Terminal) -> Exit:
    try:
        plan, catalogue, doubts = await _checked(file, terminal)
    except BadPlan as bad:
        warnings = file.warnings(None, None)
        _warn(warnings, terminal)
        terminal.result("", {"plan": file.name, "problems": str(bad).splitlines(), "warnings": warnings})
        raise
    warnings = [*file.warnings(plan, catalogue), *file.lines(doubts)]
    quote = file.quote(catalogue) if file.script else None
    _warn(warnings, terminal)
    about = f"{file.name}: {len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}, no problems"
    quoted = {"quote": quote.data()} if quote else {}
    checked = {"plan": file.name, "nodes": len(plan.nodes), "problems": [], "warnings": warnings}
    terminal.result("\n".join([about, *(quote.lines() if quote else ())]), {**checked, **quoted})
    return Exit.ANSWER


def _warn(warnings: list[str], terminal: Terminal) -> None:
    """Write warnings where no JSON has them."""
    for line in warnings if terminal.output not in ("json", "jsonl") else ():
        terminal.notice(f"warning: {line}")


async def _checked(file: PlanFile, terminal: Terminal) -> tuple[Plan, Catalogue, list[Problem]]:
    """Return a plan without problems, what it was checked against, and doubts about its types. Raises BadPlan with all
    its problems.

    The types of a program are checked even if something else is wrong with it, but on no line of which that is known.
    """
    try:
        catalogue = await read_catalogue()
    except Refused as wrong:
        if found := file.problems(None):
            terminal.notice(f"sennit: {wrong}")
            file.refuse(found)
        raise
    for reason in sorted(set(catalogue.unavailable.values())):
        terminal.say(f"unavailable: {reason}")
    found = file.problems(catalogue)
    if file.script and not any(each.code in ("syntax", "size") for each in found):
        lines = {each.where[-1] for each in found if "line" in each.where}
        found += [each for each in await read_type_problems(file.script) if each.where[-1] not in lines]
    file.refuse(each for each in found if each.code != DOUBT)
    return file.check(catalogue), catalogue, [each for each in found if each.code == DOUBT]
