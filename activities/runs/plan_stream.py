"""Sends the beginning of a plan to its run while the planner writes the rest."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from activities.runs.check import PlanChecker
from workflows.messages.contracts import PlanDraft
from workflows.plan.compile.graph import ExecutionPlan


@dataclass(slots=True)
class PlanStreamer:
    """What of one attempt's plan may run already. `send` gives it to the run; each one holds those before."""

    checker: PlanChecker
    run_prefix: str
    run_context: str
    attempt: int
    send: Callable[[PlanDraft], Awaitable[None]]
    _nodes: list[dict[str, Any]] = field(default_factory=list)
    _sent: int = 0

    async def add(self, nodes: list[dict[str, Any]]) -> None:
        """Take further nodes as the planner has written them; send when more of the plan may start."""
        self._nodes += nodes
        checked = await self.checker.begin(self.run_prefix, self.run_context, self._nodes)
        if checked is None:
            return
        startable = len(ExecutionPlan.unpack(checked.execution_plan).specs)
        if startable > self._sent:
            self._sent = startable
            await self.send(PlanDraft(attempt=self.attempt, plan=checked.plan, execution_plan=checked.execution_plan))
