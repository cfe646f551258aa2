"""Timeouts cut calls off, and what is behind them goes on."""
import asyncio


async def slowly(seconds, value):
    await asyncio.sleep(seconds)
    return value


async def main():
    said = []
    for seconds in (0.5, 5):
        try:
            said.append(await asyncio.wait_for(slowly(seconds, "in time"), timeout=2))
        except asyncio.TimeoutError:
            said.append("late")
    try:
        async with asyncio.timeout(1) as limit:
            await slowly(3, 0)
    except TimeoutError:
        said.append(limit.expired())
    task = asyncio.create_task(slowly(1, "kept"))
    try:
        await asyncio.wait_for(asyncio.shield(task), 0.2)
    except TimeoutError:
        said.append(await task)
    async with asyncio.timeout(None) as limit:
        limit.reschedule(asyncio.get_running_loop().time() + 9)
        said.append(await slowly(2, "moved"))
    return said
