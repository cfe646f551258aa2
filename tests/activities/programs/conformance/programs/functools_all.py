"""Functools: caches, partials, reductions, dispatch, ordering, cached properties."""
import functools


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.singledispatch
def shown(value):
    return f"? {value}"


@shown.register
def _(value: int):
    return f"int {value}"


@shown.register(list)
def _(value):
    return [shown(each) for each in value]


@functools.total_ordering
class Version:
    def __init__(self, text):
        self.parts = tuple(map(int, text.split(".")))

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts

    @functools.cached_property
    def major(self):
        calls.append(self.parts)
        return self.parts[0]


calls = []


def logged(function):
    @functools.wraps(function)
    def call(*args):
        return [function.__name__, function(*args)]

    return call


@logged
def twice(x):
    """Double."""
    return 2 * x


async def main():
    version = Version("1.2")
    return [
        [fib(60), fib.cache_info().misses],
        shown([1, "a", [2]]),
        functools.reduce(lambda total, each: total * 10 + each, [1, 2, 3]),
        functools.partial(int, base=2)("101"),
        [version >= Version("1.1"), max([Version("1.10"), version]).parts, version.major + version.major, len(calls)],
        [twice(4), twice.__name__, twice.__doc__],
        sorted(["b", "A"], key=functools.cmp_to_key(lambda x, y: (x.lower() > y.lower()) - (x.lower() < y.lower()))),
    ]
