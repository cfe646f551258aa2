"""A lease is written by `async with` alone."""


class Lease:
    def __init__(self, path: str):
        self.path = path

    async def __aenter__(self):
        await write(path=self.path, text="locked")
        return self

    async def __aexit__(self, *exc):
        await write(path=self.path, text="free")


async def main() -> int:
    async with Lease("a.lock"):
        return 1
