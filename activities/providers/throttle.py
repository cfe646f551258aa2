"""How many calls a provider takes, a second and at once, as far as its refusals have shown. Pure:
each method is told the time.

Calls start at a pace. Before the first refusal the pace grows with every call, so that a server
without a limit is soon used in full. A refusal slows it down, once a round trip: whoever started
before the last slow-down could not know of it. Between two refusals the server has taken all that
it takes, so the calls between them bound its rate from both sides; the pace never leaves these
bounds for long. After that the pace grows a little with every call, and faster the longer nobody is
refused. Where it fell because the server took nothing at all, it goes back to half of what it was
with the first call that is taken.

A refusal may also mean that too many run at once. So after the first one only so many run as did
then. A second later one more is tried, then two, then four. A refusal beside more calls than that
ends the try, and the next one comes after twice the time; a refusal beside fewer is about the rate.

This is AIMD with a measured rate, as in the adaptive retries of the AWS SDKs, and a window as
in concurrency-limits.
"""

import math
from collections import deque
from dataclasses import dataclass

from sennit.activities.limits import MAX_CALLS_PER_SECOND, MAX_PROBE_SECONDS

FIRST_RATE = 10.0
"""Calls a second at the beginning. With a refusal 50 ms away, one more is refused for it."""
EAGER = 1.5
"""By how much the pace grows with each call before the first refusal: 100 calls have started
in 1.9 s, 1,000 in 3.4.
"""
FIRST_CALLS = 5
"""Calls at the beginning, beside as many as were taken, of which nobody knows yet whether the
server refuses them. So a refusal that takes long to come is not the first of hundreds.
"""
BURST = 4
"""Calls that start at once after a quiet time: several workers may begin beside each other."""
LATE_CALLS, LATE_SECONDS = 0.5, 0.05
"""What the pace makes up for once a call was refused: without it, each timer that comes
late would slow the pace.
"""
FIRST_SLOWER, MUCH_SLOWER, SLOWER, LEAST_SLOWER = 0.25, 0.5, 0.7, 0.9
"""What is left of the pace after a refusal, within what was measured: much less while little is
known, and a quarter at first, because until the refusal came the pace has doubled.
"""
MEASURED_CALLS = 3
"""Calls taken since the last slow-down from which something is known."""
FASTER, MOST_FASTER = 0.05, 0.25
"""By how much of itself the pace grows a second, and with one call at most."""
LEAST_RATE = 1 / 30
"""Calls a second to a server that takes none: each asks whether it takes some again."""
MEASURED_SECONDS = 5.0
"""How far back a refusal may be that the rate is measured from."""
TAKEN_SECONDS = 1.0
"""A call that was not refused for so long was taken."""
HINT_SECONDS = 1.0
"""A server that counts in whole seconds says one second for the next moment: that counts for
the refused call alone.
"""
MEAN_CALLS = 8
"""Calls over which their time is averaged."""
UNBOUNDED = float("inf")
_ROUNDING = 1e-9


@dataclass(slots=True)
class Started:
    """A call that has started, with so many others running."""

    at: float
    others: int
    is_judged: bool = False


@dataclass(slots=True)
class _Full:
    """A moment at which the server took no more, and how many calls it had taken by then."""

    at: float
    taken: int


class Throttle:
    """Says when calls of one provider may start. `declared` are the calls a second that it takes,
    where that is known: the pace begins with it and is never higher.
    """

    def __init__(self, declared: float | None = None) -> None:
        self._most = (
            MAX_CALLS_PER_SECOND if declared is None else min(declared, MAX_CALLS_PER_SECOND)
        )
        self._is_smooth = declared is not None
        # The pace.
        self.rate = FIRST_RATE if declared is None else self._most
        self._slowed_to = 0.0
        self._target = 0.0
        self._slowed_at = float("-inf")
        self._tokens, self._filled_at = self._burst, 0.0
        self._closed_until = 0.0
        # What the rate is measured from.
        self._taken = 0
        self._judged, self._pending = 0, 0
        self._taken_when_slowed = 0
        self._full: deque[_Full] = deque()
        self._quiet_at = 0.0
        # The calls at once.
        self.running = 0
        self.width = UNBOUNDED
        self._probe_at, self._probe_seconds, self._probe_size = 0.0, TAKEN_SECONDS, 1
        self._unjudged: deque[Started] = deque()
        self._seconds = 0.0

    def wait(self, now: float) -> float:
        """Return after how many seconds a call may start, if none ends until then."""
        self._judge(now)
        wait = self.pause(now)
        if self._is_ramping and self._pending >= FIRST_CALLS + self._judged:
            # The next call is judged in this time at the latest.
            return max(wait, TAKEN_SECONDS / 8)
        if self.running < self.width:
            return wait
        wait = max(wait, self._probe_at - now)
        if self.running < self.width + self._probe_size:
            return wait
        # Those that were tried are judged first.
        return max(wait, TAKEN_SECONDS)

    def pause(self, now: float) -> float:
        """Return how long no call starts, however few run."""
        self._fill(now)
        closed = max(0.0, self._closed_until - now)
        if self._tokens >= 1 - _ROUNDING:
            return closed
        return max(closed, (1 - self._tokens) / self.rate)

    def turn(self, now: float, ahead: int) -> float:
        """Return in about how many seconds a call with so many before it starts."""
        return max(self.paced_turn(now, ahead), self.freed_turn(ahead))

    def paced_turn(self, now: float, ahead: int) -> float:
        """Return the same by the pace alone."""
        if self._is_ramping:
            return self.pause(now) + math.log1p(EAGER * ahead / self.rate) / EAGER
        return self.pause(now) + ahead / self.rate

    def freed_turn(self, ahead: int) -> float:
        """Return the same by the calls alone that have to end before."""
        behind = max(0.0, ahead + 1 + self.running - self.width)
        return behind * self._seconds / self.width

    def start(self, now: float) -> Started:
        """Start a call."""
        self._fill(now)
        if self._tokens < self._burst:
            self._speed_up()
        else:
            # The server has had a quiet time as well, so it may take more than its rate now.
            self._quiet_at = now
        self._tokens -= 1
        self._taken += 1
        started = Started(now, self.running)
        self.running += 1
        self._unjudged.append(started)
        self._pending += 1
        return started

    def take_back(self, started: Started) -> None:
        """A call was started and not made after all."""
        self._settle(started)
        self._taken -= 1
        self._tokens = min(self._burst, self._tokens + 1)
        self.running -= 1

    def ended(self, now: float, started: Started, *, taken: bool) -> None:
        """A call has ended: the server has taken it, or has refused it or failed."""
        self.running -= 1
        if taken:
            self._was_taken(started)
            seconds = now - started.at
            if self._seconds:
                self._seconds += (seconds - self._seconds) / MEAN_CALLS
            else:
                self._seconds = seconds
        self._settle(started)

    def refused(self, now: float, started: Started, hint: float | None) -> None:
        """The server has refused a call for its rate, and asks to wait for `hint` seconds."""
        self._taken -= 1
        for full in self._full:
            full.taken -= started.at < full.at
        self._settle(started)
        if hint is not None and hint > HINT_SECONDS:
            self._closed_until = max(self._closed_until, now + hint)
            self._quiet_at = self._closed_until
        if started.at < self._slowed_at:
            return
        if self.width == UNBOUNDED:
            # Nobody knows yet whether too many calls came in a second, or ran at once.
            self._narrow(now, started.others)
            self._slow_down(now)
        elif started.others >= self.width:
            self._narrow(now, self.width)
        else:
            self._slow_down(now)

    def _slow_down(self, now: float) -> None:
        taken, most = self._measured(now)
        slower = MUCH_SLOWER
        if not self._slowed_to:
            slower = FIRST_SLOWER
        elif self._taken - self._taken_when_slowed >= MEASURED_CALLS:
            slower = SLOWER
        lowered = max(slower * self.rate, taken)
        rate = min(lowered, LEAST_SLOWER * self.rate, most)
        rate = max(rate, LEAST_RATE)
        if self._taken > self._taken_when_slowed:
            self._target = rate
        self.rate, self._slowed_to = rate, rate
        self._slowed_at, self._taken_when_slowed = now, self._taken
        # The server is full: the next call starts when it takes one again.
        self._fill(now)
        self._tokens = min(self._tokens, 0.0)
        self._full.append(_Full(now, self._taken))
        self._is_smooth = True

    def _measured(self, now: float) -> tuple[float, float]:
        """Return the calls a second that the server has taken since it was full, and
        the most that it takes.
        """
        while len(self._full) > 1 and self._full[0].at < now - MEASURED_SECONDS:
            self._full.popleft()
        if not self._full:
            return 0.0, UNBOUNDED
        full = self._full[0]
        seconds = max(now - full.at, 1e-3)
        calls = max(0, self._taken - full.taken)
        if self._quiet_at >= full.at:
            return calls / seconds, UNBOUNDED
        return calls / seconds, (calls + 1) / seconds

    def _speed_up(self) -> None:
        if self._slowed_to:
            gap = 1 / self.rate
            increase = FASTER * gap * self.rate / self._slowed_to
            self.rate *= 1 + min(increase, MOST_FASTER)
        else:
            self.rate += EAGER
        self.rate = min(self.rate, self._most)

    def _narrow(self, now: float, width: float) -> None:
        """Let only so many calls run at once, and try one more later."""
        self.width = max(1.0, width)
        self._probe_at, self._probe_size = now + self._probe_seconds, 1
        self._probe_seconds = min(2 * self._probe_seconds, MAX_PROBE_SECONDS)

    @property
    def _is_ramping(self) -> bool:
        """Whether nobody was refused yet, and no rate is known."""
        return not self._slowed_to and self.rate < self._most

    def _judge(self, now: float) -> None:
        """Find the calls that were not refused in time."""
        while self._unjudged and (
            self._unjudged[0].is_judged or self._unjudged[0].at <= now - TAKEN_SECONDS
        ):
            self._was_taken(self._unjudged.popleft())

    def _settle(self, started: Started) -> None:
        """Note that it is known what the server says to a call."""
        self._pending -= not started.is_judged
        started.is_judged = True

    def _was_taken(self, started: Started) -> None:
        if started.is_judged:
            return
        self._settle(started)
        self._judged += 1
        if started.at >= self._slowed_at and self.rate < self._target / 2:
            self.rate = self._slowed_to = self._target / 2
        if started.others >= self.width:
            self.width = started.others + 1
            self._probe_size *= 2
            self._probe_seconds = TAKEN_SECONDS

    @property
    def _burst(self) -> float:
        """The calls that start at once after a quiet time."""
        if not self._is_smooth:
            return BURST
        return 1.0 + max(LATE_CALLS, LATE_SECONDS * self.rate)

    def _fill(self, now: float) -> None:
        if now > self._filled_at:
            gained = (now - self._filled_at) * self.rate
            self._tokens = min(self._burst, self._tokens + gained)
            self._filled_at = now
