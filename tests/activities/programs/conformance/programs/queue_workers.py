"""Workers take jobs from a queue until a sentinel."""
import asyncio


async def worker(name, queue, done):
    while True:
        job = await queue.get()
        if job is None:
            queue.task_done()
            return
        found = await search(query=job, k=1)
        done.append([job, found["count"]])
        queue.task_done()


async def main():
    queue = asyncio.Queue(maxsize=2)
    done = []
    workers = [asyncio.create_task(worker(f"w{number}", queue, done)) for number in range(2)]
    for job in ("Nile", "Rhine", "Danube", "Oslo", "zzz"):
        await queue.put(job)
    for _ in workers:
        await queue.put(None)
    await queue.join()
    await asyncio.gather(*workers)
    best = asyncio.PriorityQueue()
    for item in ((3, "c"), (1, "a"), (2, "b")):
        best.put_nowait(item)
    return [done, [best.get_nowait()[1] for _ in range(3)], best.empty(), queue.qsize()]
