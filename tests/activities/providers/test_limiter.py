"""Back-pressure: calls wait in line for their turn, and one failure slows the others for a while, never for ever."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from sennit.activities.limits import MAX_PRESSURE, MAX_PUT_OFFS
from sennit.activities.providers.errors import BadReply, ModelTimeout, RateLimited, SchemaMismatch, ServerFailed
from sennit.activities.providers.limiter import (
    HALF_LIFE,
    HELD_SECONDS,
    LIMITED_HALF_LIFE,
    LIVELY_SECONDS,
    Limiter,
    ProviderBusy,
)
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.throttle import Throttle
from sennit.testing.clock import VirtualLoop


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test)


def fast() -> Limiter:
    """Return a limiter whose pace is no bound."""
    return Limiter("openai", Throttle(10_000.0))


async def fail(limiter: Limiter, error: ProviderError) -> ProviderError:
    with pytest.raises(type(error)):
        async with limiter.admitted():
            raise error
    return error


async def waited(limiter: Limiter) -> float:
    """Return how long a call waits until it starts, however often it is put off."""
    loop = asyncio.get_running_loop()
    began, returns = loop.time(), False
    while True:
        try:
            async with limiter.admitted(put_offs=int(returns)):
                return loop.time() - began
        except ProviderBusy as busy:
            returns = True
            await asyncio.sleep(busy.retry_after or 0.0)


@asynccontextmanager
async def running(limiter: Limiter, calls: int) -> AsyncIterator[None]:
    """Let so many calls run during the block; how they end proves nothing of the provider."""
    with suppress(_Over):
        async with AsyncExitStack() as stack:
            for _ in range(calls):
                await stack.enter_async_context(limiter.admitted())
            yield
            raise _Over


class _Over(Exception):
    pass


async def room(limiter: Limiter) -> int:
    """Return how many calls of a hundred may start within a tenth of a second."""
    started: list[int] = []
    end = asyncio.Event()

    async def call() -> None:
        with suppress(ProviderBusy, _Over):
            async with limiter.admitted():
                started.append(1)
                await end.wait()
                raise _Over

    calls = [asyncio.create_task(call()) for _ in range(100)]
    await asyncio.sleep(0.1)
    count = len(started)
    for each in calls:
        each.cancel()
    end.set()
    await asyncio.gather(*calls, return_exceptions=True)
    return count


@pytest.mark.parametrize(
    ("error", "pressure"),
    [(RateLimited, 2.0), (ServerFailed, 1.0), (ModelTimeout, 1.0), (SchemaMismatch, 0.5), (BadReply, 0.0)],
)
def test_each_failure_has_its_penalty_which_halves(error: type[ProviderError], pressure: float) -> None:
    async def test() -> None:
        limiter = fast()
        await fail(limiter, error("x"))
        assert limiter.pressure == pressure
        await asyncio.sleep(LIMITED_HALF_LIFE if error is RateLimited else HALF_LIFE)
        assert limiter.pressure == pytest.approx(pressure / 2)

    run(test())


def test_no_pressure_is_without_bounds() -> None:
    async def test() -> None:
        limiter = fast()
        for _ in range(50):
            with suppress(ProviderBusy, RateLimited):
                async with limiter.admitted():
                    raise RateLimited("x")
            await asyncio.sleep(0.5)
        assert limiter.pressure <= MAX_PRESSURE

    run(test())


def test_a_rate_limit_holds_the_others_for_as_long_as_the_server_says() -> None:
    async def test() -> None:
        limiter = fast()
        await fail(limiter, RateLimited("x", retryable=True, retry_after=7.0))
        with pytest.raises(ProviderBusy) as busy:
            async with limiter.admitted():
                pass
        assert not busy.value.is_attempt
        assert 7.0 <= (busy.value.retry_after or 0) < 8.0
        assert 7.0 <= await waited(limiter) < 9.0

    run(test())


def test_no_wait_is_longer_than_a_minute() -> None:
    async def test() -> None:
        limiter = fast()
        await fail(limiter, RateLimited("x", retryable=True, retry_after=60.0))
        with pytest.raises(ProviderBusy) as busy:
            async with limiter.admitted():
                pass
        assert (busy.value.retry_after or 0) <= 60.0

    run(test())


def test_a_refusal_uses_up_an_attempt_only_of_a_provider_that_takes_nothing() -> None:
    async def test() -> None:
        limiter = fast()
        alone = await fail(limiter, RateLimited("x", retryable=True))
        assert (alone.is_attempt, alone.retry_after) == (True, None)
        await waited(limiter)
        beside = await fail(limiter, RateLimited("x", retryable=True))
        assert not beside.is_attempt
        assert beside.retry_after is not None
        await asyncio.sleep(LIVELY_SECONDS + 1)
        assert (await fail(limiter, RateLimited("x", retryable=True))).is_attempt

    run(test())


def test_calls_wait_in_line_and_those_whose_turn_is_late_give_their_slot_back() -> None:
    async def test() -> None:
        loop, starts, late = asyncio.get_running_loop(), list[int](), list[float]()
        limiter = Limiter("openai", Throttle(10.0))

        async def call(number: int) -> None:
            try:
                async with limiter.admitted():
                    starts.append(number)
            except ProviderBusy as busy:
                late.append(busy.retry_after or 0.0)

        await asyncio.gather(*(call(number) for number in range(100)))
        assert starts == list(range(len(starts))), "in the order in which they came"
        assert len(starts) == pytest.approx(10 * HELD_SECONDS, abs=3)
        assert len(starts) + len(late) == 100
        assert min(late) > HELD_SECONDS / 2
        assert loop.time() <= HELD_SECONDS + 0.2

    run(test())


def test_a_call_that_comes_back_goes_before_those_that_never_waited() -> None:
    async def test() -> None:
        limiter = Limiter("openai", Throttle(10.0))
        calls = [asyncio.create_task(waited(limiter)) for _ in range(60)]
        await asyncio.sleep(0.1)
        with pytest.raises(ProviderBusy):
            async with limiter.admitted():
                pass
        await asyncio.gather(*calls)
        assert max(call.result() for call in calls) < 8.0

    run(test())


def test_a_call_that_is_cancelled_in_line_leaves_its_turn_to_the_next() -> None:
    async def test() -> None:
        limiter = Limiter("openai", Throttle(10.0))
        calls = [asyncio.create_task(waited(limiter)) for _ in range(10)]
        await asyncio.sleep(0.01)
        for call in calls[1:9]:
            call.cancel()
        assert await calls[9] <= 0.2

    run(test())


def test_after_a_failure_fewer_run_at_once_and_more_again_as_it_is_forgotten() -> None:
    async def test() -> None:
        limiter = fast()
        async with running(limiter, 29):
            await fail(limiter, ServerFailed("x", retry_after=1.0))
        await asyncio.sleep(1.0)
        assert await room(limiter) == 20
        await asyncio.sleep(10 * HALF_LIFE)
        assert await room(limiter) == 100

    run(test())


def test_a_planner_that_failed_alone_leaves_room_for_the_nodes_after_it() -> None:
    async def test() -> None:
        limiter = fast()
        await fail(limiter, ServerFailed("x"))
        await asyncio.sleep(0.25)  # its own next attempt comes then
        assert await room(limiter) > 1
        await asyncio.sleep(4)
        assert await room(limiter) == 100

    run(test())


def test_a_schema_that_was_not_kept_stops_nobody() -> None:
    async def test() -> None:
        limiter = fast()
        for _ in range(10):
            await fail(limiter, SchemaMismatch("x"))
        assert limiter.pressure > 1
        assert await room(limiter) == 100

    run(test())


def test_a_call_that_is_refused_again_and_again_has_its_attempts() -> None:
    """It may be refused for what it is, however many others the provider takes."""

    async def refused(limiter: Limiter, put_offs: int) -> bool:
        error = RateLimited("slow down", retryable=True)
        with pytest.raises(RateLimited):
            async with limiter.admitted(put_offs=put_offs):
                raise error
        return error.is_attempt

    async def main() -> None:
        limiter = fast()
        async with limiter.admitted():
            pass
        found = []
        for put_offs in (0, MAX_PUT_OFFS - 1, MAX_PUT_OFFS):
            await asyncio.sleep(20)
            found.append(await refused(limiter, put_offs))
        assert found == [False, False, True]

    run(main())
