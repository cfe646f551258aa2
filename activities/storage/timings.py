"""How long calls of tools take, as the workers have measured it: this tells which are short if nobody says it.

It lies beside the artifacts, in a place that belongs to no run. What is lost of it is measured again.
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
_KEY: Final = "calls"
_Count = Annotated[int, Field(ge=0, le=10**9)]
_TIMES: Final = TypeAdapter(dict[str, tuple[_Count, _Count]])


@dataclass(slots=True)
class Measured:
    """How long a call took, once it has ended."""

    millis: int = 0


class CallTimings:
    """Measures calls in this process. Each entry has how many calls there were, and their mean in milliseconds."""

    def __init__(self) -> None:
        self._fresh: dict[str, tuple[int, int]] = {}
        self._due: float | None = None

    @contextmanager
    def measure(self, tool: str, version: str) -> Iterator[Measured]:
        """Measure a call, and count it if it ends well."""
        began, measured = time.monotonic(), Measured()
        yield measured
        measured.millis = ceil(1000 * (time.monotonic() - began))
        self._note(tool, version, measured.millis)

    def _note(self, tool: str, version: str, millis: int) -> None:
        count, mean = self._fresh.get(name := _name(tool, version), (0, 0))
        self._fresh[name] = count + 1, (count * mean + millis) // (count + 1)
        self._due = time.monotonic() + PAUSE_SECONDS if self._due is None else self._due

    async def flush(self, store: ArtifactStore, namespace: str) -> None:
        """Add what was measured to what all workers know, if it is time to. Two that do it at once may lose what is
        known, and so does a store that is away or slow: nothing waits for that, and nothing fails.
        """
        if self._due is None or time.monotonic() < self._due:
            return
        fresh, self._fresh, self._due = self._fresh, {}, None
        with suppress(StoreUnavailable, TimeoutError):
            async with timeout(WAIT_SECONDS):
                known, prefix = await _known(store, namespace), f"{namespace}/{PLACE}"
                for name, (count, mean) in fresh.items():
                    before, earlier = known.get(name, (0, 0))
                    before = min(before, KEPT_CALLS)
                    known[name] = before + count, (before * earlier + count * mean) // (before + count)
                await store.replace_marker(prefix, _KEY, encode(known))

    async def millis(self, store: ArtifactStore, namespace: str, tools: dict[str, str]) -> dict[str, int]:
        """Return how long these tools take in these versions, as far as any worker knows."""
        known: dict[str, tuple[int, int]] = {}
        with suppress(StoreUnavailable, TimeoutError):
            async with timeout(WAIT_SECONDS):
                known = await _known(store, namespace)
        known |= {name: found for name, found in self._fresh.items() if name not in known}
        found = {tool: known.get(_name(tool, version)) for tool, version in tools.items()}
        return {tool: max(1, each[1]) for tool, each in found.items() if each is not None}


async def _known(store: ArtifactStore, namespace: str) -> dict[str, tuple[int, int]]:
    """Return what all workers know; what cannot be read is measured again. Raises StoreUnavailable."""
    text = await store.marked(f"{namespace}/{PLACE}", _KEY)
    try:
        return _TIMES.validate_json(text) if text is not None else {}
    except ValidationError:
        return {}


def _name(tool: str, version: str) -> str:
    return f"{tool} {version}"
