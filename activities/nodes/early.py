"""Calls that are made early: where a real call finds what one has given, by the
content that both have.

A note is kept under the name of each early call, which the run gives it. It says which call
that was, by its tool, the tool's version, the documents and the bound arguments, as soon as
these are known; then what came of it. A real call reads the notes that its run names, and takes
over what is exactly the same call. While that is still under way, it waits for it: what has begun
has less left to do than a new call, unless it hangs. An early call that follows another one is made
of what the note of that one names: its arguments and its output.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from sennit.activities.limits import MAX_EARLY_WAIT_MILLIS
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.storage.artifacts import (
    ArtifactStore,
    BodyMissing,
    StoreUnavailable,
    decode,
    digest_of,
    key_of,
)
from sennit.activities.storage.run_context import StoredPlan
from sennit.activities.toolbox import Tool
from sennit.workflows.messages.node_calls import PrefetchCall

ArgumentsOf = Callable[[NodeContext, Tool], Awaitable[dict[str, Any]]]
"""Gives the arguments of a call that is made early, behind that of a node or for it."""
FIRST_LOOK, LAST_LOOK = 0.02, 0.1
"""Seconds between two looks at the note of a call that is under way."""
LEAST_WAIT, WAIT_FOR_UNKNOWN = 1_000, 10_000
"""Milliseconds for which a real call waits at least for one under way, from when that began; and
for one of which nobody knows how long it takes.
"""
PATIENCE: Final = 4
"""How many times as long as usual a call may take before it counts as one that hangs: nothing waits
for it any more.
"""
WAIT_SHARE: Final = 0.5
"""The part of its tool's timeout for which a real call waits at most."""


class EarlyRefused(Exception):
    """A call is not made early."""


class EarlyNote(BaseModel):
    """What is known of an early call. Times are milliseconds; nothing waits for it after `until`,
    and nothing uses what it has given after `fresh_until`. `arguments` and `ref` are the artifacts
    with what it was given and what it has given.
    """

    key: str
    status: Literal["running", "done", "failed"] = "running"
    began: int = 0
    """Of a call that follows another early one, when the first of them began."""
    until: int = 0
    fresh_until: int = 0
    arguments: str = ""
    ref: str = ""
    millis: int = 0
    warnings: tuple[str, ...] = ()

    def done(self, arguments: str, ref: str, output: NodeOutput) -> "EarlyNote":
        """Return the note of a call that has given an output."""
        given: dict[str, Any] = {"status": "done", "arguments": arguments, "ref": ref}
        given |= {"millis": output.millis, "warnings": output.warnings}
        return self.model_copy(update=given)


def note_of(call: PrefetchCall, key: str, tool: Tool, began: int) -> EarlyNote:
    """Return the note of a call that begins now, and whose output is as old as if it `began`
    then.
    """
    until = waits_until(call.usual, tool.timeout)
    return EarlyNote(key=key, began=began, until=until, fresh_until=began + call.fresh_for)


def early_key(checked: StoredPlan, tool: Tool, arguments: dict[str, Any]) -> str:
    """Return the content key of a call: equal for two calls only if they give the same."""
    return key_of([tool.name, tool.version, checked.docs, arguments])


def marker_of(name: str) -> str:
    """Return the marker with the note of an early call."""
    return f"{digest_of(name.encode())}.early"


@dataclass(frozen=True, slots=True)
class EarlyOutputs:
    """The early calls of runs, in the store of this worker."""

    store: ArtifactStore

    async def note(self, run_prefix: str, name: str, note: EarlyNote) -> None:
        """Keep what is known of a call now. Raises StoreUnavailable."""
        body = note.model_dump_json().encode()
        await self.store.replace_marker(run_prefix, marker_of(name), body)

    async def has(self, run_prefix: str, names: tuple[str, ...], key: str) -> bool:
        """Whether one of these calls is the same one, and a real call may still use it.
        Raises StoreUnavailable.
        """
        for name in names:
            if await self._usable(run_prefix, name, key) is not None:
                return True
        return False

    async def take(self, run_prefix: str, names: tuple[str, ...], key: str) -> NodeOutput | None:
        """Return what one of these calls has given that was the same call; None if there is
        none, or it has failed.

        A store that is away, or a note that is cut off, costs nothing but the time saved.
        """
        try:
            for name in names:
                note = await self._settled(run_prefix, name, key)
                if note is not None:
                    value = decode(await self.store.get(run_prefix, note.ref))
                    return NodeOutput(value, millis=note.millis, warnings=note.warnings, early=name)
        except (StoreUnavailable, BodyMissing, ValueError):
            return None
        return None

    async def first(self, run_prefix: str, name: str) -> EarlyNote:
        """Return the note of a call that another one follows. Raises EarlyRefused
        if it has given nothing.
        """
        note = await self._read(run_prefix, name)
        if note is None or note.status != "done":
            raise EarlyRefused("the early call before it has given nothing")
        return note

    async def _settled(self, run_prefix: str, name: str, key: str) -> EarlyNote | None:
        """Return the note of a call that was the same, and is done; wait for
        one that is under way.
        """
        pause = FIRST_LOOK
        while True:
            note = await self._usable(run_prefix, name, key)
            if note is None or note.status == "done":
                return note
            if millis_now() > note.until:
                return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_LOOK)

    async def _usable(self, run_prefix: str, name: str, key: str) -> EarlyNote | None:
        """Return the note of a call that is the same, has not failed, and is fresh enough."""
        note = await self._read(run_prefix, name)
        if note is None or note.key != key or note.status == "failed":
            return None
        if millis_now() > note.fresh_until:  # the real call may have waited long for its worker
            return None
        return note

    async def _read(self, run_prefix: str, name: str) -> EarlyNote | None:
        body = await self.store.marked(run_prefix, marker_of(name))
        if body is None:
            return None
        try:
            return EarlyNote.model_validate_json(body)
        except ValidationError:
            return None


def waits_until(usual: int, seconds: float) -> int:
    """Return until when a real call waits for one that begins now, and may take
    so many seconds at most.
    """
    most = min(MAX_EARLY_WAIT_MILLIS, round(1000 * seconds * WAIT_SHARE))
    wait = WAIT_FOR_UNKNOWN
    if usual:
        wait = max(LEAST_WAIT, PATIENCE * usual)
    return millis_now() + min(wait, most)
