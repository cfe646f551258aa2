"""A tool's error that nobody catches ends the program, after a cleanup."""


async def main():
    try:
        await read(path="nope.md")
    finally:
        await write(path="log.md", text="ended")
