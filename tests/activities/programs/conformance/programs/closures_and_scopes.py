"""Closures, nonlocal, defaults, late binding, walrus, star arguments."""

total = 10


def counter():
    count = 0

    def up(by=1):
        nonlocal count
        count += by
        return count

    return up


def remember(item, seen=[]):
    seen.append(item)
    return list(seen)


def spread(first, /, second, *rest, key, other="o", **more):
    return [first, second, rest, key, other, more]


def reads():
    global total
    total += 1
    return total


async def main():
    up, other = counter(), counter()
    late = [lambda: number for number in range(3)]
    bound = [lambda number=number: number for number in range(3)]
    values = [half for number in range(6) if (half := number // 2) > 0]
    a, *b, (c, d) = 1, 2, 3, (4, 5)
    x = y = []
    x.append(1)
    return [
        [up(), up(5), other()],
        [remember(1), remember(2)],
        [each() for each in late],
        [each() for each in bound],
        values,
        [half, a, b, c, d, y],
        spread(1, 2, 3, 4, key="k", z=9),
        [reads(), reads(), total],
        (lambda *args, **kwargs: [args, kwargs])(*[1], **{"q": 2}),
    ]
