"""Gather keeps the order of its calls, and returns errors where it is told to."""
import asyncio


async def length(name):
    page = await read(path=f"rivers/{name}.md")
    return len(page["text"])


async def main():
    names = ["nile", "zzz", "rhine", "danube"]
    ends = await asyncio.gather(*map(length, names), return_exceptions=True)
    shown = [end if isinstance(end, int) else f"{type(end).__name__}: {end}" for end in ends]
    try:
        await asyncio.gather(length("nile"), length("yyy"))
    except DocumentNotFound as error:
        first = str(error)
    nested = await asyncio.gather(asyncio.gather(length("nile"), length("rhine")), search(query="Cologne", k=1))
    return [shown, first, nested[0], nested[1]["count"]]
