"""Back-pressure: what one call learns of a provider's state slows the others of this process.

Each failure adds to a provider's pressure (a rate limit 2.0, missing capacity 1.5, a timeout 1.0, a schema that was
not kept 0.5), which halves every ten seconds. While there is pressure, fewer calls run at once; after a failure none
starts for as long as the server asked, else for a second a unit of pressure. A call that may not start now is refused,
which frees its slot; it uses up no attempt.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from activities.providers.errors import LONGEST_WAIT
from activities.providers.model import ProviderError

HALF_LIFE = 10.0
MOST_PRESSURE = 10.0
CALM = 0.1
"""Below this pressure there is no bound on the calls at once."""

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
        self._peak = 1

    @property
    def pressure(self) -> float:
        """The pressure now."""
        return float(self._pressure * 0.5 ** (max(0.0, self._clock() - self._measured) / HALF_LIFE))

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Run a call inside. Raises ProviderBusy when it may not start now; a failure inside adds its pressure."""
        self._admit()
        self._running += 1
        try:
            yield
        except ProviderError as error:
            self._failed(error)
            raise
        finally:
            self._running -= 1

    def _admit(self) -> None:
        pressure, now = self.pressure, self._clock()
        crowded = pressure >= CALM and self._running >= max(1, int(self._peak / (1 + pressure)))
        if now >= self._closed_until and not crowded:
            return
        wait = max(self._closed_until - now, 0.0) + 0.1 + random.random() * max(0.5, pressure)  # noqa: S311 - spreads
        why = f"pressure {pressure:.1f}; tried again in {wait:.1f} s"
        raise ProviderBusy(f"{self.provider} is busy: {why}", retryable=True, retry_after=min(wait, LONGEST_WAIT))

    def _failed(self, error: ProviderError) -> None:
        if not error.pressure:
            return
        calm = self.pressure < CALM
        self._peak = self._running if calm else max(self._peak, self._running)
        self._pressure = min(self.pressure + error.pressure, MOST_PRESSURE)
        self._measured = self._clock()
        pause = error.retry_after or (self._pressure if self._pressure >= 1 else 0.0)
        self._closed_until = max(self._closed_until, self._measured + min(pause, LONGEST_WAIT))
