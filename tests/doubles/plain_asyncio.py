"""A program under asyncio alone, with fakes that take time, in time that passes at once."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sennit.testing.clock import VirtualLoop


def fakes() -> dict[str, Callable[..., Any]]:
    """What the programs call; each call takes a time of its own."""
    asked: dict[str, int] = {}

    def count(name: str) -> int:
        asked[name] = asked.get(name, 0) + 1
        return asked[name]

    async def search(query: str) -> dict[str, str]:
        await asyncio.sleep(0.1 * len(query) + 0.013)
        return {"text": f"on {query}"}

    async def job_state(job: str) -> str:
        await asyncio.sleep(0.1)
        rounds = count(job)
        return ("failed" if job == "bad" else "done") if rounds > 4 else "runs"

    async def flaky(name: str) -> str:
        await asyncio.sleep(0.1 * len(name))
        if name == "never" or (count(name) < 3 and name != "a"):
            raise ServerFailed(f"{name} is away")
        return f"got {name}"

    async def llm(prompt: str) -> str:
        await asyncio.sleep(30 if prompt.startswith("slowly") else 0.2 + 0.011 * len(prompt) + ord(prompt[-1]) / 997)
        return prompt if not prompt.startswith("who") else "ann" if int(prompt[-1]) % 3 else "bob"

    async def fetch(url: str) -> dict[str, Any]:
        await asyncio.sleep(0.05 * len(url) + 0.2)
        if url.endswith("2"):
            raise ServerFailed(url)
        return {"title": f"page {url}", "links": [f"{url}{number}" for number in range(4)]}

    async def score_of(text: str) -> float:
        await asyncio.sleep(0.3)
        return sum(map(ord, text)) % 17 + len(text) / 10

    return {each.__name__: each for each in (search, job_state, flaky, llm, fetch, score_of)}


def traced_fakes(trace: list[Any]) -> dict[str, Callable[..., Any]]:
    """What the programs of the corpus call. `trace` gets when each call has begun."""
    asked: dict[str, int] = {}

    def begins(*call: Any) -> int:
        trace.append((round(asyncio.get_running_loop().time(), 3), *map(str, call)))
        asked[call[-1]] = asked.get(call[-1], 0) + 1
        return asked[call[-1]]

    async def slow(name: str, seconds: float) -> str:
        begins("slow", name)
        await asyncio.sleep(seconds)
        return name

    async def fail(name: str, seconds: float) -> None:
        begins("fail", name)
        await asyncio.sleep(seconds)
        raise ServerFailed(f"{name} is down")

    async def flaky(name: str) -> str:
        count = begins("flaky", name)
        await asyncio.sleep(0.3)
        if count < 3:
            raise ServerFailed(f"{name} is away")
        return f"got {name}"

    async def state(job: str) -> str:
        count = begins("state", job)
        await asyncio.sleep(0.1)
        return "runs" if count < 4 or job == "never" else "failed" if job == "bad" else "done"

    async def links(url: str) -> list[str]:
        begins("links", url)
        await asyncio.sleep(0.2 + sum(map(ord, url)) % 7 / 10 + len(url) * 0.013)
        if url.endswith("bb"):
            raise ServerFailed(url)
        return [f"{url}{letter}" for letter in "ab"] if len(url) < 4 else []

    async def num(n: int) -> int:
        begins("num", n)
        await asyncio.sleep(1 + n * 7 % 5)
        return n

    async def score(text: str) -> int:
        begins("score", text)
        await asyncio.sleep(0.5 + len(text) / 100 + ord(text[-1]) / 1000)
        return sum(place * ord(letter) for place, letter in enumerate(text, 1)) % 17

    return {each.__name__: each for each in (slow, fail, flaky, state, links, num, score)}


class ServerFailed(Exception):
    """What a tool fails with."""


def plainly(script: str, inputs: dict[str, Any], tools: dict[str, Callable[..., Any]] | None = None) -> Any:
    """Return what a script returns under asyncio alone, with these tools or with `fakes`."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2026, 1, 1, tzinfo=tz) + timedelta(seconds=asyncio.get_running_loop().time())

    async def sleep_until(time: datetime | str) -> None:
        until = datetime.fromisoformat(time) if isinstance(time, str) else time
        await asyncio.sleep((until - Clock.now()).total_seconds())

    def told(fake: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await fake(*args, **kwargs)
            except ServerFailed as error:
                raise RuntimeError(f"ServerFailed: {error}") from None

        return call

    scope: dict[str, Any] = {name: told(fake) for name, fake in (tools or fakes()).items()}
    scope |= {"sleep_until": sleep_until, "sleep": asyncio.sleep, "now": Clock.now}
    exec(script, scope)
    scope["datetime"] = Clock
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scope["main"](**inputs))
