"""Sorting, slices, comprehensions, sets, dicts and unpacking."""
import bisect
import heapq
from operator import attrgetter, itemgetter


async def main():
    rows = [("b", 2), ("a", 2), ("c", 1)]
    items = list(range(10))
    items[2:5] = ["x"]
    del items[-2:]
    merged = {"a": 1, "b": 2} | {"b": 3, "c": 4}
    heap = [5, 1, 4]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    marks = [1, 3, 3, 7]
    bisect.insort(marks, 4)
    left, right = {1, 2, 3}, {3, 4}
    return [
        sorted(rows, key=itemgetter(1, 0)),
        sorted(rows, key=lambda row: (-row[1], row[0])),
        items,
        items[::-2],
        "abcdef"[-4:-1],
        merged,
        [heapq.heappop(heap) for _ in range(2)],
        [marks, bisect.bisect_left(marks, 3)],
        [sorted(left | right), sorted(left & right), sorted(left - right), sorted(left ^ right), left <= {1, 2, 3, 9}],
        [[row[number] for row in rows] for number in range(2)],
        list(zip(*rows)),
        sorted([3 + 0j, 1 + 0j], key=attrgetter("real"))[0].real,
        [max([], default="none"), min("b", "a"), any([]), all([])],
        dict(enumerate("ab", start=5)),
        {**merged, "d": [*range(2), *"x"]},
    ]
