"""A generator that yields one list again and again."""


def windows(values, n):
    window = []
    for v in values:
        window.append(v)
        if len(window) > n:
            window.pop(0)
        if len(window) == n:
            yield window


async def main() -> list:
    return [sum(w) / 2 for w in windows([1, 2, 3, 4], 2)]
