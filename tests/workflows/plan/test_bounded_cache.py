"""A cache never keeps more bytes than it may, whatever is put into it."""

import json
import random
import threading
import tracemalloc
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.bounded_cache import ENTRY_BYTES, BoundedCache, decoded_bytes, memory_of

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda parts: st.lists(parts, max_size=5) | st.dictionaries(st.text(max_size=5), parts, max_size=5),
    max_leaves=30,
)


@given(st.integers(0, 20_000), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9_000))))
def test_it_never_keeps_more_than_its_bound(most: int, puts: list[tuple[int, int]]) -> None:
    cache = BoundedCache[int, bytes](most, len)
    for key, size in puts:
        cache.put(key, bytes(size))
        kept = {each: cache.get(each) for each in range(21) if each in cache}
        counted = sum(ENTRY_BYTES + memory_of(each) + len(value or b"") for each, value in kept.items())
        assert cache.bytes == counted <= most
        assert cache.get(key) == (bytes(size) if key in cache else None)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = BoundedCache[str, bytes](4_000, len)
    for name in ("a", "b", "c"):
        cache.put(name, bytes(700))
    assert cache.get("a") is not None
    cache.put("d", bytes(700))
    assert [name for name in "abcd" if name in cache] == ["a", "c", "d"]


def test_a_value_over_the_bound_is_made_each_time_and_drives_nothing_out() -> None:
    cache, made = BoundedCache[str, bytes](4_000, len), list[str]()

    def make() -> bytes:
        made.append("large")
        return bytes(5_000)

    cache.put("small", b"x")
    assert len(cache.get_or_make("large", make)) == len(cache.get_or_make("large", make)) == 5_000
    assert made == ["large", "large"]
    assert cache.get_or_make("small", lambda: b"y") == b"x"


def test_a_larger_value_of_the_same_key_leaves_no_old_one() -> None:
    cache = BoundedCache[str, bytes](4_000, len)
    cache.put("a", b"old")
    cache.put("a", bytes(5_000))
    assert cache.get("a") is None
    assert cache.bytes == 0


def test_none_is_a_value_too() -> None:
    cache, made = BoundedCache[str, None](4_000), list[int]()

    for number in range(3):
        cache.get_or_make("a", partial(made.append, number))
    assert made == [0]


def test_threads_share_it() -> None:
    cache = BoundedCache[int, bytes](50_000, len)

    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2_000):
            key = chance.randrange(60)
            assert cache.get_or_make(key, partial(bytes, [key])) == bytes([key])

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.bytes <= 50_000
    assert cache.bytes == len(cache) * (cache.bytes // len(cache))


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    lines: tuple[int, ...]


def allocated(make: Any) -> int:
    """Return how many bytes what `make` returns takes. Threads that an earlier test has left may take some meanwhile:
    the least of three counts.
    """
    return min(_allocated(make) for _ in range(3))


def _allocated(make: Any) -> int:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    value = make()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del value
    return size


def test_plain_data_is_measured_with_all_its_parts() -> None:
    def make() -> list[dict[str, Any]]:
        return [{f"k{n}": ("x" * n, n + 1000.5), "place": Place(f"p{n}", (n, n))} for n in range(2_000)]

    taken = allocated(make)
    assert taken <= memory_of(make()) <= 3 * taken


@given(JSON_VALUES)
def test_decoded_json_takes_no_more_than_is_said(value: Any) -> None:
    body = json.dumps([value] * 10, ensure_ascii=False).encode()
    assert allocated(lambda: json.loads(body)) <= decoded_bytes(body)


def test_the_shapes_that_grow_most_are_counted() -> None:
    shapes: list[Any] = [[[]] * 9_000, [{}] * 9_000, [{"a": {}}] * 9_000, {str(n): n for n in range(9_000)}]
    shapes += [[1.5] * 9_000, ["a\U0001f600" * 1_000], [["é" * 3] * 3] * 2_000, [10**40] * 5_000]
    for shape in shapes:
        for text in (json.dumps(shape), json.dumps(shape, ensure_ascii=False)):
            body = text.encode()
            assert allocated(partial(json.loads, body)) <= decoded_bytes(body), text[:40]
