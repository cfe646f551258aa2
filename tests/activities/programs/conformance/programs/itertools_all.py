"""Itertools in chains, lazily."""
import itertools as it
import operator


async def main():
    seen = []

    def noted(numbers):
        for number in numbers:
            seen.append(number)
            yield number

    taken = list(it.islice(filter(lambda number: number % 2, noted(it.count(1))), 3))
    a, b = it.tee("abc")
    return [
        taken,
        seen,
        list(it.chain.from_iterable([[1], [2, 3]])),
        [(key, list(group)) for key, group in it.groupby("aabbba")],
        list(it.accumulate([1, 2, 3, 4], operator.mul)),
        list(it.product("ab", [1, 2])),
        list(it.combinations("abc", 2)),
        list(it.permutations([1, 2, 3], 2))[:4],
        list(it.zip_longest("ab", "c", fillvalue="-")),
        list(it.pairwise([1, 4, 9])),
        list(it.starmap(pow, [(2, 3), (3, 2)])),
        [list(it.takewhile(str.isalpha, "ab1c")), list(it.dropwhile(str.isalpha, "ab1c"))],
        [next(a), list(a), list(b)],
        list(it.compress("abcd", [1, 0, 1, 0])),
    ]
