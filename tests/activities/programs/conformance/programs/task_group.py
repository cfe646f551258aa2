"""A TaskGroup cancels its other tasks when one fails."""
import asyncio

ended = []


async def work(name, fail=False):
    try:
        await search(query=name)
        if fail:
            raise ValueError(f"{name} failed")
        await asyncio.sleep(30)
        return name
    except asyncio.CancelledError:
        ended.append(f"{name} cancelled")
        raise
    finally:
        ended.append(f"{name} ended")


async def main():
    async with asyncio.TaskGroup() as group:
        good = [group.create_task(search(query=name, k=1)) for name in ("Nile", "Rhine")]
    caught = []
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("a"))
            group.create_task(work("b", fail=True))
    except* ValueError as group:
        caught = [str(error) for error in group.exceptions]
    return [[task.result()["count"] for task in good], caught, sorted(ended)]
