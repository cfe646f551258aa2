"""`sennit status`: show a run as it stands."""

import argparse

from starter.client.errors import Exit, NoAnswer, exit_of
from starter.client.run import Run
from starter.commands.launch import connect
from starter.terminal.console import Terminal
from starter.terminal.render import report_of, report_text, view_text, with_nodes
from workflows.messages.result import RunReport

WIDTH = 100


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Write a run's state to standard output and return the run's own exit code, 4 while it goes on."""
    sennit = await connect(args, terminal)
    found, goes_on = await sennit.look_up(args.run)
    if found.ui_url:
        terminal.say(f"ui  {found.ui_url}")
    if goes_on:
        return await _open(found, terminal)
    ending = await found.ending()
    view = None if ending.report.nodes else await found.last_view()
    report = ending.report if view is None else with_nodes(ending.report, view)
    _write(report, report_text(report, terminal.width or WIDTH), terminal)
    return ending.code


async def _open(run: Run, terminal: Terminal) -> Exit:
    try:
        view = await run.view()
    except NoAnswer as silent:
        terminal.tell(str(silent))
        report = RunReport(id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url)
        _write(report, f"{run.id}  running", terminal)
        return Exit.OPEN
    _write(report_of(view, run.ui_url), view_text(view, terminal.width or WIDTH, terminal.flags), terminal)
    return exit_of(view.status)


def _write(report: RunReport, text: str, terminal: Terminal) -> None:
    if terminal.output == "text":
        terminal.answer(text)
    else:
        terminal.answer_json(report.model_dump(mode="json"))
