"""Tools that do not end as they should: they exit, block their loop, or hold their thread for ever."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from sennit.activities.limits import MAX_LOST_THREADS
from sennit.activities.toolbox import threads
from sennit.activities.toolbox.errors import ToolExit
from sennit.activities.toolbox.threads import LoopBlocked, ToolThreads

LONG = 30.0  # seconds; nothing here takes that long unless it hangs


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> ToolThreads:
    """Threads of a process, whose watch looks often."""
    monkeypatch.setattr(threads, "TICK", 0.02)
    monkeypatch.setattr(threads, "GRACE", 0.2)
    return ToolThreads()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Blocks who waits for it; open at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


async def on_loop(pool: ToolThreads, work: Any, limit: asyncio.Timeout | None = None, **more: Any) -> Any:
    async with asyncio.timeout(LONG):
        return await pool.run_async(work, more.pop("tool", "tool"), "node n", limit, **{"repeatable": True, **more})


async def answer() -> str:
    return "fine"


async def exits() -> None:
    raise SystemExit(3)


async def exits_in_a_task_it_waits_for() -> None:
    await asyncio.gather(exits(), asyncio.sleep(LONG))


async def interrupts() -> None:
    raise KeyboardInterrupt


async def cancels_itself() -> None:
    raise asyncio.CancelledError


def exits_at_once() -> None:
    raise SystemExit(3)


def stops() -> None:
    next(iter(()))


def cancels() -> None:
    raise asyncio.CancelledError


def waits_for_cancelled_work() -> None:
    work: Future[None] = Future()
    work.cancel()
    work.result()


@pytest.mark.parametrize("work", [exits, exits_in_a_task_it_waits_for, interrupts, cancels_itself])
async def test_a_coroutine_that_exits_fails_its_call_only(pool: ToolThreads, work: Callable[[], Any]) -> None:
    with pytest.raises(ToolExit, match=r"it raised (SystemExit|KeyboardInterrupt|CancelledError)\("):
        await on_loop(pool, work)
    assert await on_loop(pool, answer) == "fine"


@pytest.mark.parametrize("work", [exits_at_once, stops, cancels, waits_for_cancelled_work])
async def test_a_function_that_exits_fails_its_call_only(pool: ToolThreads, work: Callable[[], Any]) -> None:
    async with asyncio.timeout(LONG):
        with pytest.raises(ToolExit, match=r"it raised (SystemExit|StopIteration|CancelledError)\("):
            await pool.run(work, "tool")
        assert await pool.run(lambda: "fine", "tool") == "fine"


async def test_a_task_left_behind_that_exits_hurts_nobody(pool: ToolThreads, caplog: pytest.LogCaptureFixture) -> None:
    left: list[asyncio.Task[None]] = []

    async def leaves_a_task() -> str:
        left.append(asyncio.create_task(exits()))
        return "done"

    other = asyncio.create_task(on_loop(pool, lambda: asyncio.sleep(0.1, "other")))
    assert await on_loop(pool, leaves_a_task) == "done"
    assert (await other, await on_loop(pool, answer)) == ("other", "fine")
    assert "a tool left a task behind that ended with SystemExit(3)" in caplog.text
    assert isinstance(left[0].exception(), SystemExit)


async def test_a_call_that_blocks_its_loop_stops_nobody_else_and_no_other_clock(
    pool: ToolThreads, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit of the other call is a moment; it stands still while the loop is blocked."""

    async def blocks() -> str:
        gate.wait(LONG)
        return "late"

    async def with_limit() -> Any:
        async with asyncio.timeout(0.8) as limit:
            return await on_loop(pool, lambda: asyncio.sleep(0.01, "in time"), limit)

    blocking = asyncio.create_task(on_loop(pool, blocks, tool="blocks"))
    await asyncio.sleep(0)
    other = asyncio.create_task(with_limit())
    async with asyncio.timeout(LONG):
        while pool.blocked_seconds < 1.2:  # this loop turns: at the least its sleeps end
            await asyncio.sleep(0.01)
    assert not other.done()
    gate.set()
    assert (await blocking, await other) == ("late", "in time")
    assert "blocks of node n blocks the event loop of all async tools, at " in caplog.text


async def test_a_call_given_up_while_it_blocks_is_named_and_the_others_go_on_elsewhere(
    pool: ToolThreads, gate: threading.Event
) -> None:
    begun = 0

    async def waits() -> str:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0 if begun > 2 else LONG)
        return "again"

    async def blocks_in_a_task() -> None:
        await asyncio.gather(asyncio.to_thread(str), blocks())

    async def blocks() -> None:
        gate.wait(LONG)

    read = asyncio.create_task(on_loop(pool, waits))
    write = asyncio.create_task(on_loop(pool, waits, repeatable=False))
    async with asyncio.timeout(LONG):
        while begun < 2:
            await asyncio.sleep(0.01)
        with pytest.raises(LoopBlocked, match=r"it blocked the event loop of all async tools for .* plain function"):
            async with asyncio.timeout(0.8) as limit:
                await on_loop(pool, blocks_in_a_task, limit, tool="blocks")
        assert await read == "again"
        with pytest.raises(LoopBlocked, match="is blocked by blocks of node n"):
            await write
        assert pool.lost == 1
        gate.set()
        while pool.lost:
            await asyncio.sleep(0.01)


async def test_a_loop_blocked_by_what_a_tool_left_behind_is_given_up(pool: ToolThreads, gate: threading.Event) -> None:
    async def leaves_a_callback() -> str:
        asyncio.get_running_loop().call_later(0.01, gate.wait, LONG)
        return "done"

    assert await on_loop(pool, leaves_a_callback) == "done"
    await asyncio.sleep(0.1)
    assert await on_loop(pool, answer) == "fine"
    assert pool.lost == 1


async def test_a_cancelled_coroutine_may_tidy_up_first(pool: ToolThreads) -> None:
    tidy = False

    async def tidies() -> None:
        nonlocal tidy
        try:
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(0.01)
            tidy = True

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await on_loop(pool, tidies)
    assert tidy


async def test_threads_that_are_given_up_count_as_lost_until_they_end(pool: ToolThreads, gate: threading.Event) -> None:
    async with asyncio.timeout(LONG):
        for _ in range(MAX_LOST_THREADS):
            assert pool.exhausted is None
            with suppress(TimeoutError):
                async with asyncio.timeout(0.001):
                    await pool.run(lambda: gate.wait(LONG), "slow")
        assert pool.exhausted == "50 threads are lost in calls that do not end, most of them of slow"
        assert await pool.run(lambda: "fine", "tool") == "fine"
        gate.set()
        while pool.lost:
            await asyncio.sleep(0.01)
    assert pool.exhausted is None
