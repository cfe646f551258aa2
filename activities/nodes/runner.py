"""Runs one node: bind, look for its marker, call, keep the output, mark it done."""

import asyncio
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from activities.nodes.attempts import Attempts
from activities.nodes.binding import Binder, parse_address
from activities.nodes.content_key import content_key
from activities.nodes.context import NodeContext
from activities.nodes.effect_ledger import UNSURE
from activities.nodes.error_mapping import NodeTimeout, OutputRefused, message_of
from activities.nodes.handlers import NodeHandlers
from activities.nodes.replies import keep
from activities.storage.artifacts import ArtifactStore, encode
from activities.storage.run_context import ArtifactReader
from activities.toolbox.errors import UnknownOutcome
from workflows.messages.contracts import NodeCall, NodeReply, SubagentRequest
from workflows.plan.language.limits import NO_USAGE
from workflows.plan.language.references import parse_reference


class Marker(BaseModel):
    """What is kept of a node's outcome under its content key: the reply, and in which plan of the run it was made."""

    reply: NodeReply
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Runs nodes of checked plans on this worker."""

    store: ArtifactStore
    library: ArtifactReader
    kinds: NodeHandlers

    async def run(
        self, call: NodeCall, path: str, refs: dict[str, str], *, run_prefix: str, attempts: Attempts
    ) -> NodeReply:
        """Return the node's reply.

        An output is stored before its marker is set, and the marker before the reply is sent: a successor of a
        killed worker finds the marker and calls nothing again. A call cut off before its marker runs again.
        Raises whatever went wrong; `activities.nodes.error_mapping` says what it means.
        """
        checked = await self.library.plan(run_prefix, call.plan)
        address = parse_address(path)
        binder = Binder(self.library, run_prefix, checked, call, refs)
        turn = NodeContext(checked, address, call, binder, run_prefix, attempts)
        key = content_key(checked, address, refs, call, self.kinds.version(turn))
        done = await self._done(turn, key)
        if done is not None:
            return done
        try:
            reply = await self._called(turn)
        except (NodeTimeout, OutputRefused) as error:
            if not self.kinds.harmful(turn):
                raise
            took = "it has taken effect" if isinstance(error, OutputRefused) else UNSURE
            raise UnknownOutcome(f"{message_of(error)}; {took}") from None
        marker = Marker(reply=reply, epoch=call.epoch).model_dump(mode="json", exclude_unset=True)
        kept = await self.store.mark(run_prefix, key, encode(marker))
        return Marker.model_validate_json(kept).reply

    async def delegation(self, call: NodeCall, *, run_prefix: str) -> SubagentRequest:
        """Return what a node's sub-agent is started with. Safe to repeat."""
        checked = await self.library.plan(run_prefix, call.plan)
        address = parse_address(call.nodes[0])
        binder = Binder(self.library, run_prefix, checked, call, call.refs)
        return await self.kinds.delegation(NodeContext(checked, address, call, binder, run_prefix, Attempts(1, 0)))

    async def _done(self, turn: NodeContext, key: str) -> NodeReply | None:
        """Return what a marker says; one that cannot be read, or whose body is gone, is taken back.

        An outcome of an earlier plan is paid for already, and this plan may ask for other facts of it.
        """
        prefix = turn.run_prefix
        text = await self.store.marked(prefix, key)
        if text is None:
            return None
        try:
            marker = Marker.model_validate_json(text)
        except ValidationError:
            marker = Marker(reply=NodeReply())
        reply = marker.reply
        if reply.ref is None or not await self.store.has(prefix, reply.ref):
            await self.store.unmark(prefix, key)
            return None
        if reply.more or marker.epoch == turn.call.epoch:
            return reply
        wanted, inline = _asked_of(turn)
        fresh = await keep(self.store, prefix, await self.library.value(prefix, reply.ref), wanted, inline=inline)
        return fresh.model_copy(update={"attempt": 0, "usage": NO_USAGE} if any(reply.usage) else {})

    async def _called(self, turn: NodeContext) -> NodeReply:
        seconds = turn.checked.spec(turn.address.id).limit(item=turn.address.item is not None) / 1000
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                answer = await self.kinds.run(turn)
        except TimeoutError:
            if not limit.expired():
                raise
            raise NodeTimeout(f"no result within {seconds:g} s") from None
        wanted, inline = _asked_of(turn)
        if answer.more:
            wanted, inline = [], False
        reply = await keep(self.store, turn.run_prefix, answer.output, wanted, inline=inline)
        extra: dict[str, object] = {"attempt": turn.attempts.own} if turn.attempts.own > 1 else {}
        if any(answer.usage):
            extra["usage"] = answer.usage
        if answer.more:
            extra["more"] = answer.more
        return reply.model_copy(update=extra) if extra else reply


def _asked_of(turn: NodeContext) -> tuple[list[str], bool]:
    """Return the facts that the plan asks of the node's output, and whether the output is the plan's answer."""
    if turn.address.item is not None:
        return [], False
    whole = parse_reference(turn.checked.answer) if isinstance(turn.checked.answer, str) else None
    inline = whole is not None and whole.node == turn.address.id and not whole.path
    return turn.checked.wanted.get(turn.address.id, []), inline
