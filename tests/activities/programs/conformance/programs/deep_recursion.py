"""A recursion that ends, and one that Python stops."""


def depth(tree):
    return 1 + max(map(depth, tree), default=0)


def for_ever(n):
    return for_ever(n + 1) + 1 if n >= 0 else 0


async def main():
    tree = []
    for _ in range(100):
        tree = [tree]
    try:
        for_ever(0)
    except RecursionError as error:
        stopped = type(error).__name__
    return [depth(tree), stopped]
