"""Back-pressure: what one call learns of a provider's state slows the others of this process.

Each failure adds to a provider's pressure (a rate limit 2.0, an error of the server or a timeout 1.0, a schema that was
not kept 0.5). It halves every second, or every ten seconds once the rate was limited. After a failure no call starts
for as long as the server asked; otherwise, for a second a unit of pressure if the rate is limited, and for a tenth of
that if not, so that a slip costs nobody much.

While there is pressure, fewer calls run at once than did when it began: one more for each that has succeeded since, and
not as few as one because one ran alone. A schema that was not kept says nothing of how much the server bears: it stops
nobody. A call that may not start now is refused, which frees its slot; it uses up no attempt.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sennit.activities.limits import MAX_PRESSURE, MAX_WAIT_SECONDS
from sennit.activities.providers.errors import RateLimited, SchemaMismatch
from sennit.activities.providers.model import ProviderError

HALF_LIFE, LIMITED_HALF_LIFE = 1.0, 10.0
SPREAD = 0.3
"""Seconds over which refused calls come back, where it is not the rate that is limited."""
SLIP = 0.1
"""Seconds a unit of pressure that nobody starts after another failure than a rate limit."""
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
        self._half_life = HALF_LIFE
        self._closed_until = 0.0
        self._running = 0
        self._peak = 0
        self._failures = 0
        self._succeeded = 0

    @property
    def pressure(self) -> float:
        return float(self._pressure * 0.5 ** (max(0.0, self._clock() - self._measured) / self._half_life))

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
        spread = max(0.5, pressure) if self._half_life == LIMITED_HALF_LIFE else SPREAD
        wait = max(self._closed_until - now, 0.0) + 0.1 + random.random() * spread  # noqa: S311 - spreads
        why = f"pressure {pressure:.1f}; tried again in {wait:.1f} s"
        raise ProviderBusy(f"{self.provider} is busy: {why}", retryable=True, retry_after=min(wait, MAX_WAIT_SECONDS))

    def _failed(self, error: ProviderError) -> None:
        if not error.pressure:
            return
        calm = self.pressure < CALM
        if calm:
            self._peak = 0
        limited = isinstance(error, RateLimited) or (self._half_life == LIMITED_HALF_LIFE and not calm)
        self._pressure = min(self.pressure + error.pressure, MAX_PRESSURE)
        self._measured, self._half_life = self._clock(), LIMITED_HALF_LIFE if limited else HALF_LIFE
        if isinstance(error, SchemaMismatch):
            return
        self._peak = max(self._peak, self._running, BORNE)
        self._failures, self._succeeded = self._failures + 1, 0
        pause = error.retry_after or self._pressure * (1.0 if limited else SLIP)
        self._closed_until = max(self._closed_until, self._measured + min(pause, MAX_WAIT_SECONDS))
