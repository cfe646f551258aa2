"""Counter, defaultdict, deque, ChainMap, OrderedDict, namedtuple."""
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

Row = namedtuple("Row", "name size", defaults=[0])


async def main():
    words = Counter("the cat the dog the end".split())
    words.subtract(["cat", "cat"])
    groups = defaultdict(list)
    for word in ("pear", "apple", "plum", "fig"):
        groups[word[0]].append(word)
    last = deque(range(10), maxlen=3)
    last.rotate(1)
    order = OrderedDict(a=1, b=2, c=3)
    order.move_to_end("a")
    chain = ChainMap({"a": 1}, {"a": 2, "b": 3})
    row = Row("x")._replace(size=4)
    return [
        words.most_common(2),
        sorted(words.items()),
        dict(+words),
        dict(groups),
        list(last),
        list(order),
        [dict(chain), chain["a"], dict(chain.new_child({"b": 0}))],
        [row, row._asdict(), Row._fields, repr(row)],
    ]
