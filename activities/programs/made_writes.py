"""Which of the writes that were made a write of a script is: numbers among equal
writes, and claims on them.

A write of a program is known by its tool, its arguments, and its number among the equal ones,
whichever coroutine or task makes it. So a script that was edited, or that a fork runs, takes over a
write that an earlier script has made, wherever it makes it now, once for each time it was made.

Which number a call has is decided here, before it is put on a page, by marks in the store that
only the first writer can set. A call that claims again, after a crash or when its script runs over
what is recorded, finds its own claim. Claims hold for one script: the next one begins to claim
from the first write on.

A run that was reset forgets calls, and so does a program whose script is given back to it after
another one. Coroutines and tasks that race may then make an equal call in another place. What the
script has claimed and does not know any more is therefore free for its other calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sennit.activities.limits import MAX_KEPT_CLAIMS_BYTES
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.effect_ledger import EffectLedger, no_outcome
from sennit.activities.nodes.origins import Origins
from sennit.activities.storage.artifacts import decode, digest_of, encode, key_of
from sennit.workflows.plan.bounded_cache import BoundedCache


class Claimant(NamedTuple):
    """A call that wants a write: its program, its script, and what tells it from all
    other calls of that script.
    """

    program: str
    script: str
    call: str


class Caution(NamedTuple):
    """What a person has to know of a write before it is made: that the script before has written,
    and when. It `asks` whatever the run's policy is if nobody can tell whether the new script means
    the same write. A write that was made asks before it is taken over; then `confirms` names the
    mark that says that a person has agreed.
    """

    text: str
    asks: bool = False
    confirms: str = ""


@dataclass(frozen=True, slots=True)
class EqualWrites:
    """The writes of one program that have the same tool and equal arguments."""

    digest: str

    @classmethod
    def of(cls, program: str, tool: str, arguments: object) -> "EqualWrites":
        """Return those that are equal to a call of this tool."""
        return cls(key_of([program, tool, arguments]))

    def key(self, number: int) -> str:
        """Return what one of them is known by, in the plan, in the ledger of effects,
        and in forks of the run.
        """
        return key_of(["write", self.digest, number])


def _taken(key: str) -> str:
    """Return the name of the mark that says which call has taken a write
    first, of whatever script.
    """
    return digest_of(f"write {key}".encode())


def _claimed(key: str, script: str) -> str:
    """Return the name of the mark that says which call of a later script has claimed a write."""
    return digest_of(f"claim {key} {script}".encode())


@dataclass(slots=True)
class WriteClaims:
    """Claims writes for the scripts of one run, of which `context` is an advance.

    Marks that were seen are kept in `seen`, because they never change.
    """

    origins: Origins
    context: NodeContext
    seen: "SeenMarks"

    async def claim(self, writes: EqualWrites, claimant: Claimant, held: Sequence[int]) -> int:
        """Return the number of the write that a call makes. The script has `held` those numbers for
        the equal calls that it made before this one.

        Writes come first that were made, are in flight, or of which nobody knows whether they were
        made: of these the one that this very call made when the script ran before, then the others
        in order. Then come those that were called and not made, and then a new one. Safe to repeat.
        Raises StoreUnavailable.
        """
        if not self.context.call.origins:
            # Where no other script has claimed any, the calls before this one hold the
            # numbers up to their count.
            number = len(held) + 1
            if number not in held:
                taker = await self._take(writes, claimant, number)
                if taker.script == claimant.script:
                    return number
        number = await self._choose(writes, claimant, held)
        await self._hold(writes, claimant, number)
        return number

    async def _choose(self, writes: EqualWrites, claimant: Claimant, held: Sequence[int]) -> int:
        """Return the number that suits the call best of those that no other
        call of this script holds.
        """
        taken_by_call = list[int]()
        taken_by_others = list[int]()
        number = 1
        while takers := await self._takers(writes, number):
            if number not in held:
                holder = await self._holder(writes.key(number), claimant.script, takers[0])
                if holder == claimant.call:
                    return number
                calls = [taker.call for taker in takers if taker is not None]
                if claimant.call in calls:
                    taken_by_call.append(number)
                else:
                    taken_by_others.append(number)
            number += 1

        # A write that has begun may have been made, so it comes before those that have not.
        free = taken_by_call + taken_by_others
        for taken in free:
            if await self._has_begun(writes.key(taken)):
                return taken
        return free[0] if free else number

    async def _takers(self, writes: EqualWrites, number: int) -> list[Claimant | None]:
        """Return who took a number first in this run, and in each that it forks; nothing
        if none of them has it.
        """
        key = writes.key(number)
        takers = [await self._taker(home, key) for _, home in self._homes()]
        return takers if any(takers) else []

    async def _taker(self, home: str, key: str) -> Claimant | None:
        body = await self.seen.mark(self.origins, home, _taken(key))
        return Claimant(*decode(body)) if body is not None else None

    async def _holder(self, key: str, script: str, taker: Claimant | None) -> str:
        """Return which call of a script holds a write, "" if none does."""
        if taker is None:
            return ""
        if taker.script == script:
            return taker.call
        body = await self.seen.mark(self.origins, self.context.run_prefix, _claimed(key, script))
        return str(decode(body)) if body is not None else ""

    async def _hold(self, writes: EqualWrites, claimant: Claimant, number: int) -> None:
        """Note that this script has claimed a number, unless it is the first that has."""
        taker = await self._take(writes, claimant, number)
        if taker.script != claimant.script:
            name = _claimed(writes.key(number), claimant.script)
            await self.origins.store.mark(self.context.run_prefix, name, encode(claimant.call))

    async def _take(self, writes: EqualWrites, claimant: Claimant, number: int) -> Claimant:
        """Take a number unless it is taken in this run, and return who has it."""
        name = _taken(writes.key(number))
        body = await self.origins.store.mark(self.context.run_prefix, name, encode(claimant))
        return Claimant(*decode(body))

    async def caution(
        self, writes: EqualWrites, claimant: Claimant, tool: str, number: int
    ) -> Caution | None:
        """Return what a person has to know of a write that was claimed, None for nothing.

        A write that no script before has called is new. If an equal one was made, it is one more.
        If another write of the tool was made that the new script has not called yet, it may be the
        same one with another text. Raises StoreUnavailable.
        """
        takers = await self._takers(writes, number)
        if takers[0] != claimant or any(takers[1:]):
            return None
        place = (self.context.run_prefix, claimant.script, tool)
        if self.seen.nothing_waits(place):
            return None
        equal = [writes.key(earlier) for earlier in range(1, number)]
        waiting = None
        for _, home in self._homes():
            async for intent in EffectLedger(self.origins.store, home, no_outcome).intents():
                if intent.call in equal and await self._is_of_another(home, intent.call, claimant):
                    return Caution(f"already written at {_clock(intent.at)} by the old script")
                if (
                    waiting is None
                    and intent.tool == tool
                    and await self._waits(home, intent.call, claimant)
                ):
                    waiting = intent
        if waiting is None:
            self.seen.note_nothing_waits(place)
            return None
        # It says why it asks: a script with a new write in front of the old ones asks too,
        # and means no other text.
        made = f"the old script wrote {tool} {waiting.text} at {_clock(waiting.at)}"
        why = "the new one has not called that yet, so this may be the same write with another text"
        return Caution(f"{made}; {why}. Write this as well?", asks=True)

    async def made_at(self, key: str) -> float:
        """Return when a write was made first, in this run or in one that it forks, 0 if that is not
        known. Raises StoreUnavailable.
        """
        # A fork that takes a write over notes it as begun, at a later time than
        # the run that has made it.
        times = list[float]()
        for run, home in self._homes():
            at = await self.origins.begun_at(run, home, key)
            if at:
                times.append(at)
        return min(times, default=0.0)

    async def out_of_order(
        self, claimant: Claimant, key: str, resource: str, last: float
    ) -> Caution | None:
        """Return what a person has to know of a write that an earlier script has made before the
        `last` one of which the new script was told, None if that is not so, or if they have agreed.
        Raises StoreUnavailable.
        """
        at = await self.made_at(key)
        if not at or at >= last:
            return None
        mark = digest_of(f"confirmed {key} {claimant.script}".encode())
        by_others = [await self._is_of_another(home, key, claimant) for _, home in self._homes()]
        if not any(by_others):
            return None
        has_agreed = await self.origins.store.marked(self.context.run_prefix, mark) is not None
        if has_agreed:
            return None
        made = (
            f"the old script wrote this at {_clock(at)}, before the write to {resource} at "
            f"{_clock(last)}"
        )
        text = (
            f"{made} that the new one makes first. It will not be written again. Go on with it as "
            "it is?"
        )
        return Caution(text, asks=True, confirms=mark)

    async def _is_of_another(self, home: str, key: str, claimant: Claimant) -> bool:
        """Whether another script has made a write, here or in a run that this one forks."""
        taker = await self._taker(home, key)
        if taker is None:
            return False
        return home != self.context.run_prefix or taker.script != claimant.script

    async def _waits(self, home: str, key: str, claimant: Claimant) -> bool:
        """Whether a write that an earlier script of the program has made was not
        called by this one yet.
        """
        first = await self._taker(home, key)
        if first is None or first.program != claimant.program:
            return False
        taker = await self._taker(self.context.run_prefix, key)
        return not await self._holder(key, claimant.script, taker)

    async def _has_begun(self, key: str) -> bool:
        """Whether a write was made, is in flight or is in doubt: in this run,
        or in one that it forks.
        """
        for run, home in self._homes():
            if await self.origins.has_begun(run, home, key, self.context.checked.docs):
                return True
        return False

    def _homes(self) -> Sequence[tuple[str, str]]:
        """Return this run and those that it forks, each with where it keeps what it stores."""
        context = self.context
        namespace = context.run_prefix.rpartition("/")[0]
        homes = [(context.call.run, context.run_prefix)]
        for origin in context.call.origins:
            homes.append((origin, f"{namespace}/{origin}"))
        return homes


class SeenMarks:
    """Marks that this worker has read lately. They never change, so long lists of
    equal writes are read once.
    """

    def __init__(self) -> None:
        self._quiet: BoundedCache[tuple[str, str, str], bool] = BoundedCache(MAX_KEPT_CLAIMS_BYTES)
        self._bodies: BoundedCache[tuple[str, str], bytes] = BoundedCache(MAX_KEPT_CLAIMS_BYTES)

    def nothing_waits(self, place: tuple[str, str, str]) -> bool:
        """Whether a script has called all that the scripts before it have written with a tool:
        place is the run, the script and the tool.
        """
        return place in self._quiet

    def note_nothing_waits(self, place: tuple[str, str, str]) -> None:
        """Note that no write waits to be taken over, which stays so."""
        self._quiet.put(place, True)

    async def mark(self, origins: Origins, home: str, name: str) -> bytes | None:
        """Return what a mark holds, None if it is not set. Raises StoreUnavailable."""
        place = (home, name)
        body = self._bodies.get(place)
        if body is not None:
            return body
        body = await origins.store.marked(home, name)
        if body is not None:
            self._bodies.put(place, body)
        return body


def _clock(at: float) -> str:
    """Return a time of day as people read it."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC" if at else "an unknown time"
