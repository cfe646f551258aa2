"""Back-pressure: one failure slows the others, for a while, and never for ever."""

from contextlib import ExitStack, suppress

import pytest

from sennit.activities.limits import MAX_PRESSURE
from sennit.activities.providers.errors import BadReply, ModelTimeout, RateLimited, SchemaMismatch, ServerFailed
from sennit.activities.providers.limiter import HALF_LIFE, LIMITED_HALF_LIFE, Limiter, ProviderBusy
from sennit.activities.providers.model import ProviderError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> Limiter:
    return Limiter("openai", clock)


def fail(limiter: Limiter, error: ProviderError) -> None:
    with pytest.raises(type(error)), limiter.admitted():
        raise error


def refused(limiter: Limiter) -> float | None:
    """Ask for admission; returns the seconds to wait, or None."""
    try:
        with limiter.admitted():
            return None
    except ProviderBusy as busy:
        return busy.retry_after


@pytest.mark.parametrize(
    ("error", "pressure"),
    [(RateLimited, 2.0), (ServerFailed, 1.0), (ModelTimeout, 1.0), (SchemaMismatch, 0.5), (BadReply, 0.0)],
)
def test_each_failure_has_its_penalty_which_halves(
    limiter: Limiter, clock: Clock, error: type[ProviderError], pressure: float
) -> None:
    fail(limiter, error("x"))
    assert limiter.pressure == pressure
    clock.now += LIMITED_HALF_LIFE if error is RateLimited else HALF_LIFE
    assert limiter.pressure == pytest.approx(pressure / 2)


def test_calm_bounds_nothing(limiter: Limiter) -> None:
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(limiter.admitted())
    assert refused(limiter) is None


def test_one_rate_limit_holds_the_others_for_as_long_as_the_server_says(limiter: Limiter, clock: Clock) -> None:
    fail(limiter, RateLimited("x", retryable=True, retry_after=7.0))
    wait = refused(limiter)
    assert wait is not None
    assert 7.0 < wait < 10.0
    clock.now += 7.0
    assert refused(limiter) is None


def test_no_wait_is_longer_than_a_minute(limiter: Limiter) -> None:
    for _ in range(50):
        limiter._failed(RateLimited("x"))
    assert limiter.pressure == MAX_PRESSURE
    wait = refused(limiter)
    assert wait is not None
    assert wait <= 60.0


class Over(Exception):
    """Ends calls that prove nothing of the provider."""


def room(limiter: Limiter) -> int:
    """Return how many calls of a hundred may start now."""
    count = 0
    with suppress(Over, ProviderBusy), ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(limiter.admitted())
            count += 1
        raise Over
    return count


def succeed(limiter: Limiter, calls: int) -> None:
    for _ in range(calls):
        with limiter.admitted():
            pass


def test_under_pressure_fewer_run_at_once_and_more_again_as_it_falls(limiter: Limiter, clock: Clock) -> None:
    with ExitStack() as stack:
        for _ in range(29):
            stack.enter_context(limiter.admitted())
        fail(limiter, RateLimited("x", retry_after=1.0))
    clock.now += 1.0
    assert room(limiter) == 10
    clock.now += LIMITED_HALF_LIFE
    assert room(limiter) == 15
    clock.now += 5 * LIMITED_HALF_LIFE
    assert room(limiter) == 100


def test_what_succeeds_under_pressure_makes_room_until_the_next_failure(limiter: Limiter, clock: Clock) -> None:
    fail(limiter, RateLimited("x", retry_after=1.0))
    clock.now += LIMITED_HALF_LIFE
    assert room(limiter) == 4
    succeed(limiter, 12)
    assert room(limiter) == 10
    fail(limiter, RateLimited("x", retry_after=1.0))
    clock.now += 1.0
    assert room(limiter) == 2


def test_a_planner_that_failed_alone_leaves_room_for_the_nodes_after_it(limiter: Limiter, clock: Clock) -> None:
    fail(limiter, ServerFailed("x"))
    assert room(limiter) == 0
    clock.now += 0.25  # its own next attempt comes then
    assert room(limiter) > 1
    clock.now += 4
    assert room(limiter) == 100


def test_a_rate_limit_is_remembered_through_other_failures(limiter: Limiter, clock: Clock) -> None:
    limiter._failed(RateLimited("x"))
    limiter._failed(ServerFailed("x"))
    assert limiter.pressure == 3.0
    clock.now += LIMITED_HALF_LIFE
    assert limiter.pressure == 1.5


def test_a_schema_that_was_not_kept_stops_nobody(limiter: Limiter) -> None:
    for _ in range(10):
        fail(limiter, SchemaMismatch("x"))
    assert limiter.pressure > 1
    assert room(limiter) == 100


def test_refusals_come_back_spread_over_time(limiter: Limiter) -> None:
    fail(limiter, RateLimited("x", retry_after=5.0))
    waits = {refused(limiter) for _ in range(50)}
    assert len(waits) == 50
