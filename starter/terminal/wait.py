"""Waits for a run on behalf of whoever typed the command: progress, questions, the answer, the exit code."""

import asyncio
import shlex

from starter.client.errors import CliError, Exit
from starter.client.outcome import RunOutcome
from starter.terminal.console import Terminal
from starter.terminal.events import Events
from starter.terminal.follow import Followed, Following, Open, Screen
from starter.terminal.lines import Lines
from starter.terminal.live import Board
from starter.terminal.prompt import Typist
from starter.terminal.render import answer_text, counts_text, report_of
from workflows.messages.result import RunReport


def screen_for(terminal: Terminal) -> Screen:
    """Return the way to show progress that this terminal and output allow."""
    if terminal.output == "jsonl":
        return Events(terminal)
    return Board(terminal) if terminal.live else Lines(terminal)


async def attend(run: Followed, terminal: Terminal, *, wait: bool = False, limit: float | None = None) -> Exit:
    """Show a run until it is over, blocked with nobody to ask, or `limit` seconds are gone; return the exit code.

    However this ends, an interrupt included, the run itself goes on.
    """
    screen = screen_for(terminal)
    person = Typist(terminal) if terminal.asks and not wait else None
    screen.started(run)
    try:
        outcome = await Following(run, screen, person, wait=wait).follow(limit)
    except (asyncio.CancelledError, CliError):
        screen.close()
        terminal.tell(hints(run, terminal))
        raise
    finally:
        screen.close()
    if isinstance(outcome, RunOutcome):
        return give_answer(outcome, terminal)
    return leave(run, outcome, terminal)


def detach(run: Followed, terminal: Terminal) -> Exit:
    """Leave a run that was just started, with its id on standard output."""
    screen: Screen = Events(terminal) if terminal.output == "jsonl" else Lines(terminal)
    screen.started(run)
    terminal.say(hints(run, terminal))
    if terminal.output == "text":
        terminal.answer(run.id)
    elif terminal.output == "json":
        terminal.answer_json(_unseen(run).model_dump(mode="json"))
    return Exit.ANSWER


def give_answer(ending: RunOutcome, terminal: Terminal) -> Exit:
    """Write the answer, or the report as JSON, to standard output."""
    if terminal.output == "text":
        if terminal.live and terminal.width:
            terminal.say("")
        terminal.answer(answer_text(ending.report, terminal.width))
    elif terminal.output == "json":
        terminal.answer_json(ending.report.model_dump(mode="json"))
    return ending.code


def leave(run: Followed, seen: Open, terminal: Terminal) -> Exit:
    """Say how to come back to a run that goes on."""
    if seen.view is not None:
        state = "blocked" if seen.blocked else seen.view.status
        terminal.say(f"{state} · {counts_text(seen.view.counts)}", "bold")
    terminal.tell(hints(run, terminal))
    if terminal.output == "json":
        report = _unseen(run) if seen.view is None else report_of(seen.view, run.ui_url)
        terminal.answer_json(report.model_dump(mode="json"))
    return Exit.OPEN


def hints(run: Followed, terminal: Terminal) -> str:
    """Return the commands that watch and cancel a run."""
    name = shlex.quote(run.id)
    watch, cancel = (f"sennit {word} {name}{terminal.flags}" for word in ("watch", "cancel"))
    return f"the run goes on\n  watch it:  {watch}\n  cancel it: {cancel}"


def _unseen(run: Followed) -> RunReport:
    return RunReport(id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url)
