"""Async generators, async comprehensions and anext."""


async def pages(names):
    for name in names:
        try:
            page = await read(path=f"rivers/{name}.md")
        except DocumentNotFound as error:
            yield {"name": name, "error": str(error)}
        else:
            yield {"name": name, "size": len(page["text"])}


async def sizes(source):
    async for page in source:
        if "size" in page:
            yield page["size"]


async def main():
    found = [page async for page in pages(["nile", "zzz", "rhine"])]
    by_name = {page["name"]: page.get("size") async for page in pages(["danube"])}
    source = sizes(pages(["nile", "nope", "danube"]))
    first = await anext(source)
    rest = [size async for size in source]
    return [found, by_name, first, rest, await anext(source, "none")]
