"""Attribute, type, index, name and zero errors have Python's own words."""


async def main():
    said = []
    tries = [
        lambda: "x".push(1),
        lambda: 1 + "a",
        lambda: [][1],
        lambda: {}["k"],
        lambda: 1 / 0,
        lambda: int("x"),
        lambda: len(3),
        lambda: (lambda a: a)(),
        lambda: [1, 2].index(3),
        lambda: next(iter([])),
        lambda: float("x"),
        lambda: "a".join([1]),
        lambda: {[]: 1},
        lambda: range(3)[5],
        lambda: dict([1]),
        lambda: sorted([1, "a"]),
        lambda: max([]),
        lambda: chr(-1),
        lambda: "%d" % "a",
        lambda: "{}".format(),
    ]
    for attempt in tries:
        try:
            attempt()
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    print(*said, sep="\n")
    raise said.nothing
