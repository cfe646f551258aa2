"""Back-pressure: what one call learns of a provider's state slows the others of this process.

Each failure adds to a provider's pressure (a rate limit 2.0, missing capacity 1.5, a timeout 1.0, a schema that was
not kept 0.5), which halves every ten seconds. After a failure none starts for as long as the server asked, else for a
second a unit of pressure. While there is pressure, fewer calls run at once than did when it began: one more for each
that has succeeded since, and not as few as one because one ran alone. A schema that was not kept says nothing of how
much the server bears: it stops nobody. A call that may not start now is refused, which frees its slot; it uses up no
attempt.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from activities.http.client import LONGEST_WAIT
from activities.providers.errors import SchemaMismatch
from activities.providers.model import ProviderError

HALF_LIFE = 10.0
MOST_PRESSURE = 10.0
CALM = 0.1
"""Below this pressure there is no bound on the calls at once."""
BORNE = 8
"""Calls at once that a provider is taken to bear as a rule, where fewer ran when it failed."""

Clock = Callable[[], float]


class ProviderBusy(ProviderError):
    """The call was not made: its provider is busy. It is made later, and no attempt is used up."""


class Limiter:
    """Decides whether a call of one provider may start now. Not shared between processes or event loops."""

    def __init__(self, provider: str, clock: Clock | None = None) -> None:
        self.provider = provider
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._pressure = 0.0
        self._measured = 0.0
        self._closed_until = 0.0
        self._running = 0
        self._peak = 0
        self._failures = 0
        self._succeeded = 0

    @property
    def pressure(self) -> float:
        """The pressure now."""
        return float(self._pressure * 0.5 ** (max(0.0, self._clock() - self._measured) / HALF_LIFE))

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Run a call inside. Raises ProviderBusy when it may not start now; a failure inside adds its pressure."""
        self._admit()
        self._running += 1
        failures = self._failures
        try:
            yield
            self._succeeded += failures == self._failures  # one that began before the failure proves nothing
        except ProviderError as error:
            self._failed(error)
            raise
        finally:
            self._running -= 1

    def _admit(self) -> None:
        pressure, now = self.pressure, self._clock()
        most = max(1, int((self._peak + self._succeeded) / (1 + pressure)))
        crowded = self._peak and pressure >= CALM and self._running >= most
        if now >= self._closed_until and not crowded:
            return
        wait = max(self._closed_until - now, 0.0) + 0.1 + random.random() * max(0.5, pressure)  # noqa: S311 - spreads
        why = f"pressure {pressure:.1f}; tried again in {wait:.1f} s"
        raise ProviderBusy(f"{self.provider} is busy: {why}", retryable=True, retry_after=min(wait, LONGEST_WAIT))

    def _failed(self, error: ProviderError) -> None:
        if not error.pressure:
            return
        if self.pressure < CALM:
            self._peak = 0
        self._pressure = min(self.pressure + error.pressure, MOST_PRESSURE)
        self._measured = self._clock()
        if isinstance(error, SchemaMismatch):
            return
        self._peak = max(self._peak, self._running, BORNE)
        self._failures, self._succeeded = self._failures + 1, 0
        pause = error.retry_after or (self._pressure if self._pressure >= 1 else 0.0)
        self._closed_until = max(self._closed_until, self._measured + min(pause, LONGEST_WAIT))
