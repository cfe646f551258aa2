"""Arguments of a call are known as whole when they are, however they were cut, in time that is linear."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sennit.activities.providers.call_arguments import CallArguments
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode_whole

SIGNS = st.text(alphabet="{}[]\":,\\'a1 \n\u201c\u201d", max_size=40)


def taken(pieces: list[str]) -> CallArguments:
    arguments = CallArguments()
    for piece in pieces:
        arguments.add(piece)
    return arguments


def is_object(text: str) -> bool:
    try:
        return isinstance(decode_whole(text), dict)
    except Unreadable:
        return False


@given(SIGNS, st.lists(st.integers(0, 40)))
@example('{"a": "}"}', [4, 8])
@example('{"a": "\\"}"} ', [7, 8, 9])
@example("{'a': '}'}", [7])
@example('{"a": {"b": []}, "c": "{"}', [15])
@example('{"a": 1} {', [8])
def test_they_are_whole_when_they_are_an_object(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    arguments = taken([text[start:end] for start, end in pairwise(places)])
    assert str(arguments) == text
    assert arguments.whole == is_object(text)


@pytest.mark.parametrize("piece", ["}", '"', "{", "a", "\\", "{}"])
def test_a_hundred_thousand_pieces_are_read_in_one_pass(piece: str) -> None:
    """In the square of that, the suite's time limit ends it."""
    arguments = CallArguments()
    arguments.add('{"a": "')
    for _ in range(100_000):
        arguments.add(piece)
        _ = arguments.whole
    assert len(str(arguments)) == 7 + 100_000 * len(piece)
