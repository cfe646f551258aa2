"""Sends the beginning of a plan to its run while the planner writes the rest."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from activities.runs.prepare import Preparing
from workflows.messages.contracts import Drafted
from workflows.plan.compile.graph import Skeleton


@dataclass(slots=True)
class Beginning:
    """What of one attempt's plan may run already. `send` gives it to the run; each one holds those before."""

    preparing: Preparing
    home: str
    charter: str
    attempt: int
    send: Callable[[Drafted], Awaitable[None]]
    _nodes: list[dict[str, Any]] = field(default_factory=list)
    _sent: int = 0

    async def add(self, nodes: list[dict[str, Any]]) -> None:
        """Take further nodes as the planner has written them; send when more of the plan may start."""
        self._nodes += nodes
        checked = await self.preparing.begin(self.home, self.charter, self._nodes)
        if checked is None:
            return
        startable = len(Skeleton.unpack(checked.skeleton).specs)
        if startable > self._sent:
            self._sent = startable
            await self.send(Drafted(attempt=self.attempt, plan=checked.plan, skeleton=checked.skeleton))
