"""Somebody who looks at runs all the time, also at those that are over: a look at a run must not change it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

PAUSE = 0.3
PATIENCE = 15.0
LAST_LOOKS = 4
"""How often a run is asked at the end: the SDK may lose one of several queries that come at once."""
AT_ONCE = 3
"""How many queries of one run may wait for their answer: the server keeps few."""


@dataclass
class Onlooker:
    """Counts the answers, and notes each query that was refused; a query without an answer is asked again."""

    client: Client
    answers: int = 0
    problems: list[str] = field(default_factory=list)

    async def look(self, shown: Callable[[], Iterable[str]]) -> None:
        """Ask the runs that are to be shown, over and over. A query need not wait for the one before."""
        under_way: dict[asyncio.Task[bool], str] = {}
        try:
            while True:
                for name in shown():
                    if list(under_way.values()).count(name) < AT_ONCE:
                        task = asyncio.create_task(self._ask(name))
                        under_way[task] = name
                        task.add_done_callback(under_way.pop)
                await asyncio.sleep(PAUSE)
        finally:
            for task in under_way:
                task.cancel()

    async def last_look(self, names: Iterable[str]) -> None:
        """Ask each run again until it answers, when nothing disturbs it."""
        for name in names:
            for _ in range(LAST_LOOKS):
                if await self._ask(name):
                    break
            else:
                self.problems.append(f"{name} does not answer")

    async def _ask(self, name: str) -> bool:
        try:
            await asyncio.wait_for(self.client.get_workflow_handle(name).query("plan"), PATIENCE)
        except WorkflowQueryFailedError as failure:
            self.problems.append(f"{name} refused a query: {failure.message}")
        except (RPCError, TimeoutError):
            return False
        self.answers += 1
        return True
