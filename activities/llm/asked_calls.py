"""Tells a run of the calls that a model asks for while its reply still comes, so that the
run can make them early.

A call is told at most once, a moment after it was whole: if the reply has ended by then, the run
learns of it anyway. Nothing depends on these messages. One that is not sent, or comes late, costs
the time that it would have saved.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.service import RPCError

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.run_signals import signal_run
from sennit.activities.providers.model import ToolRequest
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.messages.contracts import AskedCall
from sennit.workflows.messages.node_calls import LlmNodeCall
from sennit.workflows.plan.speculation.limits import MAX_ASKED

log = logging.getLogger("llm")

WAIT_SECONDS = 0.1
"""Between the end of a call's arguments and the message about it: most
replies have ended by then.
"""


@dataclass(slots=True)
class AskedCalls:
    """The calls of one reply. `names` are the tools of whose calls the run wants to know."""

    names: Collection[str]
    tell: Callable[[ToolRequest], Awaitable[None]]
    _count: int = 0
    _telling: list[asyncio.Task[None]] = field(default_factory=list)

    def add(self, request: ToolRequest) -> None:
        """Take a call that is whole. Never blocks."""
        is_wanted = request.name in self.names and isinstance(request.arguments, dict)
        if not is_wanted or self._count >= MAX_ASKED:
            return
        self._count += 1
        self._telling.append(asyncio.create_task(self._tell_later(request)))

    def discard(self) -> None:
        """What came so far is no part of the reply: the model is asked again."""
        for task in self._telling:
            task.cancel()
        self._count = 0

    async def close(self) -> None:
        """The reply has ended: what was not told by now is not told any more."""
        self.discard()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _tell_later(self, request: ToolRequest) -> None:
        await asyncio.sleep(WAIT_SECONDS)
        try:
            await self.tell(request)
        except (RPCError, StoreUnavailable) as error:
            log.info("the run was not told that a model asks for %s: %s", request.name, error)


@asynccontextmanager
async def asked_calls(
    context: NodeContext, library: ArtifactReader, offered: Collection[str]
) -> AsyncIterator[AskedCalls]:
    """Give the calls of a reply that this activity receives, until the block ends. Of tools that
    the model was not `offered`, the run is not told.
    """
    call = context.call
    names: list[str] = []
    if isinstance(call, LlmNodeCall) and activity.in_activity():
        names = [name for name in call.early_tools if name in offered]

    async def tell(request: ToolRequest) -> None:
        # As in the reply itself: a server may repeat the key that it was sent.
        arguments = await library.put(context.run_prefix, mask(request.arguments))
        unit = context.unit
        asked = AskedCall(
            node=unit.path, generation=unit.generation, tool=request.name, arguments=arguments
        )
        await signal_run("asked_call", asked)

    calls = AskedCalls(names, tell)
    try:
        yield calls
    finally:
        await calls.close()
