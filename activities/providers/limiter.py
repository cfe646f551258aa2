"""Back-pressure: what one call learns of a provider's state slows the others of this process.

A refusal for the rate changes the pace of all calls, as `throttle` says. Calls wait in line for
their turn, and their slot with them if that comes soon; it is not counted as time of their node. A
call whose turn comes later is refused with ProviderBusy, which frees its slot: it comes back for
its turn and uses up no attempt. So nobody waits here for longer than six seconds, and a call that
comes back goes before those that never waited.

Each other failure adds to a provider's pressure (an error of the server or a timeout 1.0, a schema
that was not kept 0.5), which halves every second. After a failure no call starts for as long as the
server asked, otherwise for a tenth of a second a unit of pressure, so that a slip costs nobody
much. While there is pressure, fewer calls run at once than did when it began: one more for each
that has succeeded since, and not as few as one because one ran alone. A schema that was not kept
says nothing of how much the server bears: it stops nobody.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from heapq import heappop, heappush

from sennit.activities.limits import (
    MAX_PRESSURE,
    MAX_PUT_OFF_SECONDS,
    MAX_PUT_OFFS,
    MAX_WAIT_SECONDS,
)
from sennit.activities.providers.errors import RateLimited, SchemaMismatch
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.throttle import Started, Throttle

HALF_LIFE, LIMITED_HALF_LIFE = 1.0, 10.0
SPREAD = 0.3
"""Seconds over which calls that come back are spread, at least."""
SLIP = 0.1
"""Seconds a unit of pressure that nobody starts after another failure than a rate limit."""
CALM = 0.1
"""Below this pressure there is no bound on the calls at once."""
BORNE = 8
"""Calls at once that a provider is taken to bear as a rule, where fewer ran when it failed."""
HELD_SECONDS = 3.0
"""A call waits here if its turn comes within so many seconds, and twice as long if that
turns out to be wrong.
"""
EARLY = 0.5
"""The part of the time to its turn after which a call comes back: the pace may grow."""
LIVELY_SECONDS = 300.0
"""A provider that has taken a call within so many seconds takes calls, whatever it
refuses: some take 3 a minute.
"""


class ProviderBusy(ProviderError):
    """The call was not made: its provider is busy. It is made later, and no attempt is used up."""

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after=retry_after)
        self.is_attempt = False


class _Pressure:
    """Falls to half in every half-life."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._value, self._measured = 0.0, 0.0

    def at(self, now: float) -> float:
        half_lives = max(0.0, now - self._measured) / self._half_life
        return float(self._value * 0.5**half_lives)

    def add(self, now: float, pressure: float) -> float:
        self._value = min(self.at(now) + pressure, MAX_PRESSURE)
        self._measured = now
        return self._value


class Limiter:
    """Decides when calls of one provider start. Not shared between processes or event loops."""

    def __init__(self, provider: str, throttle: Throttle | None = None) -> None:
        self.provider = provider
        self._throttle = throttle or Throttle()
        # The calls that wait here, in order, and the times at which those that
        # were put off come back.
        self._line: deque[asyncio.Future[Started]] = deque()
        self._away: list[float] = []
        self._timer: asyncio.TimerHandle | None = None
        self._taken_at = float("-inf")
        # The failures that say nothing of a rate.
        self._limits, self._failures = _Pressure(LIMITED_HALF_LIFE), _Pressure(HALF_LIFE)
        self._closed_until = 0.0
        self._peak = 0
        self._failed_calls = 0
        self._succeeded = 0

    @property
    def pressure(self) -> float:
        """How much failures and refusals slow the calls, for people who watch it."""
        now = _now()
        return min(MAX_PRESSURE, self._limits.at(now) + self._failures.at(now))

    @property
    def is_lively(self) -> bool:
        """Whether the provider takes calls these days: then a refusal for its rate says only
        when a call's turn is.
        """
        return _now() - self._taken_at < LIVELY_SECONDS

    @asynccontextmanager
    async def admitted(self, *, put_offs: int = 0) -> AsyncIterator[None]:
        """Run a call inside, when its turn has come; `put_offs` says how often it was put
        off before. Raises ProviderBusy where that takes longer; what goes wrong inside
        slows the calls after it.
        """
        started = await self._turn(returns=put_offs > 0)
        failed_calls, taken = self._failed_calls, False
        try:
            yield
            taken = True
            self._taken_at = _now()
            # One that began before the failure proves nothing.
            self._succeeded += failed_calls == self._failed_calls
        except RateLimited as error:
            self._refused(error, started, put_offs)
            raise
        except ProviderError as error:
            self._failed(error)
            raise
        finally:
            self._throttle.ended(_now(), started, taken=taken)
            self._advance()

    async def _turn(self, *, returns: bool) -> Started:
        """Return when it is the call's turn. Raises ProviderBusy if that is not soon."""
        now = _now()
        if not self._line and self._wait(now) <= 0:
            return self._throttle.start(now)
        ahead = len(self._line)
        if not returns:
            ahead += self._count_away(now)
        if max(self._pause(now), self._throttle.turn(now, ahead)) > HELD_SECONDS:
            raise self._busy(returns=returns)
        place: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        self._advance()
        try:
            async with asyncio.timeout(2 * HELD_SECONDS):
                return await place
        except TimeoutError:
            self._leave(place)
            raise self._busy(returns=True) from None
        except asyncio.CancelledError:
            self._leave(place)
            raise

    def _leave(self, place: "asyncio.Future[Started]") -> None:
        """Give back a place in line, or the turn that had come in the same moment."""
        if place.done() and not place.cancelled():
            self._throttle.take_back(place.result())
        with suppress(ValueError):
            self._line.remove(place)
        self._advance()

    def _advance(self) -> None:
        """Let those in line start whose turn has come, and look again when the next one's comes."""
        now = _now()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._line and (self._line[0].done() or self._wait(now) <= 0):
            place = self._line.popleft()
            if not place.done():
                place.set_result(self._throttle.start(now))
        if self._line:
            self._timer = asyncio.get_running_loop().call_later(self._wait(now), self._advance)

    def _wait(self, now: float) -> float:
        """Return after how many seconds to look again whether a call may start;
        0 if it may start now.
        """
        pressure = self._failures.at(now)
        most = max(1, int((self._peak + self._succeeded) / (1 + pressure)))
        wait = max(self._closed_until - now, 0.0)
        if self._peak and pressure >= CALM and self._throttle.running >= most:
            wait = max(wait, SPREAD)
        return max(wait, self._throttle.wait(now))

    def _pause(self, now: float) -> float:
        """Return how long no call starts, however few run."""
        return max(self._closed_until - now, self._throttle.pause(now))

    def _busy(self, *, returns: bool) -> ProviderBusy:
        """Return the refusal of a call that comes back for its turn."""
        wait = self._put_off(returns=returns)
        why = f"{self._throttle.rate:.3g} calls a second; tried again in {wait:.1f} s"
        return ProviderBusy(f"{self.provider} is busy: {why}", retryable=True, retry_after=wait)

    def _put_off(self, *, returns: bool) -> float:
        """Return when a call comes back for its turn. The pace may change until then, so
        that is not too far away.
        """
        now = _now()
        ahead, away = len(self._line), self._count_away(now)
        if returns:
            # It comes back in the midst of those that are away: nobody knows in which order.
            paced = self._throttle.paced_turn(now, ahead)
            freed = self._throttle.freed_turn(ahead + away // 2)
            turn = max(paced, freed)
        else:
            turn = self._throttle.turn(now, ahead + away)
        wait = max(self._pause(now), min(EARLY * turn, MAX_PUT_OFF_SECONDS))
        wait += SPREAD * random.random()  # noqa: S311
        heappush(self._away, now + wait)
        return min(wait, MAX_WAIT_SECONDS)

    def _count_away(self, now: float) -> int:
        """Return how many calls were put off and have not come back."""
        while self._away and self._away[0] <= now:
            heappop(self._away)
        return len(self._away)

    def _refused(self, error: RateLimited, started: Started, put_offs: int) -> None:
        """A refusal says only when the call's turn is, where the provider takes others: it is no
        attempt of the call. One that is refused again and again may be refused for what it is.
        """
        now = _now()
        self._throttle.refused(now, started, error.retry_after)
        self._limits.add(now, error.pressure)
        error.is_attempt = not self.is_lively or put_offs >= MAX_PUT_OFFS
        if not error.is_attempt:
            wait = self._put_off(returns=True)
            error.retry_after = max(error.retry_after or 0.0, wait)

    def _failed(self, error: ProviderError) -> None:
        if not error.pressure:
            return
        now = _now()
        if self._failures.at(now) < CALM:
            self._peak = 0
        pressure = self._failures.add(now, error.pressure)
        if isinstance(error, SchemaMismatch):
            return
        self._peak = max(self._peak, self._throttle.running, BORNE)
        self._failed_calls, self._succeeded = self._failed_calls + 1, 0
        pause = error.retry_after or pressure * SLIP
        self._closed_until = max(self._closed_until, now + min(pause, MAX_WAIT_SECONDS))


def _now() -> float:
    return asyncio.get_running_loop().time()
