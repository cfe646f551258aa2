"""The error of a helper, two frames down, ends the program."""


def parsed(text):
    return int(text.strip())


async def total(path):
    page = await read(path=path)
    return sum(parsed(word) for word in page["text"].split())


async def main():
    print("reading")
    await total("rivers/nile.md")
