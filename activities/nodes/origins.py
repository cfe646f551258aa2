"""What a run takes over from its origins, the runs that it forks: what they have made
already, under the same keys.

A call is looked for when it is about to be made. What is found is copied, so that it is
this run's own; nothing that an origin has stored changes. A call that a person has run
again is not looked for.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sennit.activities.nodes.content_key import host_key, result_key
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.effect_ledger import (
    EffectLedger,
    Intent,
    SubagentLedger,
    Write,
    no_outcome,
)
from sennit.activities.nodes.replies import Marker, keep
from sennit.activities.storage.artifacts import (
    ArtifactStore,
    BodyMissing,
    decode,
    digest_of,
    key_of,
)
from sennit.activities.storage.garbage import is_claimed
from sennit.activities.storage.media import copy_media
from sennit.activities.storage.workspaces import copy_workspaces
from sennit.activities.toolbox.errors import UnknownOutcome
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.node_calls import AgentNodeCall, GateNodeCall
from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.language.nodes import LlmNode, ModelCall, ToolCall
from sennit.workflows.run.subagent import prefix_below


@dataclass(frozen=True, slots=True)
class Origins:
    """Looks for calls in the origins of their runs, the latest first; and leaves what runs
    that fork this one need.
    """

    store: ArtifactStore

    async def begin(self, context: NodeContext) -> None:
        """Note that a call begins again in another generation: a fork goes by its latest.
        Raises StoreUnavailable.
        """
        for generation in range(2, context.unit.generation + 1):
            marker = _again(context.key, generation)
            await self.store.mark(context.run_prefix, marker, b"{}")

    async def note(self, context: NodeContext, reply: NodeReply) -> None:
        """Note a reply as the result of a program's call, if other nodes or a person have given it:
        that of a gate, a sub-agent, the last turn of a model that has called tools, or a call that
        has failed. Raises StoreUnavailable.
        """
        if not self.notes(context, reply.more):
            return
        generation = context.unit.generation
        if _is_end(context, reply.more):
            generation = await self._latest(context.run_prefix, host_key(context.key))
        key = result_key(context.checked, context.unit, generation)
        marker = Marker(reply=reply, epoch=context.call.epoch)
        await self.store.replace_marker(context.run_prefix, key, marker.text())

    def notes(self, context: NodeContext, more: str) -> bool:
        """Whether `note` notes a reply, by what it asks for."""
        if context.unit.id not in context.checked.keys:
            return False
        from_outside = _is_call(context) and isinstance(context.call, GateNodeCall | AgentNodeCall)
        return from_outside or _is_end(context, more)

    async def call(self, context: NodeContext, key: Callable[[int], str]) -> NodeReply | None:
        """Return what an origin has of a call that does not write, None for nothing.
        Raises StoreUnavailable.
        """
        found = await self.result(context)
        if found is not None or not isinstance(context.work, ToolCall | ModelCall):
            return found
        return await self.take(context, key)

    async def result(self, context: NodeContext) -> NodeReply | None:
        """Return what `note` has noted of a program's call in an origin,
        None if there is nothing.
        """
        if not _is_call(context):
            return None
        return await self.take(context, partial(result_key, context.checked, context.unit))

    async def take(self, context: NodeContext, key: Callable[[int], str]) -> NodeReply | None:
        """Return what an origin has under the call's `key` in its latest generation there, or None.

        Its output is stored and marked here first. Raises StoreUnavailable.
        """
        for _, home in self._homes(context):
            latest = await self._latest(home, context.key)
            reply = await self._adopted(context, home, key(latest))
            if reply is not None:
                marker = Marker(reply=reply, epoch=context.call.epoch)
                await self.store.mark(context.run_prefix, key(1), marker.text())
            if reply is not None or latest > 1:
                return reply
        return None

    async def write(self, context: NodeContext, write: Write) -> tuple[NodeReply | None, str]:
        """Return what a write has returned before: in a later generation of this run, which was
        reset since then, or in an origin. And the idempotency key that it had there if it is to be
        called again, "" otherwise.

        Raises UnknownOutcome if nobody knows whether it has written there, and AlreadyWritten if it
        wrote something else in this place of its plan.
        """
        found = await self.result(context)
        if found is not None:
            return found, ""

        # A first attempt that a reset brings again may have failed before, and what a
        # person has retried was made.
        run, home = context.call.run, context.run_prefix
        generation = context.unit.generation
        own = EffectLedger(self.store, home, no_outcome)
        latest = await self._latest(home, context.key)
        if latest > generation and not await own.has_begun(write):
            later = range(latest, generation, -1)
            begun, reply, key = await self._written(context, write, run, home, later)
            if begun:
                return reply, key

        for origin, home in self._homes(context):
            latest = await self._latest(home, context.key)
            generations = range(latest, 0, -1)
            begun, reply, key = await self._written(context, write, origin, home, generations)
            if begun:
                return reply, key
            if not await is_claimed(self.store, home):
                raise UnknownOutcome(
                    f"{write.tool}: what run {origin} has written is not known any more"
                )
        return None, ""

    async def _written(
        self, context: NodeContext, write: Write, run: str, home: str, generations: Iterable[int]
    ) -> tuple[bool, NodeReply | None, str]:
        """Return whether a run has begun a write in one of these generations, and then what it has
        returned, or its idempotency key if it is to be called again.
        """
        ledger = EffectLedger(self.store, home, partial(self._adopted, context, home))
        for generation in generations:
            earlier = replace(write, key=f"{run}/{context.key}/{generation}")
            made = await ledger.intent(earlier)
            if made is None:
                continue
            is_of_program = context.unit.id in context.checked.keys
            reply = await ledger.outcome(earlier, any_arguments=is_of_program)
            if reply is None:
                return True, None, earlier.key
            # It is told of as what it is, a write of that generation.
            if home == context.run_prefix:
                return True, reply, ""
            marker = Marker(reply=reply, epoch=context.call.epoch)
            await self.store.mark(context.run_prefix, write.marker, marker.text())
            await EffectLedger(self.store, context.run_prefix, ledger.recorded).begin(write, made)
            return True, reply, ""
        return False, None, ""

    async def has_begun(self, run: str, home: str, key: str, docs: str | None) -> bool:
        """Whether a write of a program has begun in a run, or a person has given its result there.
        Raises StoreUnavailable.
        """
        for generation in range(await self._latest(home, key), 0, -1):
            intent = _intent(run, key, generation)
            if await self.store.marked(home, intent) is not None:
                return True
            result = key_of([key, generation, docs, "result"])
            if await self.store.marked(home, result) is not None:
                return True
        return False

    async def begun_at(self, run: str, home: str, key: str) -> float:
        """Return when a write of a program has begun in a run, in its latest generation, 0 if it
        has not. Raises StoreUnavailable.
        """
        for generation in range(await self._latest(home, key), 0, -1):
            body = await self.store.marked(home, _intent(run, key, generation))
            if body is not None:
                return Intent.model_validate_json(body).at
        return 0.0

    async def of_subagent(self, context: NodeContext) -> list[str]:
        """Return the origins of a node's sub-agent: those that the origins of this
        run had in this place.
        """
        origins: list[str] = []
        for origin, home in self._homes(context):
            latest = await self._latest(home, context.key)
            for generation in range(latest, 0, -1):
                place = _place(context, generation)
                origins.append(prefix_below(origin, place))
        return origins

    def _homes(self, context: NodeContext) -> Iterator[tuple[str, str]]:
        """Yield the origins with what their artifacts lie below; none once a person has
        had the node begin anew.
        """
        if context.unit.generation > 1:
            return
        namespace = context.run_prefix.rpartition("/")[0]
        for origin in context.call.origins:
            yield origin, f"{namespace}/{origin}"

    async def _latest(self, home: str, key: str) -> int:
        """Return the latest generation in which a call has begun there."""
        generation = 1
        while await self.store.marked(home, _again(key, generation + 1)) is not None:
            generation += 1
        return generation

    async def _adopted(self, context: NodeContext, home: str, key: str) -> NodeReply | None:
        """Return the reply in a marker of an origin, with its output stored here; None
        if either is not there.
        """
        try:
            marker = await self.store.marked(home, key)
            reply = Marker.read(marker or b"").reply
            at = reply.at
            name = digest_of(told_at(context.key).encode())
            told = await self.store.marked(home, name)
            if told is not None:
                at = max(at, decode(told))
            if reply.ref is None:
                return None
            body = await self.store.get(home, reply.ref)
        except BodyMissing:
            return None
        if not body:
            return None

        paid = reply.paid
        if any(reply.usage):
            paid = reply.usage
        taken: dict[str, Any] = {
            "attempt": 0,
            "usage": NO_USAGE,
            "paid": paid,
            "taken_over": True,
            "at": at,
        }
        if reply.more:
            await self.store.put(context.run_prefix, body)
            return reply.model_copy(update=taken)
        wanted, inline = context.wanted
        output = decode(body)
        try:
            await copy_media(self.store, home, context.run_prefix, output, body)
            await copy_workspaces(self.store, home, context.run_prefix, output, body)
        except BodyMissing:
            return None
        kept = await keep(self.store, context.run_prefix, output, wanted, inline=inline)
        if reply.error is not None:
            taken["error"] = reply.error
        return kept.model_copy(update=taken)


def subagent_ledger(context: NodeContext) -> SubagentLedger:
    """Return where the sub-agent of a node keeps its writes."""
    generation = context.unit.generation
    home = prefix_below(context.call.run, _place(context, generation))
    return SubagentLedger(
        run_prefix=home, node=context.unit.path, call=context.key, generation=generation
    )


def told_at(key: str) -> str:
    """Return the name under which is noted when a call ended as its script was told, if its
    worker's clock says that it ended earlier.
    """
    return f"told {key}"


def _is_end(context: NodeContext, more: str) -> bool:
    """Whether a reply that asks for so much is the end of a tool loop."""
    is_in_loop = isinstance(context.node, LlmNode) and context.node.further_turn is not None
    return is_in_loop and not more


def _is_call(context: NodeContext) -> bool:
    """Whether a node is a call that a program has made, and not a part of its tool loop."""
    key = context.checked.keys.get(context.unit.id)
    return key is not None and key == host_key(key)


def _place(context: NodeContext, generation: int) -> str:
    """Return what a node's sub-agent is called in its run prefix, as the workflow does."""
    place = context.unit.path
    key = context.checked.keys.get(context.unit.id)
    if key is not None:
        place = key[:KEY_CHARACTERS]
    if generation == 1:
        return place
    return f"{place}~{generation}"


def _intent(run: str, key: str, generation: int) -> str:
    """Return the name of the marker with the intent of a write."""
    return f"{digest_of(f'{run}/{key}/{generation}'.encode())}.intent"


def _again(key: str, generation: int) -> str:
    return f"{digest_of(key.encode())}.again{generation}"
