"""What listeners are told of the text of a model while it comes."""

from types import SimpleNamespace
from typing import Any, cast

from sennit.activities.llm.live_text import LiveText
from sennit.workflows.messages.text_stream import TextPiece


def test_a_text_that_begins_again_within_an_attempt_is_discarded_first() -> None:
    place = TextPiece(node="n1", generation=0, attempt=1)
    text = LiveText(cast("Any", SimpleNamespace(wake=lambda: None)), place, answer_only=False)
    text.add("The Nile i")
    pieces, sent = text.next_pieces(100)
    text.was_sent(sent)
    text.discard("the model is asked again: it was cut")
    text.add("The Nile is long")
    told = pieces + text.next_pieces(100)[0]
    assert [(piece.discarded, piece.offset, piece.text) for piece in told] == [
        ("", 0, "The Nile i"),
        ("the model is asked again: it was cut", 0, ""),
        ("", 0, "The Nile is long"),
    ]
