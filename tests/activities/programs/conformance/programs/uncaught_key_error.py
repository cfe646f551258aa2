"""A missing key, by its name."""


async def main():
    page = await read(path="rivers/nile.md")
    return page["titel"]
