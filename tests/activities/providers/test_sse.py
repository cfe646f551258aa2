"""Events are the same however their bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.activities.providers.sse import EventParser

STREAM = (
    "\ufeff: hello\r\n"
    "data: one\n\n"
    "event: named\rdata: zwei § ✓\rdata:  more\r\r"
    "id: 7\nretry: 10\ndata\n\n"
    "event: nothing\n\n"
    "data:last\r\n\r\n"
    "data: never ended\n"
).encode()
EVENTS = ["one", "zwei § ✓\n more", "", "last"]


def parsed(chunks: list[bytes]) -> list[str]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_chunks_of_any_size_give_the_same_events(size: int) -> None:
    assert parsed([STREAM[start : start + size] for start in range(0, len(STREAM), size)]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM))))
def test_cuts_anywhere_give_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert parsed([STREAM[a:b] for a, b in pairwise(places)]) == EVENTS


@given(st.binary(max_size=300), st.integers(1, 20))
def test_no_bytes_break_the_parser(data: bytes, size: int) -> None:
    def outcome(chunks: list[bytes]) -> object:
        try:
            return parsed(chunks)
        except UnicodeDecodeError:
            return "not text"

    cut = [data[start : start + size] for start in range(0, len(data), size)]
    assert outcome(cut) == outcome([data] if data else [])


def test_four_mebibytes_of_empty_lines_at_once_are_read_in_one_pass() -> None:
    """As a compressed answer may unpack to; in the square of that, the suite's time limit ends it."""
    assert parsed([b"\n" * 4 * 1024 * 1024 + b"data: x\n\n"]) == ["x"]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_bytes_that_are_no_data_are_counted_and_not_kept(size: int) -> None:
    stream = b"\n: " + b"x" * 10_000 + b"\n\ndata: x\n\n"
    parser = EventParser()
    events = [event for start in range(0, len(stream), size) for event in parser.feed(stream[start : start + size])]
    assert events == ["x"]
    assert 10_000 <= parser.idle_bytes <= 10_006
