"""The first error of a gather, by time."""
import asyncio


async def check(seconds):
    await asyncio.sleep(seconds)
    assert seconds < 2, f"{seconds} is too long"
    return seconds


async def main():
    return await asyncio.gather(check(3), check(1), check(2))
