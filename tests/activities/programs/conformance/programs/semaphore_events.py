"""Semaphores, locks, events, conditions and barriers."""
import asyncio


async def main():
    guard, log, busy, peak = asyncio.Semaphore(2), [], 0, 0

    async def limited(name):
        nonlocal busy, peak
        async with guard:
            busy += 1
            peak = max(peak, busy)
            await search(query=name, k=1)
            busy -= 1
            log.append(name)

    await asyncio.gather(*(limited(name) for name in "abcde"))
    event, condition, items = asyncio.Event(), asyncio.Condition(), []

    async def consumer():
        await event.wait()
        async with condition:
            await condition.wait_for(lambda: len(items) >= 2)
            return list(items)

    async def producer():
        event.set()
        for number in range(3):
            await asyncio.sleep(1)
            async with condition:
                items.append(number)
                condition.notify_all()

    got, _ = await asyncio.gather(consumer(), producer())
    barrier = asyncio.Barrier(2)

    async def meet(name, seconds):
        await asyncio.sleep(seconds)
        place = await barrier.wait()
        return [name, place]

    met = await asyncio.gather(meet("x", 2), meet("y", 1))
    return [log, peak, got, met]
