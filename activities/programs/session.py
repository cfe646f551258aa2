"""Where a program stands between two advances: an artifact of its own, small whatever came before.

The script itself waits in a process, which is only a convenience: the session has the record of
what the script was told, with which it stands there again in any other process.
"""

import asyncio
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from sennit.activities.limits import (
    MAX_KEPT_SNAPSHOTS_BYTES,
    MAX_LOG_CHARACTERS,
    MAX_LOGGED_CHARACTERS,
    MAX_READ_BYTES,
    MAX_STEM_CHARACTERS,
    MAX_VALUE_BYTES,
)
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.nodes.origins import told_at
from sennit.activities.programs.progress import Snapshot
from sennit.activities.programs.replay_record import StoredPart
from sennit.activities.programs.values import Ended, Ref
from sennit.activities.storage.artifacts import digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS
from sennit.workflows.plan.limits import MAX_NOTED_FAILURES

_KEYS = 2
"""How the calls of a program are known. Versions of Sennit before this one have
noted nothing of that.
"""
_OTHER_KEYS = (
    "the run that this one forks was made by an earlier version of Sennit, which knew the calls of "
    "programs in another way, so that none would be taken over: start a new run instead"
)
_TAIL = 64
_ERRORS, _ERROR_CHARACTERS = 50, 200
_MOVING = (
    "open",
    "fed",
    "counts",
    "numbers",
    "tasks",
    "slices",
    "errors",
    "made",
    "read",
    "logged",
    "writing",
    "heard",
    "wrote",
    "inherited",
    "branches",
    "held",
    "failed",
)
_DIGITS = 9
"""Of the number of a call."""

Shape = Literal["", "ref"]


class OpenCall(NamedTuple):
    """A call that the script may wait for: its node, its key, and what the script reads of the
    output: all of it, or a reference to it; and whether it writes.
    """

    node: str
    key: str
    shape: Shape = ""
    writes: bool = False


class Writing(NamedTuple):
    """A write to a resource of whose end the script was not told yet: its key, and the task that
    has called it. `last` is when the latest write to the resource was made of which that task knew
    when it made the call.
    """

    resource: str = ""
    key: str = ""
    last: float = 0.0
    task: str = ""


class Heard(NamedTuple):
    """A write of whose end a task is `told` at that time of its clock: when it was made, and when
    the `last` one was of which the task knew when it made the call.
    """

    told: int
    resource: str
    at: float
    last: float
    task: str = ""


class Fed(NamedTuple):
    """How a call ended, as the script is told: by its key, with the digest of its value, or a
    status and an error, and when, in milliseconds.
    """

    key: str
    ref: str = ""
    status: str = "succeeded"
    error: str = ""
    at: int = 0


class SessionSlice(NamedTuple):
    """What the calls of a running `task` may spend, by its id; and the task `around` it
    that has a budget, too.
    """

    task: str
    limits: dict[str, int]
    around: str = ""


class Session(BaseModel):
    """Where a script stands, and all that the next advance must know of those before it.

    It is stored after each advance. What a script was told lies in the record, in the order in
    which it was told.
    """

    script: str
    function: str
    arguments: dict[str, Any] = {}
    """Of `function`. Only the first of a chain of sessions has them: see `first`."""

    # The names of calls.
    key: str
    """What the keys of the script's calls begin with."""
    node: str = ""
    """The id of the program's node."""
    stems: list[tuple[int, str]] = []
    """What the ids of calls begin with, from which call on. When the program runs again, in another
    generation, new ids begin.
    """
    generation: int = 1

    # How far the script came.
    number: int = 1
    """Of the advance."""
    made: int = 0
    """How many calls the script has made."""
    read: int = 0
    """How many bytes it has read of large results."""
    logged: int = 0
    """How many characters it has logged."""
    waiting: dict[str, Any] = {}
    """Where the script waits."""
    record: list[Any] = []
    """The latest entries of what it was told. Earlier ones are in `parts`."""
    parts: list[StoredPart] = []
    first: str = ""
    """The session that has the arguments."""

    # Calls and tasks that are open.
    open: dict[int, OpenCall] = {}
    held: list[int] = []
    """Open calls that have failed. The script is told only when nothing else is open: they end it,
    and tasks beside them are to come to their ends first.
    """
    tasks: dict[int, str] = {}
    """The tasks that run: the number of the call with which each has begun, and its id."""
    slices: dict[str, SessionSlice] = {}
    """Tasks that have a budget, by their call sites."""

    # Equal calls.
    numbers: dict[str, list[int]] = {}
    """The numbers that writes have among equal ones, where these are not the first in order."""
    counts: dict[str, int] = {}
    """How often equal calls were made. Those counted longer ago are in `counted`."""
    counted: list[tuple[str, int]] = []
    """Digest and length of each part."""
    skipped: list[str] = []
    """Calls that had failed, or were cancelled, when the program ran before, or in a run that this
    one forks. Equal calls go by the numbers behind them.
    """
    failed: list[str] = []
    """Calls of this run that have failed, for runs that fork it."""
    errors: list[str] = []
    """The latest errors that the script was told, to know one again if the script ends by it."""
    before: str = ""
    """The session before this one, as the store has it."""

    # Times.
    fed: list[Fed] = Field(default=[], exclude=True)
    """The ends that the script was told in this advance, in order. They are not stored."""
    clock: int = 0
    """When the session began, in milliseconds."""
    since: int = 0
    """When it began again."""
    runs: list[tuple[int, str]] = []
    """Of a run that forks others: those and this one, each with the time from which its UUIDs
    count.
    """
    again: bool = False
    """Whether the run may know calls that it makes from when the program ran before."""
    retold: bool = False
    """Whether an advance has been made again, or the program in another plan: then it may be noted
    when calls ended of which this session is told later.
    """

    # Writes.
    repeat_writes: bool = False
    """Whether no write asks because an earlier script may have made it."""
    writing: dict[str, Writing] = {}
    """Writes that an earlier script may have made, by their nodes."""
    heard: list[Heard] = []
    """The writes of whose ends the script is told."""
    wrote: dict[str, dict[str, float]] = {}
    """By task, "" for `main`: when the last write was made to each resource."""
    inherited: dict[str, dict[str, float]] = {}
    """The same of the writes before the task."""
    branches: dict[int, str] = {}
    """The tasks by the numbers of their calls."""

    def begin(self, node: str, *, mark: str = "") -> None:
        """Have the next ids begin with the id of the program's node, and with a `mark` if
        that may have been used.
        """
        self.node = self.node or node
        stem = f"{self.node}_{mark}" if mark else self.node
        if len(stem) > MAX_STEM_CHARACTERS:
            stem = f"p{digest_of(stem.encode())[:10]}"
        self.stems.append((self.made + 1, stem))

    def standing(self) -> dict[str, Any]:
        """Return a copy of what an advance changes; `go_back` takes it."""
        return {name: copy(getattr(self, name)) for name in _MOVING}

    def go_back(self, standing: dict[str, Any]) -> None:
        """Forget what has happened since then."""
        for name, value in standing.items():
            setattr(self, name, copy(value))

    def call_id(self, ordinal: int) -> str:
        """Return the id of the call of that number. Raises LookupError for
        one that was not made.
        """
        if not 1 <= ordinal <= self.made:
            raise LookupError(ordinal)
        for first, stem in reversed(self.stems):
            if first <= ordinal:
                return f"{stem}_{ordinal}"
        raise LookupError(ordinal)

    def numbers_of(self, place: str, before: int) -> Sequence[int]:
        """Return the numbers that the `before` writes of this session have which are
        equal to one in this place.
        """
        return self.numbers.get(place, range(1, before + 1))

    def hold(self, place: str, held: Sequence[int], number: int) -> None:
        """Note that one more write has a number, beside those that the equal
        ones before it `held`.
        """
        if place in self.numbers or number != len(held) + 1:
            self.numbers[place] = [*held, number]

    def log(self, printed: str) -> tuple[str, ...]:
        """Return what an advance has printed as lines of the log, as far as there is
        room; what is cut is said.
        """
        kept = printed[: max(0, MAX_LOG_CHARACTERS - self.logged)]
        is_full = self.logged > MAX_LOG_CHARACTERS
        self.logged += len(printed)
        lines = list[str]()
        if kept:
            for line in kept.removesuffix("\n").split("\n"):
                lines.append(_cut(line))
        if len(kept) < len(printed) and not is_full:
            lines.append(
                f"(the log ends here: a program logs at most {MAX_LOG_CHARACTERS >> 10} KiB)"
            )
        return tuple(lines)

    def fail(self, error: str) -> None:
        """Remember an error that the script was told, to know it again if the script ends by it."""
        errors = [*self.errors, error[:_ERROR_CHARACTERS]]
        self.errors = errors[-_ERRORS:]

    def awaited(self) -> list[str]:
        """Return the nodes for which the next advance waits."""
        nodes = list[str]()
        for number, call in self.open.items():
            if number not in self.held:
                nodes.append(call.node)
        if nodes:
            return nodes
        # Only failures that were held back are open. Now the script is to be told these.
        return [call.node for call in self.open.values()]

    def keep_open(self, numbers: Iterable[int]) -> None:
        """Forget the open calls that the script does not wait for any more."""
        kept = dict[int, OpenCall]()
        for number in numbers:
            if number in self.open:
                kept[number] = self.open[number]
        self.open = kept
        self.held = [number for number in self.held if number in kept]


class Snapshots:
    """Where the latest sessions wait that this worker has advanced."""

    def __init__(self) -> None:
        self._kept = BoundedCache[tuple[str, str], Snapshot](
            MAX_KEPT_SNAPSHOTS_BYTES, Snapshot.size
        )

    def keep(self, run_prefix: str, digest: str, snapshot: Snapshot) -> None:
        """Keep where a session waits that is stored as `digest`."""
        self._kept.put((run_prefix, digest), snapshot)

    def find(self, run_prefix: str, digest: str) -> Snapshot | None:
        """Return where the session waits that is stored as `digest`, if this
        worker has advanced it.
        """
        return self._kept.get((run_prefix, digest))


def _cut(line: str) -> str:
    excess = len(line) - MAX_LOGGED_CHARACTERS
    if excess <= 0:
        return line
    return f"{line[:MAX_LOGGED_CHARACTERS]}… ({excess:,} more characters)"


class Counts:
    """How often a session has made equal calls. Lookups are in memory; what is stored anew at an
    advance is short, and O(log n) a call in all: older counts lie in bodies of their own, each
    longer than all that follow it.
    """

    def __init__(self, session: Session, older: list[dict[str, int]]) -> None:
        self._session = session
        self._older = older

    @classmethod
    async def of(cls, session: Session, library: ArtifactReader, run_prefix: str) -> "Counts":
        """Return the counts of a session. Raises BodyMissing, StoreUnavailable."""
        older = list[dict[str, int]]()
        for digest, _ in session.counted:
            older.append(await library.shared(run_prefix, digest))
        return cls(session, older)

    def next(self, call: str) -> int:
        """Return which of the equal calls this one is, from 1 on."""
        count = 1
        for table in (self._session.counts, *reversed(self._older)):
            if call in table:
                count = table[call] + 1
                break
        self._session.counts[call] = count
        return count

    def put_away(self) -> bytes | None:
        """Move the counts to a body of their own once they are many, and return it."""
        session = self._session
        if len(session.counts) < _TAIL:
            return None
        merged: dict[str, int] = session.counts
        while session.counted and session.counted[-1][1] <= len(merged):
            session.counted.pop()
            merged = {**self._older.pop(), **merged}
        body = encode(merged, canonical=True)
        session.counts = {}
        session.counted = [*session.counted, (digest_of(body), len(merged))]
        return body


def end_of(context: NodeContext, node: str, key: str) -> Fed | None:
    """Return how a call ended, None if it is still open."""
    call = context.call
    assert isinstance(call, ProgramNodeCall)
    at = call.ends.get(node, 0)
    if node in call.refs:
        return Fed(key, call.refs[node], at=at)
    if node not in call.lost:
        return None
    status, error = call.lost[node]
    return Fed(key, "", status, error or "", at)


def ended_of(session: Session, end: Fed, shape: Shape, size: int, value: Any) -> Ended:
    """Return what a script is told of a call; a person who skips a call answers it with None."""
    if end.status not in ("succeeded", "skipped"):
        kind, _, message = end.error.partition(": ")
        if not message:
            kind = "RuntimeError"
            message = end.error or f"the call was {end.status}"
        return Ended(error=(kind, message))
    if shape == "ref" and end.ref:
        return Ended(Ref.to(end.ref, value))
    if size > MAX_VALUE_BYTES:
        limit = (
            f"a script reads at most {MAX_VALUE_BYTES:,}. Have the tool return less, or declare "
            "it `large`"
        )
        return Ended(error=("ValueError", f"the result has {size:,} bytes; {limit}"))
    if session.read > MAX_READ_BYTES:
        limit = f"{MAX_READ_BYTES:,} bytes. Have tools return less, or declare them `large`"
        return Ended(
            error=("MemoryError", f"the results that the script has read are more than {limit}")
        )
    return Ended(value)


async def load(library: ArtifactReader, run_prefix: str, digest: str) -> Session:
    """Return a stored session. Raises BodyMissing, StoreUnavailable."""
    return Session.model_validate(await library.value(run_prefix, digest))


async def begin(session: Session, library: ArtifactReader, context: NodeContext) -> None:
    """Give a program the time at which it first began, in this run or in one that it forks: so its
    clock goes on from there until a call is made anew. Raises StoreUnavailable, and ProgramFailed
    in a fork of a run in which calls were known in another way: it would make all of them again.
    """
    assert isinstance(context.call, ProgramNodeCall)
    name, prefix = f"began {session.key}", context.run_prefix
    found = await library.noted(prefix, name)
    if found is None:
        at = context.call.ends.get(session.key, 0)
        origins = list[dict[str, Any]]()
        for home in origins_of(context):
            noted = await library.noted(home, name)
            if noted:
                origins.append(noted)
        for noted in origins:
            if noted.get("keys") != _KEYS:
                raise ProgramFailed(_OTHER_KEYS)
        found = {"clock": at, "runs": [[0, prefix]], "keys": _KEYS}
        if origins:
            latest = origins[0]
            found["clock"] = latest["clock"]
            found["runs"] = [*latest["runs"], [at, prefix]]
        await library.note(prefix, name, found)
    session.skipped = list(context.call.failed)
    for home in origins_of(context):
        session.skipped += await library.noted(home, _failed(session.key)) or ()
    session.clock = found["clock"]
    runs = [(since, run) for since, run in found["runs"]]
    if len(runs) > 1:
        session.runs = runs
        session.since, _ = runs[-1]


async def note_told(
    library: ArtifactReader,
    run_prefix: str,
    session: Session,
    ends: Iterable[tuple[str, int, bool]],
) -> None:
    """Note, for forks, when calls ended as an advance tells its script: by the key of each, with
    that time, and whether it has been moved from the time that its worker says. What an attempt
    has noted that was killed does not count: the run goes by the times that it tells last.
    Raises StoreUnavailable.
    """

    async def note(name: str, at: int, is_moved: bool) -> None:
        if is_moved or (session.retold and await library.noted(run_prefix, name) is not None):
            await library.note(run_prefix, name, at, again=True)

    notes = [note(told_at(key), at, is_moved) for key, at, is_moved in ends]
    await asyncio.gather(*notes)


async def note_failures(
    library: ArtifactReader,
    run_prefix: str,
    session: Session,
    failed: Iterable[OpenCall],
    succeeded: Iterable[OpenCall],
) -> None:
    """Note, for forks, calls that do not write and have failed or were given up, and not any more
    those that have succeeded when they were run again. Raises StoreUnavailable.
    """
    known = dict.fromkeys(session.failed)
    for call in succeeded:
        known.pop(call.key[:KEY_CHARACTERS], None)
    for call in failed:
        if not call.writes and len(known) < MAX_NOTED_FAILURES:
            known[call.key[:KEY_CHARACTERS]] = None
    if list(known) == session.failed:
        return
    session.failed = list(known)
    await library.note(run_prefix, _failed(session.key), session.failed, again=True)


async def recall_failures(library: ArtifactReader, run_prefix: str, session: Session) -> None:
    """Have a program that runs again, or goes on from an earlier wait, keep what was noted of it
    before. Raises StoreUnavailable.
    """
    session.failed = await library.noted(run_prefix, _failed(session.key)) or []


def _failed(key: str) -> str:
    """Return the name under which the failed calls of a program are noted."""
    return f"failed {key}"


def told_before(session: Session, context: NodeContext) -> list[tuple[str, int, bool]]:
    """Return that of all calls of which a script is told as an advance begins."""
    assert isinstance(context.call, ProgramNodeCall)
    moved = context.call.moved
    ends = context.call.ends
    told = list[tuple[str, int, bool]]()
    for call in session.open.values():
        if call.node in ends:
            told.append((call.key, ends[call.node], call.node in moved))
    return told


def takes_over(session: Session, context: NodeContext) -> bool:
    """Whether the program of a fork still stands where it did in the runs that this one forks:
    until it makes a call anew, what it calls ends in the order in which it ended there.
    """
    assert isinstance(context.call, ProgramNodeCall)
    if not session.runs:
        return False
    latest = session.clock
    if session.number > 1:
        latest = max((latest, *context.call.ends.values()))
    return latest < session.since


def origins_of(context: NodeContext) -> list[str]:
    """Return where the runs keep what they store that this run forks, the latest first."""
    namespace = context.run_prefix.rpartition("/")[0]
    return [f"{namespace}/{origin}" for origin in context.call.origins]
