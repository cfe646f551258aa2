"""The events of a run as lines of JSON on standard output, in the words of the client: see `RunEvent`."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from sennit.starter.client.errors import NoAnswer
from sennit.starter.client.run import Run
from sennit.starter.terminal.console import Terminal

T = TypeVar("T")


class EventLines:
    """Writes each event of a run once."""

    def __init__(self, run: Run[Any], terminal: Terminal) -> None:
        self._run = run
        self._terminal = terminal
        self._last = 0

    async def during(self, following: Coroutine[Any, Any, T]) -> T:
        """Write events while somebody follows the run, and then all that have happened until then; return what the
        follower has found. Raises what that raises, or BrokenPipeError if nobody reads the lines any more.
        """
        follower = asyncio.ensure_future(following)
        writer = asyncio.ensure_future(self._write(follow=True))
        try:
            await asyncio.wait({follower, writer}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
            found = await follower
        finally:
            for task in (follower, writer):
                task.cancel()
            await asyncio.gather(follower, writer, return_exceptions=True)
        await self._write(follow=False)
        return found

    async def _write(self, *, follow: bool) -> None:
        try:
            async with aclosing(self._run.events(after=self._last, follow=follow)) as events:
                async for event in events:
                    self._last = event.number
                    self._terminal.answer_json(event.model_dump(mode="json", exclude_defaults=True))
        except NoAnswer as error:
            if not follow:
                self._terminal.notice(str(error))
