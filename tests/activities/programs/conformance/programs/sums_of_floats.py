"""Sums of floats are those of the same Python."""


async def main() -> list:
    return [sum([0.1] * 10), sum([1e16, 1.0, -1e16])]
