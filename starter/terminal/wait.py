"""Waits for a run on behalf of whoever typed the command: progress, questions, the answer, the exit code."""

import asyncio
import shlex

from starter.client.errors import CliError, Exit
from starter.client.outcome import RunOutcome
from starter.client.run import Run
from starter.terminal.console import Terminal
from starter.terminal.follow import Follower, OpenRun, Screen
from starter.terminal.lines import Events, Lines
from starter.terminal.live import LiveTable
from starter.terminal.prompt import Typist
from starter.terminal.render import answer_text, counts_text, report_of
from workflows.messages.result import RunReport


def screen_for(terminal: Terminal) -> Screen:
    """Return the way to show progress that this terminal and output allow."""
    if terminal.output == "jsonl":
        return Events(terminal)
    return LiveTable(terminal) if terminal.live else Lines(terminal)


async def wait_for_run(run: Run, terminal: Terminal, *, wait: bool = False, limit: float | None = None) -> Exit:
    """Show a run until it is over, blocked with nobody to ask, or `limit` seconds are gone; return the exit code.

    However this ends, by an interrupt too, the run itself goes on.
    """
    screen = screen_for(terminal)
    ask = Typist(terminal).ask if terminal.has_person and not wait else None
    screen.started(run)
    try:
        outcome = await Follower(run, screen, ask, wait=wait).follow(limit)
    except (asyncio.CancelledError, CliError):
        screen.close()
        terminal.notice(hints(run, terminal))
        raise
    finally:
        screen.close()
    if isinstance(outcome, RunOutcome):
        return _write_outcome(outcome, terminal)
    return _write_open(run, outcome, terminal)


def detach(run: Run, terminal: Terminal) -> Exit:
    """Leave a run that was just started, with its id on standard output."""
    screen: Screen = Events(terminal) if terminal.output == "jsonl" else Lines(terminal)
    screen.started(run)
    terminal.say(hints(run, terminal))
    if terminal.output == "text":
        terminal.answer(run.id)
    elif terminal.output == "json":
        terminal.answer_json(_report_of(run).model_dump(mode="json"))
    return Exit.ANSWER


def _write_outcome(outcome: RunOutcome, terminal: Terminal) -> Exit:
    if terminal.output == "text":
        if terminal.live and terminal.width:
            terminal.say("")
        terminal.answer(answer_text(outcome.report, terminal.width))
    elif terminal.output == "json":
        terminal.answer_json(outcome.report.model_dump(mode="json"))
    return outcome.code


def _write_open(run: Run, left: OpenRun, terminal: Terminal) -> Exit:
    if left.view is not None:
        state = "blocked" if left.blocked else left.view.status
        terminal.say(f"{state} · {counts_text(left.view.counts)}", "bold")
    terminal.notice(hints(run, terminal))
    if terminal.output == "json":
        report = _report_of(run) if left.view is None else report_of(left.view, run.ui_url)
        terminal.answer_json(report.model_dump(mode="json"))
    return Exit.OPEN


def hints(run: Run, terminal: Terminal) -> str:
    """Return the commands that watch and cancel a run."""
    name = shlex.quote(run.id)
    watch, cancel = (f"sennit {word} {name}{terminal.flags}" for word in ("watch", "cancel"))
    return f"the run goes on\n  watch it:  {watch}\n  cancel it: {cancel}"


def _report_of(run: Run) -> RunReport:
    return RunReport(id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url)
