"""How far a session came, and what it takes to go on from there, also in another process."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

from sennit.activities.programs.replay_record import Record
from sennit.activities.programs.values import Call, ScriptError, Sleep, packed, unpacked
from sennit.workflows.plan.bounded_cache import memory_of

PYTHON: Final = ".".join(platform.python_version_tuple()[:2])
"""The version that this worker has of Python: another one may run coroutines in another order."""
_SNAPSHOT_BYTES: Final = 2_000
"""Of a snapshot beside what grows with the calls."""


@dataclass(slots=True)
class Standing:
    """Where a session waits, as far as the worker knows it: the rest is in the record of
    what the script was told.

    `clock` is the time in the script, in milliseconds, `open` are the numbers of its open calls, of
    which those that `sleeps` and those that are `queued` have not begun. The next sleep was over at
    `awaited` when the script last waited. It was told of the ends of so many `writes`. `calls` is a
    digest of all calls so far, `seconds` the processor time that they took, and `python` the
    version that made them.
    """

    clock: int = 0
    open: list[int] = field(default_factory=list)
    sleeps: dict[int, Sleep] = field(default_factory=dict)
    queued: dict[int, Call] = field(default_factory=dict)
    awaited: int = 0
    calls: str = ""
    seconds: float = 0.0
    python: str = PYTHON
    writes: int = 0

    def as_stored(self) -> dict[str, Any]:
        """Return it as JSON."""
        stored = asdict(replace(self, sleeps={}, queued={}))
        stored["sleeps"] = {str(number): list(sleep) for number, sleep in self.sleeps.items()}
        stored["queued"] = []
        for call in self.queued.values():
            args = packed(list(call.args))
            packed_call = replace(call, args=args, kwargs=packed(call.kwargs))
            stored["queued"].append(asdict(packed_call))
        return stored

    @classmethod
    def of_stored(cls, stored: Mapping[str, Any]) -> "Standing":
        """Return what was stored."""
        standing = cls(**stored)
        standing.sleeps = {int(number): Sleep(*sleep) for number, sleep in stored["sleeps"].items()}
        standing.queued = {}
        for packed_call in stored["queued"]:
            args = tuple(unpacked(packed_call["args"]))
            kwargs = unpacked(packed_call["kwargs"])
            call = Call(**{**packed_call, "args": args, "kwargs": kwargs})
            standing.queued[call.number] = call
        return standing

    def copy(self) -> "Standing":
        """Return a copy that stays as it is."""
        return replace(
            self, open=list(self.open), sleeps=dict(self.sleeps), queued=dict(self.queued)
        )


class LiveRun(Protocol):
    """A script in its process, as the interpreter keeps it."""

    @property
    def is_alive(self) -> bool:
        """Whether the script still waits in its process."""


class Start(NamedTuple):
    """How a session began. `arguments` are packed."""

    text: str
    function: str
    arguments: dict[str, Any]
    seed: str
    runs: list[list[Any]]
    clock: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a session waits after so many `advances`. A session goes on from the same snapshot
    as often as one likes.

    `run` is the live one, if there may still be one in a process of this worker. Without it the
    script runs again over its `record`; for that both the start and the whole record must be known.
    """

    standing: Standing
    record: Record
    start: Start | None = None
    run: LiveRun | None = field(default=None, compare=False)
    advances: int = 0

    def size(self) -> int:
        """Return about how many bytes it takes in memory, without the script itself."""
        standing = self.standing
        parts = len(standing.open) + len(standing.sleeps) + 20 * len(standing.queued)
        return _SNAPSHOT_BYTES + 100 * parts + memory_of(self.record.recent)


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a script came. It waits if there is a snapshot; else it ended
    with a value or an error.

    `waits` has the numbers of all calls that are open, ascending; of a script that ended, those
    it never awaited. All sleeps that are over at the same time have one number, which is that
    time below 0; `sleep` is the next of them. `left` are those whose ends the script has not
    been told yet, and `clock` is the time in it when it has ended. `last` is the number of the
    call of whose end the script was told last, and `running` says, if it has failed, whether
    tasks of it had not ended. `printed` is what the script has printed meanwhile, `kept` the
    calls, by name and line, that it has written down and neither awaited nor started, and `took`
    the seconds for which it ran.
    """

    snapshot: Snapshot | None = None
    waits: tuple[int, ...] = ()
    value: Any = None
    error: ScriptError | None = None
    left: tuple[int, ...] = ()
    sleep: Sleep | None = None
    clock: int = 0
    last: int = -1
    running: bool = False
    printed: str = ""
    kept: tuple[tuple[str, int], ...] = ()
    took: float = field(default=0.0, compare=False)


def waiting_at(snapshot: Snapshot) -> Advance:
    """Return an advance in which a script was told nothing: it waits where it waited."""
    standing = snapshot.standing
    sleep = min(standing.sleeps.values(), default=None)
    waits = waits_of(standing.open, standing.sleeps)
    return Advance(snapshot, waits, sleep=sleep)


def waits_of(open_calls: Iterable[int], sleeps: Mapping[int, Sleep]) -> tuple[int, ...]:
    """Return the numbers of all calls that are open, ascending, as `Advance` has them: one for all
    sleeps that are over at the same time.
    """
    numbers = set[int]()
    for number in open_calls:
        sleep = sleeps.get(number)
        numbers.add(number if sleep is None else -sleep.due)
    return tuple(sorted(numbers))
