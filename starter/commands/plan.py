"""`sennit plan check` and `sennit plan draw`: plan files, without a server."""

import argparse

from sennit.starter.client.errors import Exit
from sennit.starter.commands.command_line import CONNECTION, Parser, add_common_arguments
from sennit.starter.plans.plan_check import check_plan
from sennit.starter.plans.plan_file import BadPlan, PlanFile, read_plan
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.draw import mermaid, svg, text_picture

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
        checked = await check_plan(file, terminal.notice, terminal.say)
    except BadPlan as bad:
        warnings = file.warnings(None, None)
        _warn(warnings, terminal)
        terminal.result("", {"plan": file.name, "problems": str(bad).splitlines(), "warnings": warnings})
        raise
    plan = checked.plan
    warnings = [*file.warnings(plan, checked.catalogue), *file.lines(checked.doubts)]
    quote = file.quote(checked.catalogue) if file.script else None
    _warn(warnings, terminal)
    about = f"{file.name}: {len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}, no problems"
    quoted = {"quote": quote.data()} if quote else {}
    result = {"plan": file.name, "nodes": len(plan.nodes), "problems": [], "warnings": warnings}
    terminal.result("\n".join([about, *(quote.lines() if quote else ())]), {**result, **quoted})
    return Exit.ANSWER


def _warn(warnings: list[str], terminal: Terminal) -> None:
    """Write warnings where no JSON has them."""
    for line in warnings if terminal.output not in ("json", "jsonl") else ():
        terminal.notice(f"warning: {line}")
