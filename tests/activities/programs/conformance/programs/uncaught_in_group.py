"""The error of a TaskGroup is that of its first task that failed."""
import asyncio


async def check(seconds):
    await asyncio.sleep(seconds)
    raise LookupError(f"after {seconds}")


async def main():
    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2):
            group.create_task(check(seconds))
