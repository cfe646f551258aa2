"""`sennit status`: show a run as it stands. `sennit watch`: follow it to its answer."""

import argparse
from typing import Any

from sennit.starter.client.errors import Exit, NoAnswer, exit_of
from sennit.starter.client.run import Run
from sennit.starter.commands.command_line import Parser, add_run_argument
from sennit.starter.commands.launch import add_wait_arguments, connect
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.figures import figures_text
from sennit.starter.terminal.render import report_of, report_text, view_text, with_nodes
from sennit.starter.terminal.script import script_text
from sennit.starter.terminal.wait import wait_for_run
from sennit.workflows.messages.result import RunReport


def add_arguments(parser: Parser) -> None:
    if parser.prog.endswith(" watch"):
        parser.describe(
            "RUN",
            "sennit watch agent-mont-blanc-1a2b3c4d\nsennit watch nightly-1 --wait --timeout 10m",
        )
        add_run_argument(parser)
        add_wait_arguments(parser)
        return
    parser.describe(
        "RUN", "sennit status agent-mont-blanc-1a2b3c4d\nsennit status nightly-1 --script"
    )
    add_run_argument(parser)
    script_help = (
        "show the run's program, and beside each line how much it has called and what that took; "
        "exits with 0"
    )
    parser.add_argument("--script", action="store_true", help=script_help)
    parser.add_argument("--failed", action="store_true", help="list only nodes that have failed")
    figures_help = (
        "show what parallelism has brought, for what calls waited, and what branches cost; exits "
        "with 0"
    )
    parser.add_argument("--figures", action="store_true", help=figures_help)
    explain_help = (
        "say of each node whether it may share an activity with others, and if not why; exits "
        "with 0"
    )
    parser.add_argument("--explain", action="store_true", help=explain_help)
    parser.add_argument(
        "--node",
        default="",
        metavar="NODE",
        help="with --script: one of several programs of a plan",
    )


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write a run's state, or with `watch` its end, to standard output. Return its exit
    code, 4 while it goes on.
    """
    sennit = await connect(args, terminal)
    found, is_open = await sennit.look_up(args.run)
    if args.command == "watch":
        found.joined = False  # who watches a run knows that it was there
        return await wait_for_run(found, terminal, wait=args.wait, limit=args.timeout)
    if args.script:
        return await _write_script(terminal, found, args.node)
    if args.figures:
        return await _write_figures(terminal, found, is_open=is_open)
    if args.explain:
        return _write_sharing(terminal, await found.sharing())
    width = terminal.columns
    if found.ui_url:
        terminal.say(f"ui  {found.ui_url}")
    if not is_open:
        outcome = await found.outcome()
        view = None
        if not outcome.report.nodes:
            view = await found.last_view()
        report = outcome.report if view is None else with_nodes(outcome.report, view)
        return _write(
            terminal, report, report_text(report, width, failed=args.failed), outcome.code
        )
    try:
        view = await found.view()
    except NoAnswer as error:
        terminal.notice(str(error))
        report = RunReport(id=found.id, run_id=found.run_id, status="running", ui_url=found.ui_url)
        return _write(terminal, report, f"{found.id}  running", Exit.OPEN)
    report = report_of(view, found.ui_url)
    return _write(
        terminal,
        report,
        view_text(view, width, terminal.flags, failed=args.failed),
        exit_of(view.status),
    )


async def _write_figures(terminal: Terminal, run: Run[Any], *, is_open: bool) -> Exit:
    """Write the figures of a run: those in its report need no worker."""
    figures = None
    if not is_open:
        outcome = await run.outcome()
        figures = outcome.report.figures
    if figures is None:
        figures = (await run.figures()).figures
    terminal.result(figures_text(figures), figures.model_dump(mode="json"))
    return Exit.ANSWER


def _write_sharing(terminal: Terminal, reasons: dict[str, str]) -> Exit:
    column = max(map(len, reasons), default=0)
    lines = [f"{node:<{column}}  {reason}" for node, reason in reasons.items()]
    terminal.result("\n".join(lines), reasons)
    return Exit.ANSWER


async def _write_script(terminal: Terminal, run: Run[Any], node: str) -> Exit:
    view = await run.script(node)
    terminal.result(script_text(view, terminal.width), view.model_dump(mode="json"))
    return Exit.ANSWER


def _write(terminal: Terminal, report: RunReport, text: str, code: Exit) -> Exit:
    terminal.result(text, report.model_dump(mode="json"))
    return code
