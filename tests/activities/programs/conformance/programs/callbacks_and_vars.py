"""Done callbacks, context variables, call_soon and futures."""
import asyncio
import contextvars

request = contextvars.ContextVar("request", default="none")


async def handle(name):
    token = request.set(name)
    await search(query=name, k=1)
    seen = request.get()
    request.reset(token)
    return [seen, request.get()]


async def main():
    log = []
    task = asyncio.create_task(handle("a"))
    task.add_done_callback(lambda ended: log.append(ended.result()))
    other = await handle("b")
    await task
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, 5)
    loop.call_later(2, log.append, "later")
    value = await future
    await asyncio.sleep(3)
    return [log, other, value, request.get()]
