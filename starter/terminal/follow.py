"""Follows a run to its end, or to the point where it needs somebody: shows changes, asks, gives up on time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from starter.client.errors import Refused
from starter.client.outcome import RunOutcome
from starter.terminal.prompt import Person, decision, question
from starter.terminal.render import with_nodes
from workflows.messages.result import RunReport
from workflows.messages.views import BlockedOn, RunView


class Followed(Protocol):
    """What is needed of a run to follow it."""

    id: str
    run_id: str
    ui_url: str | None
    joined: bool
    began: float
    closed: float

    def watch(
        self, *, every: bool = False, on_silence: Callable[[str], None] | None = None
    ) -> AsyncGenerator[RunView, None]: ...

    async def ending(self) -> RunOutcome: ...

    async def last_view(self) -> RunView | None: ...

    async def update(self, name: str, /, **fields: Any) -> str: ...


class Screen(Protocol):
    """Where a run's progress is shown."""

    def started(self, run: Followed) -> None: ...

    def show(self, view: RunView) -> None: ...

    def blocked(self, item: BlockedOn) -> None: ...

    def note(self, text: str) -> None: ...

    def tell(self, text: str) -> None: ...

    def aside(self) -> AbstractContextManager[None]: ...

    def over(self, report: RunReport) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Open:
    """A run left while it goes on. `view` is how it was last seen, if it was; `blocked` says that it needs somebody."""

    view: RunView | None
    blocked: bool = False


class Following:
    """One run followed once. With a `person` it asks them; without, it leaves a blocked run unless `wait` is set."""

    def __init__(self, run: Followed, screen: Screen, person: Person | None = None, *, wait: bool = False) -> None:
        self._run = run
        self._screen = screen
        self._person = person
        self._wait = wait
        self._view: RunView | None = None
        self._shown: list[BlockedOn] = []
        self._asked: BlockedOn | None = None
        self._asking: asyncio.Task[bool] | None = None
        self._stale = False

    async def follow(self, limit: float | None = None) -> RunOutcome | Open:
        """Return how the run ended, or that it was left open: after `limit` seconds, or because it is blocked.

        Raises Stop when the server stays away. The run goes on in any case.
        """
        try:
            async with asyncio.timeout(limit):
                left = await self._to_the_end()
                if left is not None:
                    return left
                ending = await self._run.ending()
        except TimeoutError:
            return Open(self._view)
        finally:
            await self._withdraw()
        ending = await self._completed(ending)
        self._screen.over(ending.report)
        return ending

    async def _completed(self, ending: RunOutcome) -> RunOutcome:
        """Look once more where the report has no nodes, as that of a cancelled run."""
        if ending.refused or ending.report.nodes:
            return ending
        last = await self._run.last_view()
        if last is not None:
            self._screen.show(last)
        view = last or self._view
        return ending if view is None else RunOutcome(with_nodes(ending.report, view))

    async def _to_the_end(self) -> Open | None:
        async with aclosing(self._run.watch(every=True, on_silence=self._screen.note)) as views:
            upcoming = asyncio.ensure_future(anext(views, None))
            try:
                while True:
                    awaited = {upcoming, *([self._asking] if self._asking else [])}
                    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                    if self._asking is not None and self._asking.done() and not await self._answered(self._asking):
                        return Open(self._view, blocked=True)
                    if not upcoming.done():
                        continue
                    view = await upcoming
                    if view is None:
                        return None
                    upcoming = asyncio.ensure_future(anext(views, None))
                    if await self._take(view):
                        return Open(view, blocked=True)
            finally:
                upcoming.cancel()
                await asyncio.gather(upcoming, return_exceptions=True)

    async def _take(self, view: RunView) -> bool:
        """Show a view and settle what it waits for; True when the run is to be left."""
        self._view = view
        if self._asked is not None and self._asked not in view.blocked:
            await self._withdraw()
        self._screen.show(view)
        if self._asking is not None:
            return False
        for item in view.blocked:
            if item not in self._shown:
                self._screen.blocked(item)
        self._shown = list(view.blocked)
        stale, self._stale = self._stale, False
        if self._wait or stale or not view.blocked:
            return False
        if self._person is None:
            return view.status == "blocked"
        self._asked = view.blocked[0]
        self._asking = asyncio.ensure_future(self._ask(self._person, view.blocked[0]))
        return False

    async def _ask(self, person: Person, item: BlockedOn) -> bool:
        """Ask until an update is taken; False when the person leaves it open."""
        with self._screen.aside():
            while True:
                line = await person.ask(question(item))
                if line is None:
                    return False
                try:
                    name, fields = decision(item, line)
                    said = await self._run.update(name, **fields)
                except Refused as refused:
                    self._screen.tell(str(refused))
                    continue
                self._screen.tell(said)
                return True

    async def _answered(self, asking: asyncio.Task[bool]) -> bool:
        self._asking = self._asked = None
        self._stale = True  # the next view may have been taken before the update
        return await asking

    async def _withdraw(self) -> None:
        """Take a question back that somebody else has settled."""
        asking, self._asking, self._asked = self._asking, None, None
        if asking is not None and not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
