"""`sennit plan check` and `sennit plan draw`: plan files, without a server."""

import argparse

from starter.client.errors import Exit
from starter.plans.catalogue import read_catalogue
from starter.plans.plan_file import BadPlan, PlanFile, read_plan
from starter.terminal.console import Terminal
from starter.terminal.draw import mermaid, picture, svg

WIDTH = 80


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check a plan, or draw it; raises BadPlan with every problem and its line."""
    file = read_plan(args.plan)
    if args.action == "draw":
        plan = file.check(None)
        drawn = {"mermaid": mermaid, "svg": svg}.get(args.format)
        terminal.answer(drawn(plan) if drawn else picture(plan, terminal.width or WIDTH))
        return Exit.ANSWER
    return await _check(file, terminal)


async def _check(file: PlanFile, terminal: Terminal) -> Exit:
    as_data = terminal.output in ("json", "jsonl")
    try:
        file.check(None)
        plan = file.check(await read_catalogue())
    except BadPlan as bad:
        if as_data:
            terminal.answer_json({"plan": file.name, "problems": str(bad).splitlines()})
        raise
    if as_data:
        terminal.answer_json({"plan": file.name, "nodes": len(plan.nodes), "problems": []})
    else:
        terminal.answer(f"{file.name}: {len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}, nothing wrong")
    return Exit.ANSWER
