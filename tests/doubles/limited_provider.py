"""A provider with a limit, and workers whose limiters know nothing of each other, in virtual time."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from sennit.activities.providers.errors import RateLimited
from sennit.activities.providers.limiter import Limiter, ProviderBusy
from sennit.testing.clock import VirtualLoop
from sennit.testing.model_limits import CallRate, CallsAtOnce
from sennit.testing.model_rules import Asked, Reply

DONE = Reply("done")
ASKED = Asked("openai", "test-model", "", (), (), None, stream=False, headers={}, body={})
Limit = CallRate | CallsAtOnce


@dataclass
class Provider:
    """Takes calls of `seconds` as far as its limit allows, and refuses one after `refusal` seconds."""

    seconds: float = 0.5
    refusal: float = 0.05
    running: int = 0
    starts: list[float] = field(default_factory=list)
    limit: Limit | None = None

    async def call(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self.refusal / 2)
        self.starts.append(loop.time())
        self.running += 1
        try:
            reply = self.limit(ASKED) if self.limit is not None else DONE
            if reply.status != DONE.status:
                await asyncio.sleep(self.refusal / 2)
                hint = reply.headers.get("retry-after")
                raise RateLimited("slow down", retryable=True, retry_after=float(hint) if hint else None)
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1


@dataclass
class Ended:
    """What became of all calls: the `seconds` to the end, and the attempts of each that Temporal would count."""

    seconds: float
    requests: int
    attempts: list[int]


def simulate(
    provider: Provider,
    calls: int,
    *,
    limit: Callable[[Provider], Limit] | None = None,
    workers: int = 1,
    make: Callable[[], Limiter] = lambda: Limiter("openai"),
    seed: int = 1,
) -> Ended:
    """Make the calls, as many at once as come, and return when all were made. What is put off comes back to any worker
    a tenth of a second later than it asked.
    """
    chance = random.Random(seed)
    random.seed(seed)
    attempts = [0] * calls

    async def call(place: int, limiters: list[Limiter]) -> None:
        returns = False
        while True:
            limiter = chance.choice(limiters) if returns else limiters[place % workers]
            try:
                async with limiter.admitted(put_offs=int(returns)):
                    await provider.call()
                return
            except (ProviderBusy, RateLimited) as error:
                attempts[place] += error.is_attempt
                returns = returns or not error.is_attempt
                await asyncio.sleep((error.retry_after or 0.25) + chance.uniform(0.05, 0.15))

    async def run() -> Ended:
        if limit is not None:
            provider.limit = limit(provider)
        limiters = [make() for _ in range(workers)]
        await asyncio.gather(*(call(place, limiters) for place in range(calls)))
        return Ended(asyncio.get_running_loop().time(), len(provider.starts), attempts)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def rate(per_second: float, burst: int, *, hint: bool = False) -> Callable[[Provider], Limit]:
    """Return what makes a limit of calls a second, in the time of the loop that runs."""
    return lambda _: CallRate(DONE, per_second, burst, hint=hint, clock=asyncio.get_running_loop().time)


def at_once(most: int) -> Callable[[Provider], Limit]:
    """Return what makes a limit of calls at once."""
    return lambda provider: CallsAtOnce(DONE, most, lambda: provider.running)
