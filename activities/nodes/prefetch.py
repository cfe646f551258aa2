"""Makes calls early: binds their arguments to what the call before has given, which may be an
early one too, or takes those that the node says or that a model has written.
"""

import logging
from dataclasses import dataclass
from typing import Any

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.early import EarlyNote, EarlyRefused
from sennit.activities.nodes.error_mapping import kind_of, message_of
from sennit.activities.nodes.runner import NodeRunner
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.learned import LearnedStore, Marks
from sennit.activities.toolbox import Tool
from sennit.workflows.messages.contracts import NodeReply, PrefetchReply
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
            reply = await self._make(run_prefix, call, attempts)
        except Exception as error:  # noqa: BLE001  nothing of it was asked for
            problem = f"{kind_of(error)}: {message_of(error)}"
            log.info(
                "a call of %s behind %s was not made early: %s", call.tool, call.nodes[0], problem
            )
            return PrefetchReply(problem=problem, usage=attempts.spent.plus(attempts.open))
        return PrefetchReply(usage=reply.usage)

    async def _make(self, run_prefix: str, call: PrefetchCall, attempts: Attempts) -> NodeReply:
        """Make a call. One that follows another early one is as old as that."""
        first: EarlyNote | None = None
        began = millis_now()
        if call.first:
            first = await self.nodes.early.first(run_prefix, call.first)
            began = first.began

        async def arguments_of(context: NodeContext, tool: Tool) -> dict[str, Any]:
            if first is not None:
                _check_offered(context, call)
                return await self._behind_early(context, call, tool, first)
            if call.arguments:
                _check_offered(context, call)
                return await self._arguments_in(context, call.arguments)
            return await self._of_node(context, call, tool)

        return await self.nodes.make_early(call, run_prefix, attempts, arguments_of, began)

    async def _of_node(
        self, context: NodeContext, call: PrefetchCall, tool: Tool
    ) -> dict[str, Any]:
        """Return the arguments of the node's own call, or those of the call that
        usually follows it.
        """
        await context.binder.load(context.unit)
        work = context.work
        if not isinstance(work, ToolCall):
            raise EarlyRefused(f"{context.unit.path} calls no tool")
        own = context.arguments(work)
        if not call.patterns:
            return own
        output = await context.binder.value(context.unit.path)
        return await self._mapped(context, call, tool, own, output)

    async def _behind_early(
        self, context: NodeContext, call: PrefetchCall, tool: Tool, first: EarlyNote
    ) -> dict[str, Any]:
        """Return the arguments of the call that usually follows an early one."""
        own = await self._arguments_in(context, first.arguments)
        output = await self.nodes.library.value(context.run_prefix, first.ref)
        return await self._mapped(context, call, tool, own, output)

    async def _arguments_in(self, context: NodeContext, digest: str) -> dict[str, Any]:
        """Return the arguments in an artifact."""
        arguments = await self.nodes.library.value(context.run_prefix, digest)
        if not isinstance(arguments, dict):
            raise EarlyRefused("the arguments of the call are no object")
        return arguments

    async def _mapped(
        self,
        context: NodeContext,
        call: PrefetchCall,
        tool: Tool,
        own: dict[str, Any],
        output: Any,
    ) -> dict[str, Any]:
        """Return the arguments of the call that usually follows one with its `own`
        ones and this output. Raises BindError.
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
            "output": output,
            "argument": own,
            "goal": context.checked.goal,
            "input": context.checked.inputs,
        }
        return bind_mapping(sources, values, _Constants(marks, tool, own).value)


def _check_offered(context: NodeContext, call: PrefetchCall) -> None:
    """Raise EarlyRefused if the node is a model that may not call the tool."""
    work = context.work
    if isinstance(work, ModelCall) and call.tool not in work.tools:
        raise EarlyRefused(f"{context.unit.path} may not call {call.tool}")


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
