"""`sennit plan check` and `sennit plan draw`: plan files, without a server. `sennit plan
export`: that of a run.
"""

import argparse
from typing import Any

from sennit.starter.client.errors import Exit
from sennit.starter.commands.command_line import (
    CONNECTION,
    Parser,
    add_common_arguments,
    add_run_argument,
)
from sennit.starter.commands.launch import connect
from sennit.starter.plans.learned import unused_edge_warnings
from sennit.starter.plans.plan_check import check_plan
from sennit.starter.plans.plan_file import BadPlan, PlanFile, read_plan
from sennit.starter.plans.plan_text import plan_text
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.draw import mermaid, svg, text_picture
from sennit.workflows.plan.language.text import clean

WIDTH = 80


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "check|draw|export PLAN|RUN", "sennit plan check plan.yaml\nsennit plan export nightly-1"
    )
    actions = parser.add_subparsers(
        prog="sennit plan", dest="action", metavar="check|draw|export", required=True
    )
    for action, about in (
        ("check", "say what is wrong with a plan"),
        ("draw", "draw a plan's graph"),
    ):
        command = _add_action(actions, action, "PLAN", about)
        command.add_argument(
            "plan", metavar="PLAN", help="plan.yaml, plan.json, program.py, or - for standard input"
        )
    formats = ("text", "mermaid", "svg")
    command.add_argument(
        "--format", choices=formats, default="text", help="how to draw (default: text)"
    )
    command = _add_action(
        actions, "export", "RUN", "write the plan of a run as a file that `sennit run` takes"
    )
    add_run_argument(command)


def _add_action(actions: Any, action: str, takes: str, about: str) -> Parser:
    usage = f"sennit plan {action} {takes} [flags]"
    command: Parser = actions.add_parser(action, usage=usage, help=about, epilog=CONNECTION)
    add_common_arguments(command)
    return command


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check a plan, draw it, or write that of a run. Raises BadPlan with every
    problem and its place.
    """
    if args.action == "export":
        return await _export(args, terminal)
    file = read_plan(args.plan)
    if args.action == "check":
        return await _check(file, terminal)
    plan = file.check(None)
    if args.format == "mermaid":
        picture = mermaid(plan)
    elif args.format == "svg":
        picture = svg(plan)
    else:
        picture = text_picture(plan, terminal.width or WIDTH)
    terminal.answer(picture)
    return Exit.ANSWER


async def _export(args: argparse.Namespace, terminal: Terminal) -> Exit:
    sennit = await connect(args, terminal)
    found, _ = await sennit.look_up(args.run)
    masked: list[bool] = []
    plan = await found.plan(on_mask=lambda: masked.append(True))
    text = plan_text(plan)
    if terminal.output in ("json", "jsonl"):
        terminal.result("", plan.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    elif terminal.out.isatty():
        terminal.answer(clean(text), end="")
    else:
        terminal.answer(text, end="")
    if masked:
        terminal.notice(
            "the worker that has read it has masked a secret in it: put yours in its place before "
            "you run it"
        )
    return Exit.ANSWER


async def _check(file: PlanFile, terminal: Terminal) -> Exit:
    try:
        checked = await check_plan(file, terminal.notice, terminal.say)
    except BadPlan as bad:
        warnings = file.warnings(None, None)
        _warn(warnings, terminal)
        terminal.result(
            "", {"plan": file.name, "problems": str(bad).splitlines(), "warnings": warnings}
        )
        raise
    plan = checked.plan
    doubts = [*checked.doubts, *await unused_edge_warnings(plan, checked.catalogue.tools)]
    warnings = [*file.warnings(plan, checked.catalogue), *file.lines(doubts)]
    _warn(warnings, terminal)

    nodes = "node" if len(plan.nodes) == 1 else "nodes"
    lines = [f"{file.name}: {len(plan.nodes)} {nodes}, no problems"]
    data: dict[str, Any] = {
        "plan": file.name,
        "nodes": len(plan.nodes),
        "problems": [],
        "warnings": warnings,
    }
    if file.script:
        quote = file.quote(checked.catalogue)
        lines += quote.lines()
        data["quote"] = quote.data()
    terminal.result("\n".join(lines), data)
    return Exit.ANSWER


def _warn(warnings: list[str], terminal: Terminal) -> None:
    """Write warnings where no JSON has them."""
    if terminal.output in ("json", "jsonl"):
        return
    for line in warnings:
        terminal.notice(f"warning: {line}")
