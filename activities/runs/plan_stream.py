"""Sends the beginning of a plan to its run while the planner writes the rest."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from activities.runs.check import PlanChecker
from activities.toolbox.redaction import mask
from workflows.messages.contracts import PlanCall, PlanDraft
from workflows.plan.edits.prefix import PlanPrefix


@dataclass(slots=True)
class PlanStreamer:
    """What of one attempt's plan may run already. `send` gives it to the run; each one holds those before."""

    checker: PlanChecker
    run_prefix: str
    call: PlanCall
    attempt: int
    send: Callable[[PlanDraft], Awaitable[None]]
    _prefix: PlanPrefix = field(default_factory=PlanPrefix)
    _sent: int = 0

    async def add(self, nodes: list[dict[str, Any]]) -> None:
        """Take further nodes as the planner has written them; send when more of the plan may start."""
        checked = await self.checker.begin(self.run_prefix, self.call.run_context, self._prefix, mask(nodes))
        if checked is not None:
            self._sent += 1
            found = {"plan": checked.plan, "execution_plan": checked.execution_plan}
            await self.send(PlanDraft(run=self.call.run, attempt=self.attempt, sequence=self._sent, **found))
