"""Cancelling a task runs its finally, which may call tools."""
import asyncio

log = []


async def work():
    try:
        log.append("begin")
        await asyncio.sleep(100)
    except asyncio.CancelledError as error:
        log.append(f"cancelled {error.args}")
        await write(path="state.md", text="stopped")
        raise
    finally:
        log.append("finally")


async def main():
    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError:
        log.append("seen")
    return [log, task.cancelled(), task.done(), asyncio.current_task() is not task]
