"""Makes calls early: binds their arguments to what the call before has given, or takes those that
the node says or that a model has written.
"""

import logging
from dataclasses import dataclass
from typing import Any

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.early import EarlyRefused
from sennit.activities.nodes.error_mapping import kind_of, message_of
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.storage.learned import LearnedStore, Marks
from sennit.activities.toolbox import Tool
from sennit.workflows.messages.contracts import PrefetchReply
from sennit.workflows.messages.node_calls import PrefetchCall
from sennit.workflows.plan.language.nodes import ModelCall, ToolCall
from sennit.workflows.plan.language.references import BindError
from sennit.workflows.plan.speculation.mapping import bind_mapping, candidates, parse_mapping

log = logging.getLogger("tools")


@dataclass(frozen=True, slots=True)
class Prefetcher:
    """Makes calls of runs before they are asked for."""

    nodes: NodeRunner
    learned: LearnedStore

    async def make(self, run_prefix: str, call: PrefetchCall, attempts: Attempts) -> PrefetchReply:
        """Make a call, and keep what it gives for the real one. Whatever goes wrong is
        no failure of the run.
        """
        try:
            reply = await self.nodes.make_early(call, run_prefix, attempts, self._arguments(call))
        except Exception as error:  # noqa: BLE001  nothing of it was asked for
            problem = f"{kind_of(error)}: {message_of(error)}"
            log.info(
                "a call of %s behind %s was not made early: %s", call.tool, call.nodes[0], problem
            )
            return PrefetchReply(problem=problem, usage=attempts.spent.plus(attempts.open))
        return PrefetchReply(usage=reply.usage)

    def _arguments(self, call: PrefetchCall) -> Any:
        async def arguments_of(context: NodeContext, tool: Tool) -> dict[str, Any]:
            if call.arguments:
                return await self._written(context, call)
            await context.binder.load(context.unit)
            work = context.work
            if not isinstance(work, ToolCall):
                raise EarlyRefused(f"{context.unit.path} calls no tool")
            own = context.arguments(work)
            if not call.patterns:
                return own
            return await self._mapped(context, call, tool, own)

        return arguments_of

    async def _written(self, context: NodeContext, call: PrefetchCall) -> dict[str, Any]:
        """Return the arguments that the model of a node has written for a call of a
        tool that it may call.
        """
        work = context.work
        if not isinstance(work, ModelCall) or call.tool not in work.tools:
            raise EarlyRefused(f"{context.unit.path} may not call {call.tool}")
        written = await self.nodes.library.value(context.run_prefix, call.arguments)
        if not isinstance(written, dict):
            raise EarlyRefused(f"the arguments for {call.tool} are no object")
        return written

    async def _mapped(
        self, context: NodeContext, call: PrefetchCall, tool: Tool, own: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of the call that usually follows one with its `own`
        ones. Raises BindError.
        """
        library = self.nodes.library
        mappings = await library.value(context.run_prefix, call.patterns)
        if not isinstance(mappings, list) or call.place >= len(mappings):
            raise BindError("the patterns of the run have no such mapping")
        sources = parse_mapping(str(mappings[call.place]))
        if sources is None:
            raise BindError("the mapping cannot be bound")
        marks = await self.learned.marks(context.run_prefix.rpartition("/")[0])
        values = {
            "output": await context.binder.value(context.unit.path),
            "argument": own,
            "goal": context.checked.goal,
            "input": context.checked.inputs,
        }
        return bind_mapping(sources, values, _Constants(marks, tool, own).value)


@dataclass(slots=True)
class _Constants:
    """Finds the values of marks among those that a constant of a tool may have."""

    marks: Marks
    tool: Tool
    own: dict[str, Any]

    def value(self, mark: str) -> Any:
        """Return the value that has this mark. Raises BindError: most texts cannot be
        guessed, which is their point.
        """
        for value in candidates(self.tool.schema, self.own):
            if self.marks.of(value) == mark:
                return value
        raise BindError("a constant is none that the tool's schema names")
