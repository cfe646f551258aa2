"""The ledger of effects: it keeps a write from being made twice when a worker
dies during the write.

Before a tool that writes is called, an intent is put into the artifact store: what is written, and
how long the call may take. The outcome is the node's marker beside it. Both are found by the node's
path and generation alone. So every later attempt finds them: after a crash, in the run that goes on
after a reset, and in a sub-agent that is started in the place of another.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.error_mapping import OutputRefused, kind_of, message_of
from sennit.activities.nodes.replies import preview_of
from sennit.activities.nodes.server_time import seconds_now
from sennit.activities.storage.artifacts import MARKERS, ArtifactStore, StoreUnavailable, digest_of
from sennit.activities.toolbox import Tool, ToolError
from sennit.activities.toolbox.errors import AlreadyWritten, ToolResultError, UnknownOutcome
from sennit.workflows.messages.contracts import LedgerLine, NodeReply
from sennit.workflows.plan.language.facts import FactTooLarge
from sennit.workflows.plan.language.nodes import ToolCall
from sennit.workflows.plan.scheduling.events import WriteStatus

UNSURE: Final = "whether it took effect is not known"
WRITTEN: Final = "it has taken effect"
_AFTER: Final = (ToolResultError, OutputRefused, FactTooLarge, StoreUnavailable)
"""Errors that come only after the effect."""
_INTENT: Final = ".intent"
_BELOW: Final = ".below"
_POLL_SECONDS: Final = 0.2
_STORING_SECONDS: Final = 1.0
"""What a call in flight gets on top of its time, to store its result."""


Call = Callable[[], Awaitable[NodeReply]]
Ask = Callable[[], Awaitable[NodeReply | None]]


class Intent(BaseModel):
    """What an attempt is about to write: the digest of tool and arguments, their beginning to be
    shown, and when the call is over at the latest, by the server's time: another worker compares it
    with its own. `node` is the path of the node that writes, in its `generation`, and `call` what
    it is known by. `at` is when the attempt began. The version before does not say these.
    `planned` is the digest of the plan's own arguments, "" if no person has changed any of them.
    """

    owner: str
    digest: str
    text: str
    until: float
    tool: str = ""
    node: str = ""
    call: str = ""
    generation: int = 1
    at: float = 0.0
    planned: str = ""

    def is_of(self, write: "Write") -> bool:
        """Whether a node that would make this write has begun it: with its arguments, or with those
        that a person has put in their place.
        """
        return write.digest in (self.digest, self.planned)


class SubagentLedger(BaseModel):
    """Where a sub-agent keeps its writes: the run prefix that it has below its parent's node, in a
    generation. `call` is what the node is known by.
    """

    run_prefix: str
    node: str
    call: str
    generation: int


@dataclass(frozen=True, slots=True)
class Write:
    """A call of a tool that writes. `key` is its idempotency key, and `seconds` are what it may
    take. `node`, `call` and `generation` say whose it is. `planned` is the digest of the plan's own
    arguments, "" if no person has changed any of them.
    """

    key: str
    tool: str
    digest: str
    text: str
    seconds: float
    idempotent: bool
    node: str = ""
    call: str = ""
    generation: int = 1
    planned: str = ""

    @classmethod
    def of(cls, context: NodeContext, tool: Tool, work: ToolCall) -> "Write":
        """Return the write that a node makes by this call. Raises BindError."""
        arguments = context.arguments(work)
        digest = arguments_digest(tool.name, arguments)
        text = preview_of(arguments)
        planned = arguments_digest(tool.name, context.binder.bound(work.args))
        if planned == digest:
            planned = ""
        unit = context.unit
        whose = (unit.path, context.key, unit.generation)
        return cls(
            context.idempotency_key,
            tool.name,
            digest,
            text,
            context.seconds,
            tool.idempotent,
            *whose,
            planned,
        )

    @property
    def marker(self) -> str:
        """The name of the marker that holds its outcome."""
        return digest_of(self.key.encode())

    @property
    def intent_marker(self) -> str:
        """The name of the marker that says that it has begun."""
        return f"{self.marker}{_INTENT}"

    def intent(self) -> Intent:
        """Return the intent of an attempt that begins now."""
        now = seconds_now()
        return Intent(
            owner=secrets.token_hex(8),
            digest=self.digest,
            text=self.text,
            until=now + self.seconds + _STORING_SECONDS,
            tool=self.tool,
            node=self.node,
            call=self.call,
            generation=self.generation,
            at=now,
            planned=self.planned,
        )


@dataclass(frozen=True, slots=True)
class EffectLedger:
    """The writes of the run whose artifacts are below `run_prefix`. `recorded`
    returns what a marker holds.
    """

    store: ArtifactStore
    run_prefix: str
    recorded: Callable[[str], Awaitable[NodeReply | None]]

    async def enter(
        self, write: Write, call: Call, ask: Ask | None = None, *, lost: bool = False
    ) -> NodeReply:
        """Return what the write has returned, now or earlier. `call` makes it and stores its
        result and its marker.

        If no attempt has begun it, `ask` comes first: a question that it returns is returned in
        place of the call. If an earlier attempt may still be at it, its end is waited for, at most
        the time that it has; or all of that time from now on, if it was taken for `lost`: on a
        laptop that slept, time went by for nobody. Raises AlreadyWritten if other arguments were
        written, and UnknownOutcome if an earlier attempt left nothing but its intent. Both without
        calling anything; but a tool that is idempotent is called again with the same arguments.
        """
        name = write.intent_marker
        latest = seconds_now() + write.seconds + _STORING_SECONDS
        while True:
            found = None
            if ask:
                found = await self.store.marked(self.run_prefix, name)
            if found is None:
                question = None
                if ask:
                    question = await ask()
                if question is not None:
                    return question
                body = write.intent().model_dump_json().encode()
                found = await self._set_intent(name, body)
                if found == body:
                    return await self._call(write, call, name)
            known = Intent.model_validate_json(found)
            reply = await self.recorded(write.marker)
            if reply is not None and known.is_of(write):
                return reply
            if reply is not None:
                raise AlreadyWritten(
                    f"{write.tool} has written {known.text}; now it would write {write.text}"
                )
            if write.idempotent and known.digest == write.digest:
                return await self._call(write, call)
            until = latest if lost else min(known.until, latest)
            if seconds_now() > until:
                raise UnknownOutcome(
                    f"{write.tool}: an earlier attempt to write {known.text} was cut off; {UNSURE}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _set_intent(self, name: str, body: bytes) -> bytes:
        """Set an intent unless there is one, and return which is there. A cancellation takes it
        back: nothing was called.
        """
        try:
            return await self.store.mark(self.run_prefix, name, body)
        except asyncio.CancelledError:
            if await self.store.marked(self.run_prefix, name) == body:
                await self.store.unmark(self.run_prefix, name)
            raise

    async def written(self) -> list[LedgerLine]:
        """Return all writes of the run and its sub-agents that have begun, in the order in which
        they began, and what became of them: also those that the run has forgotten because it was
        reset. Raises StoreUnavailable.
        """
        dated = await self._dated()
        dated.sort(key=_by_beginning)
        return [line for _, line in dated]

    async def _dated(self) -> list[tuple[float, LedgerLine]]:
        """Return all writes of the run and its sub-agents, each with when it began."""
        found: list[tuple[float, LedgerLine]] = []
        async for name in self._names():
            if name.endswith(_BELOW):
                found += await self._written_below(name)
            intent = await self._intent(name)
            if intent is not None:
                line = await self._line(intent, name.removesuffix(_INTENT))
                found.append((intent.at, line))
        return found

    async def note_subagent(self, below: SubagentLedger) -> None:
        """Note where a sub-agent keeps its writes, before it begins. Safe to repeat.
        Raises StoreUnavailable.
        """
        name = f"{digest_of(below.run_prefix.encode())}{_BELOW}"
        body = below.model_dump_json().encode()
        await self.store.mark(self.run_prefix, name, body)

    async def _written_below(self, marker: str) -> list[tuple[float, LedgerLine]]:
        """Return the writes of a sub-agent, and of those below it, each with when it began,
        as writes of its node.
        """
        body = await self.store.marked(self.run_prefix, marker)
        if body is None:
            return []
        below = SubagentLedger.model_validate_json(body)
        namespace, _, _ = self.run_prefix.rpartition("/")
        ledger = EffectLedger(self.store, f"{namespace}/{below.run_prefix}", self.recorded)
        found = []
        for at, line in await ledger._dated():
            path = line.node
            if line.generation > 1:
                path += f"~{line.generation}"
            if line.below:
                path += f".{line.below}"
            place = {
                "node": below.node,
                "call": below.call,
                "generation": below.generation,
                "below": path,
            }
            found.append((at, line.model_copy(update=place)))
        return found

    async def intents(self) -> AsyncIterator[Intent]:
        """Yield the intents of all writes of the run that have begun. Raises StoreUnavailable."""
        async for name in self._names():
            intent = await self._intent(name)
            if intent is not None:
                yield intent

    async def _names(self) -> AsyncIterator[str]:
        """Yield the names of all markers of the run, without those of its sub-agents."""
        namespace, _, run = self.run_prefix.rpartition("/")
        async for each in self.store.list_objects(namespace, run):
            if each.run_prefix == self.run_prefix and each.name.startswith(MARKERS):
                yield each.name.removeprefix(MARKERS)

    async def _intent(self, name: str) -> Intent | None:
        """Return the intent in the marker of this name, None if it holds another
        thing or was taken back.
        """
        if not name.endswith(_INTENT):
            return None
        body = await self.store.marked(self.run_prefix, name)
        if body is None:
            return None
        return Intent.model_validate_json(body)

    async def _line(self, intent: Intent, marker: str) -> LedgerLine:
        """Return what became of a write that has begun."""
        status: WriteStatus = "unknown"
        if await self.store.marked(self.run_prefix, marker) is not None:
            status = "made"
        elif seconds_now() <= intent.until:
            status = "in flight"
        return LedgerLine(
            node=intent.node, call=intent.call, generation=intent.generation, status=status
        )

    async def has_begun(self, write: Write) -> bool:
        """Whether an attempt has begun the write, and not taken that back."""
        return await self.store.marked(self.run_prefix, write.intent_marker) is not None

    async def begin(self, write: Write, made: Intent) -> None:
        """Note that the write has begun, with the arguments with which it was `made` in a run that
        this one forks.
        """
        as_made = {"digest": made.digest, "text": made.text, "planned": made.planned}
        body = write.intent().model_copy(update=as_made).model_dump_json().encode()
        await self.store.mark(self.run_prefix, write.intent_marker, body)

    async def intent(self, write: Write) -> Intent | None:
        """Return the intent of a write, None if no attempt has begun it."""
        return await self._intent(write.intent_marker)

    async def outcome(self, write: Write, *, any_arguments: bool = False) -> NodeReply | None:
        """Return what a write has returned that has begun, None if it may be called
        again under the same key.

        If an attempt may still be at it, its end is waited for. Raises UnknownOutcome if there is
        none; and AlreadyWritten if other arguments were written, unless `any_arguments` will do.
        """
        while (found := await self.store.marked(self.run_prefix, write.intent_marker)) is not None:
            known = Intent.model_validate_json(found)
            reply = await self.recorded(write.marker)
            if reply is not None and not any_arguments and not known.is_of(write):
                raise AlreadyWritten(
                    f"{write.tool} has written {known.text}; now it would write {write.text}"
                )
            if reply is not None or (write.idempotent and known.digest == write.digest):
                return reply
            if seconds_now() > known.until:
                raise UnknownOutcome(
                    f"{write.tool}: an earlier attempt to write {known.text} was cut off; {UNSURE}"
                )
            await asyncio.sleep(_POLL_SECONDS)
        return None

    async def _call(self, write: Write, call: Call, intent: str = "") -> NodeReply:
        """Make the call. A ToolError says that there was no effect: the call's own `intent` is
        taken back, and another attempt may try. After any other error the intent stays, and it does
        when this process dies or is stopped.
        """
        try:
            return await call()
        except _AFTER as error:
            if write.idempotent:
                raise error from None
            raise UnknownOutcome(f"{message_of(error)}; {WRITTEN}") from None
        except UnknownOutcome:
            raise
        except ToolError:
            if intent:
                await self.store.unmark(self.run_prefix, intent)
            raise
        except Exception as error:
            if write.idempotent:
                raise
            raise UnknownOutcome(
                f"{write.tool}: {kind_of(error)}: {message_of(error)}; {UNSURE}"
            ) from error


def _by_beginning(dated: tuple[float, LedgerLine]) -> tuple[float, str, str]:
    """Return the key by which writes are sorted: in the order in which they began."""
    at, line = dated
    return at, line.node, line.below


async def no_outcome(_: str) -> None:
    """Tell of no outcome: who asks a ledger only which writes have begun looks
    at no marker's content.
    """


def arguments_digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what names a call by its tool and values, which a person approves and the ledger
    keeps; equal values have equal digests, whatever their order.
    """
    text = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"))
    return digest_of(text.encode())
