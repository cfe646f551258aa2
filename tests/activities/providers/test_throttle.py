"""The pace of calls against simulated providers, in virtual time: it is used in full, hardly exceeded, and recovers."""

from collections import Counter

import pytest
from doubles.limited_provider import Provider, at_once, rate, simulate

from sennit.activities.providers.limiter import Limiter
from sennit.activities.providers.throttle import BURST, LEAST_RATE, Started, Throttle

CALLS = 100
IDEAL = 9.5
SEEDS = range(2)


def most_within(starts: list[float], seconds: float) -> int:
    """Return the most starts in any window of so many seconds."""
    ordered, first, most = sorted(starts), 0, 0
    for last, start in enumerate(ordered):
        while ordered[first] <= start - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("hint", [True, False])
@pytest.mark.parametrize("refusal", [0.01, 0.05, 0.2])
def test_a_rate_is_used_and_few_calls_are_refused(seed: int, workers: int, hint: bool, refusal: float) -> None:
    """Ten calls a second with bursts of ten: 1.3 times the ideal time with Retry-After, 1.6 times without."""
    ended = simulate(Provider(refusal=refusal), CALLS, limit=rate(10, 10, hint=hint), workers=workers, seed=seed)
    assert ended.seconds <= IDEAL * (1.3 if hint else 1.6)
    assert ended.requests <= 1.2 * CALLS
    assert max(ended.attempts) <= 1, "only a refusal before the first call was taken"


@pytest.mark.parametrize("seconds", [0.5, 10.0])
def test_a_bound_on_the_calls_at_once_is_used_and_few_calls_are_refused(seconds: float) -> None:
    ended = simulate(Provider(seconds), 200, limit=at_once(5))
    assert ended.seconds <= 1.5 * 200 / 5 * seconds
    assert ended.requests <= 1.5 * 200
    assert max(ended.attempts) <= 1


@pytest.mark.parametrize(
    ("per_second", "burst", "calls"), [(1, 1, 30), (2, 2, 60), (10, 1, 100), (100, 100, 1000), (0.05, 3, 12)]
)
@pytest.mark.parametrize("workers", [1, 3])
def test_no_call_starves_whatever_the_rate(per_second: float, burst: int, calls: int, workers: int) -> None:
    ended = simulate(Provider(), calls, limit=rate(per_second, burst), workers=workers)
    ideal = (calls - burst) / per_second + 0.5
    assert ended.seconds <= 2.5 * ideal * workers
    assert max(ended.attempts) <= 4


@pytest.mark.parametrize(("calls", "most"), [(100, 3.0), (300, 5.0), (1000, 8.0)])
def test_a_server_without_a_limit_is_soon_used_in_full(calls: int, most: float) -> None:
    assert simulate(Provider(), calls).seconds <= most


@pytest.mark.parametrize("per_second", [0.5, 2.0, 10.0, 50.0])
def test_a_declared_rate_is_met_and_never_exceeded_by_more_than_a_burst(per_second: float) -> None:
    provider, calls = Provider(), round(30 * per_second)
    ended = simulate(provider, calls, make=lambda: Limiter("openai", Throttle(per_second)))
    assert ended.seconds <= calls / per_second / 0.95 + 0.5
    for seconds in (1.0, 5.0, 20.0):
        assert most_within(provider.starts, seconds) <= per_second * seconds + BURST


def test_a_declared_rate_that_is_too_high_is_slowed_down_as_any_other() -> None:
    ended = simulate(Provider(), CALLS, limit=rate(10, 10), make=lambda: Limiter("openai", Throttle(40.0)))
    assert ended.seconds <= 1.3 * IDEAL
    assert ended.requests <= 1.2 * CALLS


def refuse_all(throttle: Throttle, since: float, until: float) -> float:
    """Let a server refuse every call for a while. Returns when."""
    now = since
    while now < until:
        now += throttle.wait(now) + 1e-6
        started = throttle.start(now)
        throttle.refused(now + 0.05, started, None)
        throttle.ended(now + 0.05, started, taken=False)
        now += 0.05
    return now


def take_all(throttle: Throttle, since: float, until: float) -> list[float]:
    """Let a server take every call at once for a while. Returns when they started."""
    now, starts = since, list[float]()
    while now < until:
        now += throttle.wait(now) + 1e-6
        starts.append(now)
        throttle.ended(now, throttle.start(now), taken=True)
    return starts


def test_the_pace_recovers_after_a_server_took_nothing_for_long() -> None:
    throttle = Throttle()
    take_all(throttle, 0.0, 2.0)
    before = throttle.rate
    now = refuse_all(throttle, 2.0, 300.0)
    assert throttle.rate == pytest.approx(LEAST_RATE)
    starts = take_all(throttle, now, now + 90.0)
    in_seconds = Counter(int(start - starts[0]) for start in starts)
    assert max(in_seconds.values()) > before / 10


def test_a_refusal_without_a_hint_stops_nobody_for_a_second() -> None:
    throttle = Throttle()
    take_all(throttle, 0.0, 1.0)
    started = throttle.start(1.0)
    throttle.refused(1.05, started, None)
    throttle.ended(1.05, started, taken=False)
    assert throttle.wait(1.05) < 0.5


def test_a_hint_of_a_second_is_for_the_refused_call_and_a_longer_one_for_all() -> None:
    for hint, least, most in ((1.0, 0.0, 0.5), (7.0, 7.0, 7.0)):
        throttle = Throttle()
        take_all(throttle, 0.0, 1.0)
        started = throttle.start(1.0)
        throttle.refused(1.0, started, hint)
        throttle.ended(1.0, started, taken=False)
        assert least <= throttle.wait(1.0) <= most


def test_refusals_of_one_round_trip_slow_down_once() -> None:
    throttle = Throttle()
    take_all(throttle, 0.0, 1.0)
    together = [throttle.start(1.0) for _ in range(6)]
    rates = list[float]()
    for started in together:
        throttle.refused(1.1, started, None)
        rates.append(throttle.rate)
    assert len(set(rates)) == 1


def test_only_so_many_run_as_did_at_the_first_refusal_and_one_more_is_tried_later() -> None:
    throttle = Throttle()
    running = [throttle.start(0.0) for _ in range(4)]
    throttle.refused(0.1, throttle.start(0.0), None)
    throttle.ended(0.1, Started(0.0, 4), taken=False)
    assert (len(running), throttle.width) == (4, 4)
    assert throttle.wait(0.9) > 0
    assert throttle.wait(1.2) == 0
    tried = throttle.start(1.2)
    throttle.refused(1.3, tried, None)
    throttle.ended(1.3, tried, taken=False)
    assert throttle.width == 4
    assert throttle.wait(2.5) > 0, "the next try comes after twice the time"
    assert throttle.wait(3.4) == 0
