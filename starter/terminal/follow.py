"""Follows a run to its end, or until it needs somebody: shows changes, asks questions,
gives up after a time.
"""

import asyncio
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from sennit.starter.client.errors import Refused
from sennit.starter.client.outcome import RunOutcome
from sennit.starter.client.run import Run
from sennit.starter.terminal.prompt import Ask, ask_line, decision, one_by_one
from sennit.starter.terminal.render import with_nodes
from sennit.workflows.messages.result import BlockedOn, RunReport
from sennit.workflows.messages.views import RunView


class Screen(Protocol):
    """Where a run's progress is shown."""

    def started(self, run: Run[Any]) -> None: ...

    def show(self, view: RunView) -> None: ...

    def blocked(self, item: BlockedOn) -> None: ...

    def note(self, text: str) -> None: ...

    def notice(self, text: str) -> None: ...

    def paused(self, item: BlockedOn) -> AbstractContextManager[None]: ...

    def finished(self, report: RunReport) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run left while it goes on. `view` is its last view, if any; `blocked` says
    that it needs somebody.
    """

    view: RunView | None
    blocked: bool = False


class Follower:
    """Follows one run once. With `ask` it asks a person; without, it leaves a blocked
    run unless `wait` is set.
    """

    def __init__(
        self, run: Run[Any], screen: Screen, ask: Ask | None = None, *, wait: bool = False
    ) -> None:
        self._run = run
        self._screen = screen
        self._ask = ask
        self._wait = wait
        self._view: RunView | None = None
        self._shown: tuple[BlockedOn, ...] = ()
        self._asked: BlockedOn | None = None
        self._asking: asyncio.Task[bool] | None = None
        self._just_answered = False
        self._apart: dict[str, bool] = {}

    async def follow(self, limit: float | None = None) -> RunOutcome | OpenRun:
        """Return how the run ended, or that it was left open: after `limit` seconds, or
        because it is blocked.

        Raises SennitError if the server stays away. The run goes on in any case.
        """
        try:
            async with asyncio.timeout(limit):
                open_run = await self._follow_views()
                if open_run is not None:
                    return open_run
                outcome = await self._run.outcome()
        except TimeoutError:
            return OpenRun(self._view)
        finally:
            await self._withdraw_question()
        outcome = await self._with_nodes(outcome)
        self._screen.finished(outcome.report)
        return outcome

    async def _with_nodes(self, outcome: RunOutcome) -> RunOutcome:
        """Query the view once more if the report has no nodes, such as that of a cancelled run."""
        if outcome.refused or outcome.report.nodes:
            return outcome
        last = await self._run.last_view()
        if last is not None:
            self._screen.show(last)
        view = last or self._view
        if view is None:
            return outcome
        return RunOutcome(with_nodes(outcome.report, view))

    async def _follow_views(self) -> OpenRun | None:
        async with aclosing(self._run.watch(every=True, on_silence=self._screen.note)) as views:
            upcoming = asyncio.ensure_future(anext(views, None))
            try:
                while True:
                    waiting: set[asyncio.Future[Any]] = {upcoming}
                    if self._asking is not None:
                        waiting.add(self._asking)
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if self._asking is not None and self._asking.done():
                        answered, self._asking, self._asked = await self._asking, None, None
                        if not answered:
                            goes_on = self._view is not None and self._view.status == "running"
                            return OpenRun(self._view, blocked=not goes_on)
                        # The next view may have been taken before the update.
                        self._just_answered = True
                    if not upcoming.done():
                        continue
                    view = upcoming.result()
                    if view is None:
                        return None
                    upcoming = asyncio.ensure_future(anext(views, None))
                    if await self._show(view):
                        return OpenRun(view, blocked=True)
            finally:
                upcoming.cancel()
                await asyncio.gather(upcoming, return_exceptions=True)

    async def _show(self, view: RunView) -> bool:
        """Show a view and ask about what it waits for; True if the run is to be left."""
        self._view = view
        # Somebody else has answered.
        if self._asked is not None and self._asked not in view.blocked:
            await self._withdraw_question()
        self._screen.show(view)
        if self._asking is not None:
            return False
        for item in view.blocked:
            if item not in self._shown:
                self._screen.blocked(item)
        self._shown = view.blocked
        just_answered = self._just_answered
        self._just_answered = False
        if self._wait or just_answered or not view.blocked:
            return False
        if self._ask is None:
            return view.status == "blocked"
        new = [item for item in view.blocked if item.node not in self._apart]
        self._asked = [*new, *view.blocked][0]
        self._asking = asyncio.ensure_future(self._ask_about(self._ask, self._asked))
        return False

    async def _ask_about(self, ask: Ask, item: BlockedOn) -> bool:
        """Ask until an update is applied; False if the person leaves the question open."""
        with self._screen.paused(item):
            while True:
                line = await ask_line(ask, item, self._screen.notice)
                if line is None:
                    return False
                if one_by_one(item, line):
                    self._apart[item.node] = True
                    return True
                try:
                    name, fields = decision(item, line)
                    message = await self._run.update(name, **fields)
                except Refused as refused:
                    self._screen.notice(str(refused))
                    continue
                self._screen.notice(message)
                return True

    async def _withdraw_question(self) -> None:
        asking, self._asking, self._asked = self._asking, None, None
        if asking is not None and not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
