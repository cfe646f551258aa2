"""A decorator retries a call with growing pauses."""
import asyncio
import functools


def retry(times, pause=1):
    def decorate(function):
        @functools.wraps(function)
        async def call(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return await function(*args, **kwargs)
                except HttpError as error:
                    if attempt == times:
                        raise
                    print(f"{function.__name__}: attempt {attempt}: {error}")
                    await asyncio.sleep(pause * 2**attempt)

        return call

    return decorate


@retry(times=4)
async def fetch(url):
    return (await http_get(url=url))["text"]


async def main():
    text = await fetch("https://flaky.example")
    try:
        await fetch("https://down.example")
    except HttpError as error:
        return [text, type(error).__name__, str(error)]
