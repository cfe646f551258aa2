"""`sennit run`: run a plan file, or a program; `sennit fork`: run again what is over, and
take over what it made.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import configured_server
from sennit.starter.client.errors import Exit, Refused, RunNotFound
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.launch import add_start_arguments, launch, run_options
from sennit.starter.commands.review import Review, add_review_arguments
from sennit.starter.plans.catalogue import read_catalogue
from sennit.starter.plans.inputs import pairs, read_inputs
from sennit.starter.plans.plan_check import check_plan
from sennit.starter.plans.plan_file import PlanFile, read_plan, read_script
from sennit.starter.terminal.console import Terminal
from sennit.workflows.plan.language.nodes import InputSpec, Plan
from sennit.workflows.plan.language.text import nearest_or_known
from sennit.workflows.plan.programs.program_plan import title_of


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=VALUE", help="an input; repeatable"
    )
    if parser.prog.endswith(" fork"):
        one, other = (
            "sennit fork nightly-1 --with research.py --dry-run",
            "sennit fork nightly-1 --model openai:NAME",
        )
        parser.describe("RUN", f"{one}\n{other} --id nightly-2")
        add_run_argument(parser)
        parser.add_argument(
            "--with",
            dest="script",
            metavar="FILE.py",
            help="another script (default: its last one), - for standard input",
        )
        parser.add_argument(
            "--node", metavar="NODE", default="", help="the program's id in a plan of several"
        )
        parser.add_argument(
            "--repeat-writes", action="store_true", help="do not ask about writes of the old script"
        )
        add_review_arguments(parser)
        add_start_arguments(parser, replans=True, docs=True)
        return
    parser.describe(
        "PLAN",
        "sennit run plan.yaml --input city=Rome\nsennit run research.py --input topic=tides --id "
        "nightly-1",
    )
    parser.add_argument(
        "plan", metavar="PLAN", help="plan.yaml, plan.json, program.py, or - for standard input"
    )
    attach_help = (
        "an input that is an image, PDF or recording, or a folder as a workspace; repeatable"
    )
    parser.add_argument(
        "--attach", action="append", default=[], metavar="NAME=FILE", help=attach_help
    )
    parser.add_argument(
        "--quote", action="store_true", help="print what a program can cost, and start nothing"
    )
    add_start_arguments(parser, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Check the plan, read the inputs by their declared types, start it and wait for its answer.

    For the local stack, whose workers have the tools of this environment, it is checked as `sennit
    plan check` does it, before anything is started. Elsewhere its form is, and the run checks the
    rest with the tools of its workers.
    """
    if args.command == "fork":
        return await _fork(args, terminal)
    file = read_plan(args.plan)
    if args.quote:
        return await _quote(args, file, terminal)
    plan = await checked_for(args, file, terminal)
    files = pairs(args.attach, "--attach")
    for name in files:
        if name not in plan.inputs:
            raise Refused(
                f"--attach {name[:60]}: there is no such input{nearest_or_known(name, plan.inputs)}"
            )
    declared = {name: spec for name, spec in plan.inputs.items() if name not in files}
    file_name = "plan" if args.plan == "-" else Path(args.plan).stem
    what: dict[str, Any] = {
        "inputs": read_inputs(args.input, declared),
        "title": plan.goal or file.title or file_name,
    }
    if file.script:
        what["program"] = file.script
    else:
        what["plan"] = file.data
    if files:
        what["attachments"] = files
    if args.trust_program:
        terminal.notice(
            "--trust-program: where the kernel cannot confine this program, it can do whatever "
            "you can"
        )
    return await launch(args, terminal, **what, docs=args.docs)


async def checked_for(args: argparse.Namespace, file: PlanFile, terminal: Terminal) -> Plan:
    """Return the plan of a file that the server of a command line would run. Raises
    BadPlan with every problem.
    """
    plan = file.check(None)
    if configured_server(args.address, args.namespace) is None:
        return (await check_plan(file, terminal.notice, terminal.say)).plan
    return plan


async def _fork(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Start a run in the place of one that is over. The script is checked before anything
    is asked of the server.
    """
    script = ""
    if args.script:
        script = read_script(args.script)

    async def begin(sennit: Sennit) -> dict[str, Any]:
        origin = await sennit.origin(args.run)
        if script:
            origin = origin.with_script(script, args.node, pairs(args.input, "--input"))
        declared: Mapping[str, InputSpec] = {}
        if origin.plan is not None:
            declared = PlanFile(args.run, origin.plan).check(None).inputs
        what: dict[str, Any] = {
            "origin": origin,
            "inputs": read_inputs(args.input, declared, partial=True),
            "title": title_of(script),
        }

        # Inputs that the origin did not have, such as those of a new script, must be given now.
        missing = {name: spec for name, spec in declared.items() if name not in origin.inputs}
        given = [word for word in args.input if word.partition("=")[0] in missing]
        read_inputs(given, missing)
        if args.repeat_writes:
            what["repeat_writes"] = True
        return what

    async def review(sennit: Sennit, what: dict[str, Any]) -> Exit | None:
        if args.id is not None and not args.again and await _is_there(sennit, args.id):
            return None  # nothing is started: the run of that id is joined
        given = dict(what)
        del given["title"]
        shown = Review(args, terminal)
        await shown.show(
            sennit.dry_run(**given, docs=args.docs, **run_options(args)), "start this fork?"
        )
        return shown.exit

    return await launch(args, terminal, docs=args.docs, fork=begin, review=review)


async def _is_there(sennit: Sennit, name: str) -> bool:
    try:
        await sennit.look_up(name)
    except RunNotFound:
        return False
    return True


async def _quote(args: argparse.Namespace, file: PlanFile, terminal: Terminal) -> Exit:
    """Print what a program can cost with these inputs; those that are
    missing have their defaults.
    """
    if not file.script:
        raise Refused(f"--quote: {file.name} is no program; only programs (.py) have a quote")
    catalogue = await read_catalogue()
    inputs = read_inputs(args.input, file.check(catalogue).inputs, partial=True)
    quote = file.quote(catalogue, inputs, args.model or "")
    in_dollars = "cost_usd" in (args.budget or ())
    terminal.result("\n".join(quote.lines(in_dollars=in_dollars)), quote.data())
    return Exit.ANSWER
