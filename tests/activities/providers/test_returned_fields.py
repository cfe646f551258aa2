"""Fields of a turn that come in pieces: what they are at the end, and how much is copied on the way."""

import random
from typing import Any

import pytest

from sennit.activities.providers.anthropic import Anthropic
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.returned_fields import GatheredFields

PIECES = 2_000
PIECE = "a thought "


def gathered(*pieces: dict[str, Any]) -> dict[str, Any]:
    fields = GatheredFields()
    for piece in pieces:
        fields.add_all(piece)
    return fields.value()


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([{"reasoning_content": "a"}, {"reasoning_content": "b"}], {"reasoning_content": "ab"}),
        ([{"thought_signature": "a"}, {"thought_signature": "b"}], {"thought_signature": "b"}),
        ([{"thought_signature": "a"}, {"thought_signature": ""}], {"thought_signature": "a"}),
        ([{"x": {"text": "a", "id": "1"}}, {"x": {"text": "b", "n": 2}}], {"x": {"text": "ab", "id": "1", "n": 2}}),
        ([{"x": None}, {"x": "a"}, {"x": None}], {"x": None}),
        ([{"x": "a"}, {"x": {"y": 1}}, {"x": [1]}, {"x": [2]}], {"x": [1, 2]}),
        (
            [
                {"parts": [{"index": 0, "type": "t", "text": "a"}, {"index": 1, "type": "t", "text": "c"}]},
                {"parts": [{"index": 0, "type": "t", "text": "b"}, {"index": 0, "type": "u", "text": "d"}]},
            ],
            {
                "parts": [
                    {"index": 0, "type": "t", "text": "ab"},
                    {"index": 1, "type": "t", "text": "c"},
                    {"index": 0, "type": "u", "text": "d"},
                ]
            },
        ),
        ([{"parts": [{"text": "a"}]}, {"parts": [{"text": "b"}]}], {"parts": [{"text": "a"}, {"text": "b"}]}),
        ([{"parts": [{"index": [0]}]}, {"parts": [{"index": [0]}]}], {"parts": [{"index": [0]}, {"index": [0]}]}),
    ],
)
def test_pieces_make_the_whole(pieces: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    assert gathered(*pieces) == whole


def test_what_was_asked_for_in_between_changes_nothing() -> None:
    draw = random.Random(7)
    for _ in range(200):
        pieces = [
            {name: value(draw, 2) for name in draw.sample(["text", "id", "data", "x"], 2)}
            for _ in range(draw.randrange(1, 6))
        ]
        fields = GatheredFields()
        for piece in pieces:
            fields.add_all(piece)
            fields.value()
        assert fields.value() == gathered(*pieces)


def value(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(6 if depth else 3)
    if kind == 3:
        return {name: value(draw, depth - 1) for name in draw.sample(["text", "id", "index", "type"], 2)}
    if kind > 3:
        return [value(draw, depth - 1) for _ in range(draw.randrange(3))]
    return draw.choice(["a", "b", "", None, 1])


class Counted(str):
    """A text that counts the characters which are copied when something is added to it, or it to something."""

    __slots__ = ()
    copied = 0

    def __add__(self, other: str) -> "Counted":
        Counted.copied += len(self) + len(other)
        return Counted(str.__add__(self, other))

    def __radd__(self, other: str) -> "Counted":
        Counted.copied += len(self) + len(other)
        return Counted(str.__add__(other, self))

    def removeprefix(self, prefix: str, /) -> "Counted":
        return Counted(str.removeprefix(self, prefix))


def builder() -> ReplyBuilder:
    return ReplyBuilder(ModelRequest(role="worker", model="m", goal="g", prompt="p", template="p"), 0)


def test_a_long_thought_of_anthropic_is_not_copied_with_each_piece() -> None:
    Counted.copied, reply, wire = 0, builder(), Anthropic()
    block = {"type": "thinking", "thinking": "", "signature": ""}
    wire.take(reply, {"type": "content_block_start", "index": 0, "content_block": block})
    for _ in range(PIECES):
        delta = {"type": "thinking_delta", "thinking": Counted(PIECE)}
        wire.take(reply, {"type": "content_block_delta", "index": 0, "delta": delta})
    signed = {"type": "signature_delta", "signature": "c2ln"}
    wire.take(reply, {"type": "content_block_delta", "index": 0, "delta": signed})
    [thought] = reply.turn().thinking
    assert thought == {"type": "thinking", "thinking": PIECE * PIECES, "signature": "c2ln"}
    assert Counted.copied <= 2 * PIECES * len(PIECE)


def test_a_long_thought_of_openais_format_is_not_copied_with_each_piece() -> None:
    Counted.copied, reply, wire = 0, builder(), OpenAI()
    for _ in range(PIECES):
        details = [{"index": 0, "type": "reasoning.text", "text": Counted(PIECE)}]
        delta = {"reasoning_content": Counted(PIECE), "reasoning_details": details}
        wire.take(reply, {"choices": [{"index": 0, "delta": delta}]})
    [thought] = reply.turn().thinking
    assert thought["reasoning_content"] == PIECE * PIECES
    assert thought["reasoning_details"] == [{"index": 0, "type": "reasoning.text", "text": PIECE * PIECES}]
    assert Counted.copied <= 4 * PIECES * len(PIECE)
