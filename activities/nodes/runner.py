"""Runs one node: bind, look for its marker, call, keep the output, mark it done."""

import asyncio
from dataclasses import dataclass

from pydantic import ValidationError

from activities.nodes.attempts import Attempts
from activities.nodes.binding import Binder, content_key, parse_address
from activities.nodes.context import NodeContext
from activities.nodes.effect_ledger import UNSURE
from activities.nodes.error_mapping import NodeTimeout, OutputRefused, message_of
from activities.nodes.handlers import NodeHandlers
from activities.nodes.replies import keep
from activities.storage.artifacts import ArtifactStore, encode
from activities.storage.run_context import ArtifactReader
from activities.toolbox.errors import UnknownOutcome
from workflows.messages.contracts import NodeCall, NodeReply, SubagentRequest
from workflows.plan.language.references import parse_reference


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
        node = checked.node(address.id)
        key = content_key(node, address, refs, call, self.kinds.version(turn))
        done = await self._done(run_prefix, key)
        if done is not None:
            return done
        try:
            reply = await self._called(turn)
        except (NodeTimeout, OutputRefused) as error:
            if not self.kinds.harmful(turn):
                raise
            took = "it has taken effect" if isinstance(error, OutputRefused) else UNSURE
            raise UnknownOutcome(f"{message_of(error)}; {took}") from None
        marker = encode(reply.model_dump(mode="json", exclude_unset=True))
        return NodeReply.model_validate_json(await self.store.mark(run_prefix, key, marker))

    async def delegation(self, call: NodeCall, *, run_prefix: str) -> SubagentRequest:
        """Return what a node's sub-agent is started with. Safe to repeat."""
        checked = await self.library.plan(run_prefix, call.plan)
        address = parse_address(call.nodes[0])
        binder = Binder(self.library, run_prefix, checked, call, call.refs)
        return await self.kinds.delegation(NodeContext(checked, address, call, binder, run_prefix, Attempts(1, 0)))

    async def _done(self, run_prefix: str, key: str) -> NodeReply | None:
        """Return what a marker says; one that cannot be read, or whose body is gone, is taken back."""
        text = await self.store.marked(run_prefix, key)
        if text is None:
            return None
        try:
            reply = NodeReply.model_validate_json(text)
        except ValidationError:
            reply = NodeReply()
        if reply.ref is not None and await self.store.has(run_prefix, reply.ref):
            return reply
        await self.store.unmark(run_prefix, key)
        return None

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
        wanted = turn.checked.wanted.get(turn.address.id, []) if turn.address.item is None else []
        whole = parse_reference(turn.checked.answer) if isinstance(turn.checked.answer, str) else None
        inline = whole is not None and whole.node == turn.address.id and turn.address.item is None and not whole.path
        if answer.more:
            wanted, inline = [], False
        reply = await keep(self.store, turn.run_prefix, answer.output, wanted, inline=inline)
        extra: dict[str, object] = {"attempt": turn.attempts.own} if turn.attempts.own > 1 else {}
        if any(answer.usage):
            extra["usage"] = answer.usage
        if answer.more:
            extra["more"] = answer.more
        return reply.model_copy(update=extra) if extra else reply
