"""Adds nodes to a running plan: as a planner goes on writing, as a joiner wants more work, as a model calls tools.

Every addition is a whole new plan that begins with the old one, checked by an activity like any plan. Additions come
one after the other.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.contracts import Checked, NodeReply
from workflows.fanout import outcome_of
from workflows.plan.decisions import Outcome, Settled
from workflows.plan.state import ENDED, SUCCEEDED
from workflows.services import Adds, Opening

if TYPE_CHECKING:
    from workflows.engine import Engine

CHARGED = "refused-wishes-are-charged"
"""The patch that books what a model used for a wish that was refused: with a budget, less may start then."""


class Extender:
    """What is about to be added to one engine's plan."""

    def __init__(self, engine: "Engine", opening: Opening) -> None:
        self._engine = engine
        self._opening = opening
        self._turn = asyncio.Lock()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        """Whether nodes are about to be added."""
        return bool(self._tasks)

    def take(self, event: Settled, reply: NodeReply) -> None:
        """Add what a model asked for, and only then let its node end."""
        self._tasks[event.unit] = asyncio.create_task(self._extend(event, reply))

    async def check(self, draft: str, adds: Adds = "", node: str = "") -> Checked:
        """Check a plan that continues this one, or a delta to it, until every fact that it asks for is known."""
        engine = self._engine
        state = engine.state
        while True:
            ended = [node for node in range(len(state.graph.specs)) if state.status[node] == SUCCEEDED]
            refs = {state.path(node): state.digest[node] or "" for node in ended}
            checked = await self._opening.check(draft, engine.plan, adds=adds, node=node, refs=refs)
            asked = [state.graph.by_id[name] for name in checked.awaits]
            await workflow.wait_condition(partial(self._ended, asked))
            if not any(state.status[node] == SUCCEEDED for node in asked):
                return checked

    def _ended(self, nodes: list[int]) -> bool:
        return all(self._engine.state.status[node] in ENDED for node in nodes)

    async def _extend(self, event: Settled, reply: NodeReply) -> None:
        """A model asked for more nodes: add them. Its own end is that of its next turn, or its wish for a replan."""
        outcome = outcome_of(reply)
        engine = self._engine
        async with self._turn:
            checked = await self._extended(event.unit, reply)
            if reply.more == "replan":
                engine.allow_replans(engine.replans - 1)
            if engine.status is None and not checked.problems:
                engine.grow(checked)
                outcome = replace(outcome, delegated=reply.more == "calls")
            elif reply.more == "calls":
                outcome = Outcome(error=("ToolLoopFailed", checked.problems[0][:500]), spent=outcome.spent)
            else:
                if engine.state.budget is not None and workflow.patched(CHARGED):
                    engine.charge((*reply.usage, 1))
                engine.ask_again(event.unit, checked.problems)
                outcome = replace(outcome, digest=None, again=True)
            self._tasks.pop(event.unit)
            engine.post(replace(event, outcome=outcome))

    async def _extended(self, unit: int, reply: NodeReply) -> Checked:
        try:
            return await self.check(reply.ref or "", reply.more, self._engine.state.address(unit))
        except ApplicationError as error:
            return Checked(problems=(f"{error.type}: {error.message}",))
