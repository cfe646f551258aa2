"""The events of a run as lines of JSON on standard output, in the words of the
client: see `RunEvent`.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from sennit.starter.client.errors import NoAnswer
from sennit.starter.client.run import Run
from sennit.starter.terminal.console import Terminal

T = TypeVar("T")


async def with_events(run: Run[Any], terminal: Terminal, following: Coroutine[Any, Any, T]) -> T:
    """Write each event once while somebody follows the run, and then all that have happened until
    then; return what the follower has found. Raises what that raises, or BrokenPipeError if nobody
    reads the lines any more.
    """
    last = 0

    async def write(*, follow: bool) -> None:
        nonlocal last
        try:
            async with aclosing(run.events(after=last, follow=follow)) as events:
                async for event in events:
                    last = event.number
                    terminal.answer_json(event.model_dump(mode="json", exclude_defaults=True))
        except NoAnswer as error:
            if not follow:
                terminal.notice(str(error))

    follower = asyncio.ensure_future(following)
    writer = asyncio.ensure_future(write(follow=True))
    try:
        await asyncio.wait({follower, writer}, return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            writer.result()
        found = await follower
    finally:
        for task in (follower, writer):
            task.cancel()
        await asyncio.gather(follower, writer, return_exceptions=True)
    await write(follow=False)
    return found
