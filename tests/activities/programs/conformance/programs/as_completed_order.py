"""as_completed, wait and the order in which calls end."""
import asyncio


async def nap(name, seconds):
    await asyncio.sleep(seconds)
    if name == "bad":
        raise RuntimeError("bad nap")
    return name


async def main():
    naps = [nap("c", 3), nap("a", 1), nap("b", 2)]
    order = [await done for done in asyncio.as_completed(naps)]
    tasks = {asyncio.create_task(nap(name, seconds), name=name) for name, seconds in (("x", 1), ("bad", 2), ("y", 3))}
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    names = [sorted(task.get_name() for task in done), sorted(task.get_name() for task in pending)]
    for task in pending:
        task.cancel()
    left = await asyncio.gather(*pending, return_exceptions=True)
    return [order, names, [type(each).__name__ for each in left]]
