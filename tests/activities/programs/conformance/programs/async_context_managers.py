"""Async context managers clean up in order, also after errors."""
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress

events = []


@asynccontextmanager
async def locked(path):
    await write(path=path, text="locked")
    events.append(f"+{path}")
    try:
        yield path.upper()
    except KeyError as error:
        events.append(f"saw {error}")
        raise
    finally:
        events.append(f"-{path}")
        await write(path=path, text="")


@contextmanager
def span(name):
    events.append(f"<{name}")
    yield
    events.append(f"{name}>")


async def main():
    with suppress(KeyError):
        async with locked("a") as a, locked("b") as b:
            events.append(a + b)
            raise KeyError("x")
    async with AsyncExitStack() as stack:
        for name in "cd":
            await stack.enter_async_context(locked(name))
        stack.callback(events.append, "callback")
        with span("inner"):
            events.append("in")
    return events
