"""How long calls of tools take, as the workers have measured it: this tells which are
short if nobody says it.

It lies beside the artifacts, in a place that belongs to no run. What is lost
of it is measured again.
"""

import time
from asyncio import timeout
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from sennit.activities.storage.artifacts import ArtifactStore, StoreUnavailable, encode

PLACE: Final = "timings"
"""The prefix below a namespace; no run has this id."""
KEPT_CALLS: Final = 100
"""So many calls count as much as all before them: a tool may become slower or faster."""
PAUSE_SECONDS: Final = 10.0
"""Between two writes of one worker."""
WAIT_SECONDS: Final = 1.0
"""The longest that anything waits for the store on this account."""
NEVER: Final = (0, 0)
"""The entry of a tool that nobody has measured."""
_KEY: Final = "calls"
_Count = Annotated[int, Field(ge=0, le=10**9)]
_TIMES: Final = TypeAdapter(dict[str, tuple[_Count, _Count]])


@dataclass(slots=True)
class Measured:
    """How long a call took, once it has ended."""

    millis: int = 0


class CallTimings:
    """Measures calls in this process. Each entry has how many calls there were, and
    their mean in milliseconds.
    """

    def __init__(self) -> None:
        self._fresh: dict[str, tuple[int, int]] = {}
        self._due: float | None = None

    @contextmanager
    def measure(self, tool: str, version: str) -> Iterator[Measured]:
        """Measure a call, and count it if it ends well."""
        measured = Measured()
        began = time.monotonic()
        yield measured
        measured.millis = ceil(1000 * (time.monotonic() - began))
        self._note(tool, version, measured.millis)

    def _note(self, tool: str, version: str, millis: int) -> None:
        name = _name(tool, version)
        self._fresh[name] = _together(self._fresh.get(name, NEVER), (1, millis))
        if self._due is None:
            self._due = time.monotonic() + PAUSE_SECONDS

    async def flush(self, store: ArtifactStore, namespace: str) -> None:
        """Add what was measured to what all workers know, if it is time to. Two that do it at
        once may lose what is known, and so does a store that is away or slow: nothing waits for
        that, and nothing fails.
        """
        if self._due is None or time.monotonic() < self._due:
            return
        fresh = self._fresh
        self._fresh = {}
        self._due = None
        with suppress(StoreUnavailable, TimeoutError):
            async with timeout(WAIT_SECONDS):
                known = await _known(store, namespace)
                for name, measured in fresh.items():
                    count, mean = known.get(name, NEVER)
                    known[name] = _together((min(count, KEPT_CALLS), mean), measured)
                await store.replace_marker(f"{namespace}/{PLACE}", _KEY, encode(known))

    async def millis(
        self, store: ArtifactStore, namespace: str, tools: dict[str, str]
    ) -> dict[str, int]:
        """Return how long these tools take in these versions, as far as any worker knows."""
        known: dict[str, tuple[int, int]] = {}
        with suppress(StoreUnavailable, TimeoutError):
            async with timeout(WAIT_SECONDS):
                known = await _known(store, namespace)
        measured = {**self._fresh, **known}
        millis: dict[str, int] = {}
        for tool, version in tools.items():
            count, mean = measured.get(_name(tool, version), NEVER)
            if count:
                millis[tool] = max(1, mean)
        return millis


async def _known(store: ArtifactStore, namespace: str) -> dict[str, tuple[int, int]]:
    """Return what all workers know; what cannot be read is measured again.
    Raises StoreUnavailable.
    """
    text = await store.marked(f"{namespace}/{PLACE}", _KEY)
    try:
        if text is None:
            return {}
        return _TIMES.validate_json(text)
    except ValidationError:
        return {}


def _together(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return how many calls there were in all, and how long they took on average."""
    count = one[0] + other[0]
    total = one[0] * one[1] + other[0] * other[1]
    return count, total // count


def _name(tool: str, version: str) -> str:
    return f"{tool} {version}"
