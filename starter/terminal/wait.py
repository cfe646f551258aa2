"""Waits for a run on behalf of whoever typed the command: progress, questions, the
answer, the exit code.
"""

import asyncio
import shlex
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from sennit.starter.client.errors import Exit, SennitError
from sennit.starter.client.outcome import RunOutcome
from sennit.starter.client.run import Run
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.events import with_events
from sennit.starter.terminal.follow import Follower, OpenRun, Screen
from sennit.starter.terminal.lines import Lines, Notices
from sennit.starter.terminal.live import LiveTable
from sennit.starter.terminal.prompt import Typist
from sennit.starter.terminal.render import answer_text, counts_text, report_of, status_text
from sennit.workflows.messages.result import RunReport

T = TypeVar("T")


def screen_for(terminal: Terminal) -> Screen:
    """Return the way to show progress that this terminal and output allow."""
    if terminal.output == "jsonl":
        return Notices(terminal)
    if terminal.live:
        return LiveTable(terminal)
    return Lines(terminal)


async def wait_for_run(
    run: Run[Any], terminal: Terminal, *, wait: bool = False, limit: float | None = None
) -> Exit:
    """Show a run until it is over, blocked with nobody to ask, or `limit` seconds are
    gone; return the exit code.

    However this ends, by an interrupt too, the run itself goes on.
    """
    screen = screen_for(terminal)
    ask = None
    if terminal.has_person and not wait:
        ask = Typist(terminal).ask
    _begin(run, screen, terminal)
    following = Follower(run, screen, ask, wait=wait).follow(limit)
    if isinstance(screen, LiveTable):
        following = _with_texts(run, screen, following)
    try:
        if terminal.output == "jsonl":
            following = with_events(run, terminal, following)
        outcome = await following
    except (asyncio.CancelledError, SennitError):
        screen.close()
        terminal.notice(hints(run, terminal))
        raise
    finally:
        screen.close()
    if isinstance(outcome, RunOutcome):
        return _write_outcome(outcome, terminal)
    return _write_open(run, outcome, terminal)


async def _with_texts(run: Run[Any], table: LiveTable, following: Coroutine[Any, Any, T]) -> T:
    """Show what models write while somebody follows the run; return what the follower has found."""

    async def show() -> None:
        with suppress(SennitError):  # the follower says what is wrong
            async with aclosing(run.texts()) as texts:
                async for event in texts:
                    table.text(event)

    showing = asyncio.create_task(show())
    try:
        return await following
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


def detach(run: Run[Any], terminal: Terminal) -> Exit:
    """Leave a run that was just started, with its id on standard output."""
    _begin(run, Lines(terminal), terminal)
    terminal.say(hints(run, terminal))
    if terminal.output == "text":
        terminal.answer(run.id)
    elif terminal.output == "json":
        terminal.answer_json(_report_of(run).model_dump(mode="json"))
    return Exit.ANSWER


def _begin(run: Run[Any], screen: Screen, terminal: Terminal) -> None:
    """Say which run this is; for a program that reads events, as the first form of its report."""
    screen.started(run)
    if terminal.output == "jsonl":
        terminal.answer_json(_report_of(run).model_dump(mode="json"))


def _write_outcome(outcome: RunOutcome, terminal: Terminal) -> Exit:
    if terminal.output == "text":
        if terminal.live and terminal.width:
            terminal.say("")
        terminal.answer(answer_text(outcome.report, terminal.width))
    elif terminal.output in ("json", "jsonl"):
        terminal.answer_json(outcome.report.model_dump(mode="json"))
    return outcome.code


def _write_open(run: Run[Any], left: OpenRun, terminal: Terminal) -> Exit:
    if left.view is not None:
        state = "blocked"
        if not left.blocked:
            state = status_text(left.view)
        terminal.say(f"{state} · {counts_text(left.view.counts)}", "bold")
    terminal.notice(hints(run, terminal, waits=left.blocked))
    if terminal.output in ("json", "jsonl"):
        report = _report_of(run)
        if left.view is not None:
            report = report_of(left.view, run.ui_url)
        terminal.answer_json(report.model_dump(mode="json"))
    return Exit.OPEN


def hints(run: Run[Any], terminal: Terminal, *, waits: bool = False) -> str:
    """Return the commands that watch and cancel a run; one that `waits` does nothing else."""
    name = shlex.quote(run.id)
    state = "waits for you" if waits else "goes on"
    lines = [
        f"the run {state}",
        f"  watch it:  sennit watch {name}{terminal.flags}",
        f"  cancel it: sennit cancel {name}{terminal.flags}",
    ]
    return "\n".join(lines)


def _report_of(run: Run[Any]) -> RunReport:
    return RunReport(id=run.id, run_id=run.run_id, status="running", ui_url=run.ui_url)
