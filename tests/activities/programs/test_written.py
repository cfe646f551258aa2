"""Programs as people write Python, each against the same script in plain asyncio, in time that passes at once."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doubles.plain_asyncio import fakes, plainly, traced_fakes

from sennit.testing import run

POLL = '''
"""Waits until a job is done."""
import asyncio
from datetime import datetime


class JobFailed(Exception):
    pass


async def finished(job: str, every: float = 30):
    while True:
        state = await job_state(job=job)
        if state == "failed":
            raise JobFailed(f"{job} failed")
        if state == "done":
            return job
        await asyncio.sleep(every)


async def main() -> dict:
    start = datetime.now()
    jobs = await asyncio.gather(finished("a"), finished("b", every=5), finished("bad"), return_exceptions=True)
    took = (datetime.now() - start).total_seconds()
    return {"jobs": [str(job) for job in jobs], "failed": isinstance(jobs[2], JobFailed), "minutes": round(took / 60)}
'''
LIMITED = '''
"""Asks at most three at a time, with a pause behind each."""
import asyncio


async def main(queries: list[str], most: int = 3) -> list:
    limit = asyncio.Semaphore(most)
    busy, peak = 0, 0

    async def one(query: str) -> str:
        nonlocal busy, peak
        async with limit:
            busy += 1
            peak = max(peak, busy)
            try:
                found = await search(query=query)
                await asyncio.sleep(0.5)
                return found["text"]
            finally:
                busy -= 1

    texts = await asyncio.gather(*(one(query) for query in queries))
    return [texts, peak, busy]
'''
NINE = '''
"""Waits until nine, and then sends the report."""
from datetime import datetime, timedelta
import asyncio


async def main() -> list:
    now = datetime.now()
    nine = now.replace(hour=9, minute=0, second=0, microsecond=0)
    if nine < now:
        nine += timedelta(days=1)
    await asyncio.sleep((nine - now).total_seconds())
    report = await llm("Write the report.")
    return [report, datetime.now().strftime("%H:%M")]
'''
UNTIL = '''
"""Waits until nine, and then until half past nine."""
from datetime import datetime, timedelta


async def main() -> list:
    nine = datetime.now().replace(hour=9, minute=0, second=0, microsecond=0)
    await sleep_until(nine)
    first = datetime.now().strftime("%H:%M")
    await sleep_until((nine + timedelta(minutes=30)).isoformat())
    return [first, datetime.now().strftime("%H:%M")]
'''
RETRY = '''
"""Tries again what fails, waiting longer each time."""
import asyncio
from typing import Any, Awaitable, Callable


async def retry(times: int, function: Callable[..., Awaitable[Any]], *args: Any, delay: float = 1.0) -> Any:
    for attempt in range(1, times + 1):
        try:
            return await function(*args)
        except (RuntimeError, TimeoutError):
            if attempt == times:
                raise
            await asyncio.sleep(delay * 2**attempt)


async def load(name: str) -> str:
    return (await flaky(name=name)).upper()


async def main() -> list:
    good = await retry(3, load, "a")
    try:
        await retry(2, load, "never")
    except RuntimeError as error:
        return [good, str(error)]
'''
DECORATED = '''
"""Tries again by a decorator."""
import asyncio
import functools


def retried(times: int):
    def around(function):
        @functools.wraps(function)
        async def inner(*args, **kwargs):
            for left in reversed(range(times)):
                try:
                    return await function(*args, **kwargs)
                except RuntimeError:
                    if not left:
                        raise
                    await asyncio.sleep(1)

        return inner

    return around


@retried(times=3)
async def load(name: str, loud: bool = False) -> str:
    found = await flaky(name=name)
    return found.upper() if loud else found


async def main() -> list:
    return await asyncio.gather(load("a"), load("b", loud=True))
'''
DISPATCH = '''
"""Sends each ticket to who knows of it."""
import asyncio


async def bug(text: str) -> str:
    return await llm(f"Reproduce: {text}")


async def wish(text: str) -> str:
    found = await search(query=text)
    return await llm(f"Answer: {found['text']}")


HANDLERS = {"bug": bug, "wish": wish}


async def handle(ticket: dict) -> str:
    handler = HANDLERS.get(ticket["kind"])
    if handler is None:
        return "nobody"
    return await handler(ticket["text"])


async def main(tickets: list[dict]) -> list[str]:
    return await asyncio.gather(*map(handle, tickets))
'''
VOTE = '''
"""Asks until one answer cannot be overtaken."""
import asyncio
from collections import Counter


async def main(question: str, most: int = 9) -> dict:
    votes = Counter()
    pending = {asyncio.create_task(llm(f"{question} {number}")) for number in range(most)}
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        votes.update(task.result() for task in done)
        if max(votes.values()) > most // 2:
            break
    for task in pending:
        task.cancel()
    winner, count = votes.most_common(1)[0]
    return {"winner": winner, "count": count, "asked": sum(votes.values())}
'''
CRAWL = '''
"""Reads pages from a first one on, at most so many, with some workers."""
import asyncio


async def main(start: str, most: int = 6, workers: int = 3) -> list[str]:
    queue = asyncio.Queue()
    seen = {start}
    pages = {}

    async def work():
        while True:
            url = await queue.get()
            try:
                page = await fetch(url=url)
                pages[url] = page["title"]
                for link in page["links"]:
                    if link not in seen and len(seen) < most:
                        seen.add(link)
                        queue.put_nowait(link)
            except RuntimeError:
                pages[url] = None
            finally:
                queue.task_done()

    queue.put_nowait(start)
    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    await queue.join()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return sorted(f"{url}: {title}" for url, title in pages.items())
'''
RELAY = '''
"""Each one goes on where the one before has ended."""
import asyncio


async def run_leg(name: str, before: asyncio.Task | None) -> list[str]:
    begun = await search(query=name)
    said = await before if before else []
    return said + [f"{name}:{begun['text']}"]


async def main(names: list[str]) -> list[str]:
    leg = None
    for name in names:
        leg = asyncio.create_task(run_leg(name, leg))
    return await leg
'''
BEAM = '''
"""Keeps the best few drafts of each round."""
import asyncio
import heapq
from dataclasses import dataclass


@dataclass
class Draft:
    text: str
    score: float = 0.0


async def grow(draft: Draft, number: int) -> Draft:
    text = await llm(f"{draft.text}{'abc'[number]}")
    score = await score_of(text=text)
    return Draft(text, score)


async def main(width: int = 2, rounds: int = 3) -> str:
    beam = [Draft("")]
    for _ in range(rounds):
        grown = await asyncio.gather(*[grow(draft, n) for draft in beam for n in range(3)])
        beam = heapq.nlargest(width, grown, key=lambda draft: draft.score)
    return beam[0].text
'''
PRODUCER = '''
"""One reads, two write."""
import asyncio

DONE = object()


async def produce(queue: asyncio.Queue, names: list[str]) -> None:
    for name in names:
        await queue.put(await search(query=name))
    await queue.put(DONE)


async def consume(queue: asyncio.Queue, found: list[str]) -> None:
    while (item := await queue.get()) is not DONE:
        found.append(await llm(item["text"]))
    await queue.put(DONE)


async def main(names: list[str]) -> list[str]:
    queue, found = asyncio.Queue(maxsize=2), []
    await asyncio.gather(produce(queue, names), consume(queue, found), consume(queue, found))
    return sorted(found)
'''
GROUP = '''
"""All or nothing, and says who was to blame."""
import asyncio


class Unfit(Exception):
    def __init__(self, name: str, reason: str):
        super().__init__(f"{name} is unfit: {reason}")
        self.name = name
        self.reason = reason


async def checked(name: str, log: list[str]) -> str:
    try:
        found = await search(query=name)
        if len(name) == 3:
            raise Unfit(name, "three letters")
        await asyncio.sleep(5)
        return found["text"]
    except asyncio.CancelledError:
        log.append(f"{name} was stopped")
        raise
    finally:
        log.append(f"{name} is over")


async def main(names: list[str]) -> dict:
    log, blame = [], None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(checked(name, log)) for name in names]
    except* Unfit as errors:
        blame = errors.exceptions[0]
    if blame is not None:
        return {"blame": blame.name, "reason": blame.reason, "log": log}
    return {"texts": [task.result() for task in tasks], "log": log}
'''
FALLBACK = '''
"""Takes the quick answer where the good one is late."""
import asyncio


async def answer(question: str, seconds: float) -> str:
    try:
        return await asyncio.wait_for(llm(f"slowly {question}"), seconds)
    except asyncio.TimeoutError:
        return await llm(f"quickly {question}")


async def main(question: str) -> list[str]:
    return await asyncio.gather(answer(question, 1), answer(question, 100))
'''
BLAMED = '''
"""Own exceptions with fields, raised side by side."""
import asyncio


class NotReady(Exception):
    def __init__(self, job: str, after: float):
        super().__init__("not ready")
        self.job, self.after = job, after


async def look(job: str, after: float) -> str:
    await search(query=job)
    raise NotReady(job, after)


async def main() -> list:
    ends = await asyncio.gather(look("aa", 1.5), look("bb", 2.5), search(query="c"), return_exceptions=True)
    late = [[end.job, end.after] for end in ends if isinstance(end, NotReady)]
    tasks = [asyncio.create_task(look("d", 3)), asyncio.create_task(look("e", 4))]
    await asyncio.wait(tasks)
    caught = []
    for task in tasks:
        try:
            await task
        except NotReady as error:
            caught.append([error.job, task.exception().after])
    return [late, caught]
'''
CIRCUIT = '''
"""Stops asking a service that fails, and tries it again later."""
import asyncio
from datetime import datetime, timedelta


class CircuitOpen(Exception):
    pass


class Breaker:
    def __init__(self, most: int, rest: float):
        self.most = most
        self.rest = rest
        self.failures = 0
        self.until = None

    async def call(self, function, **kwargs):
        if self.until and datetime.now() < self.until:
            raise CircuitOpen(f"open until {self.until:%H:%M:%S}")
        try:
            value = await function(**kwargs)
        except RuntimeError:
            self.failures += 1
            if self.failures >= self.most:
                self.until = datetime.now() + timedelta(seconds=self.rest)
            raise
        self.failures, self.until = 0, None
        return value


async def main() -> list:
    breaker = Breaker(most=2, rest=60)
    said = []
    for _ in range(6):
        try:
            said.append(await breaker.call(flaky, name="cc"))
        except CircuitOpen as error:
            said.append("open")
            await asyncio.sleep(60)
        except RuntimeError:
            said.append("failed")
    return said
'''
HEDGED = '''
"""Asks a second model if the first is slow, and takes who is first."""
import asyncio


async def late(seconds: float, prompt: str) -> str:
    await asyncio.sleep(seconds)
    return await llm(prompt)


async def main(prompt: str) -> str:
    tasks = [asyncio.create_task(llm(f"slowly {prompt}")), asyncio.create_task(late(2, f"quickly {prompt}"))]
    try:
        for first in asyncio.as_completed(tasks):
            return await first
    finally:
        for task in tasks:
            task.cancel()
'''
BATCHES = '''
"""In batches, with a pause between them."""
import asyncio
from itertools import islice


def batches(items, size):
    items = iter(items)
    while batch := list(islice(items, size)):
        yield batch


async def main(names: list[str]) -> list:
    found = []
    for number, batch in enumerate(batches(names, 2)):
        if number:
            await asyncio.sleep(10)
        found += await asyncio.gather(*[search(query=name) for name in batch])
    return [each["text"] for each in found]
'''
PROGRESS = '''
"""Says how far it is while it works."""
import asyncio


async def report(done: list, total: int, said: list) -> None:
    while len(done) < total:
        said.append(f"{len(done)}/{total}")
        await asyncio.sleep(1)


async def main(names: list[str]) -> list:
    done, said = [], []
    reporter = asyncio.create_task(report(done, len(names), said))
    for name in names:
        done.append(await search(query=name))
        await asyncio.sleep(0.7)
    await reporter
    return said
'''
CACHED = '''
"""Asks once for what several want."""
import asyncio


class Cache:
    def __init__(self):
        self._tasks = {}
        self.asked = 0

    async def get(self, key: str) -> str:
        if key not in self._tasks:
            self.asked += 1
            self._tasks[key] = asyncio.create_task(search(query=key))
        return (await self._tasks[key])["text"]


async def main(names: list[str]) -> list:
    cache = Cache()
    texts = await asyncio.gather(*[cache.get(name) for name in names])
    return [texts, cache.asked]
'''
CONTEXT = '''
"""Takes a lease, and gives it back whatever happens."""
import asyncio


class LeaseLost(Exception):
    def __init__(self, name: str):
        super().__init__(f"the lease of {name} is lost")
        self.name = name


class Lease:
    def __init__(self, name: str, log: list):
        self.name = name
        self.log = log

    async def __aenter__(self):
        await search(query=self.name)
        self.log.append(f"takes {self.name}")
        return self

    async def __aexit__(self, kind, error, traceback):
        self.log.append(f"gives {self.name} back")
        return False


async def work(name: str, log: list) -> str:
    async with Lease(name, log) as lease, asyncio.timeout(5):
        found = await llm(f"work with {lease.name}")
        if name == "bb":
            raise LeaseLost(lease.name)
        return found


async def main() -> list:
    log = []
    try:
        await work("a", log)
        await work("bb", log)
    except LeaseLost as error:
        log.append(error.name)
    return log
'''
EVENTS = '''
"""Begins when all have said that they are ready."""
import asyncio


async def member(name: str, ready: list, everybody: asyncio.Event, total: int) -> str:
    await search(query=name)
    ready.append(name)
    if len(ready) == total:
        everybody.set()
    await everybody.wait()
    return f"{name} after {ready[-1]}"


async def main(names: list[str]) -> list[str]:
    ready, everybody = [], asyncio.Event()
    return await asyncio.gather(*[member(name, ready, everybody, len(names)) for name in names])
'''
SAGA = '''
"""Undoes in reverse order what was done before a step failed."""
import asyncio


class StepFailed(Exception):
    pass


async def main() -> list:
    undo, log = [], []
    try:
        for name in ["a", "bb", "never"]:
            try:
                log.append(await flaky(name=name))
            except RuntimeError as error:
                raise StepFailed(name) from error
            undo.append(name)
    except StepFailed as error:
        while undo:
            name = undo.pop()
            await search(query=name)
            log.append(f"undid {name}")
        log.append(f"because of {error}")
    return log
'''
MAPPED = '''
"""Maps and reduces, with what failed beside what did not."""
import asyncio
from operator import itemgetter


async def score(name: str) -> dict:
    try:
        async with asyncio.timeout(20):
            return {"name": name, "score": await score_of(text=await flaky(name=name))}
    except RuntimeError as error:
        return {"name": name, "error": str(error)}


async def main(names: list[str]) -> dict:
    rows = await asyncio.gather(*[score(name) for name in names])
    good = sorted((row for row in rows if "score" in row), key=itemgetter("score"), reverse=True)
    return {"best": good[0]["name"], "failed": [row["name"] for row in rows if "error" in row]}
'''
DEADLINE = '''
"""Does what it can in a minute."""
import asyncio


async def main(names: list[str]) -> dict:
    found, left = {}, list(names)
    try:
        async with asyncio.timeout(2):
            while left:
                found[left[0]] = (await search(query=left[0] * 5))["text"]
                left.pop(0)
    except TimeoutError:
        pass
    return {"found": found, "left": left}
'''
NAMES = ["a", "bb", "ccccc", "ddd", "eeee"]
TICKETS = [{"kind": "bug", "text": "it fails"}, {"kind": "wish", "text": "dark"}, {"kind": "?", "text": ""}]
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "polls a job": (POLL, {}),
    "limits the rate": (LIMITED, {"queries": NAMES}),
    "waits until nine": (NINE, {}),
    "waits until a time": (UNTIL, {}),
    "retries": (RETRY, {}),
    "retries by a decorator": (DECORATED, {}),
    "dispatches": (DISPATCH, {"tickets": TICKETS}),
    "votes and stops early": (VOTE, {"question": "who"}),
    "crawls": (CRAWL, {"start": "/"}),
    "relays": (RELAY, {"names": NAMES}),
    "searches by a beam": (BEAM, {}),
    "produces and consumes": (PRODUCER, {"names": NAMES}),
    "falls back": (FALLBACK, {"question": "why"}),
    "raises side by side": (BLAMED, {}),
    "breaks a circuit": (CIRCUIT, {}),
    "hedges": (HEDGED, {"prompt": "go"}),
    "works in batches": (BATCHES, {"names": NAMES}),
    "reports progress": (PROGRESS, {"names": NAMES}),
    "asks once": (CACHED, {"names": [*NAMES, "a", "bb"]}),
    "holds a lease": (CONTEXT, {}),
    "begins together": (EVENTS, {"names": NAMES}),
    "undoes": (SAGA, {}),
    "maps and reduces": (MAPPED, {"names": [*NAMES, "never"]}),
    "ends in time": (DEADLINE, {"names": NAMES}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_program_gives_what_it_gives_under_asyncio(name: str) -> None:
    script, inputs = WRITTEN[name]
    found = plainly(script, inputs)
    assert run(script, fakes(), **inputs) == found
    assert found not in (None, [], {})


TEXT = (Path(__file__).parent / "corpora" / "asyncio.txt").read_text()
_, *CORPUS = re.split(r"^#### (\w+)$", TEXT, flags=re.MULTILINE)
ASYNCIO = dict(zip(CORPUS[::2], CORPUS[1::2], strict=True))


@pytest.mark.parametrize("name", ASYNCIO)
def test_what_is_written_for_asyncio_does_the_same(name: str) -> None:
    """Also when it begins its calls. Those that begin at once may be in any order, as those of `wait` are."""
    plain: list[Any] = []
    traced: list[Any] = []
    found = json.loads(json.dumps(plainly(ASYNCIO[name], {}, traced_fakes(plain))))
    assert json.loads(json.dumps(run(ASYNCIO[name], traced_fakes(traced)))) == found
    assert sorted(traced) == sorted(plain)


def test_a_group_does_all_or_nothing() -> None:
    """Under asyncio the error comes in a group of errors."""
    found = run(GROUP, fakes(), names=NAMES)
    stopped = [f"{name} {what}" for name in ("a", "bb", "eeee", "ccccc") for what in ("was stopped", "is over")]
    assert (found["blame"], found["reason"]) == ("ddd", "three letters")
    assert found["log"][0] == "ddd is over"
    assert sorted(found["log"][1:]) == sorted(stopped)
    assert len(run(GROUP, fakes(), names=["a", "bb"])["texts"]) == 2
