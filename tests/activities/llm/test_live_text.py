"""What listeners are told of the text of a model while it comes."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.llm.live_text import Channel, LiveText
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


async def test_the_sender_ends_with_the_last_text() -> None:
    """One that waits for ever is destroyed with its channel, and logged as an error."""

    async def nobody_listens(*_: Any) -> None:
        raise RPCError("no such stream", RPCStatusCode.NOT_FOUND, b"")

    stream = SimpleNamespace(signal=nobody_listens)
    client = SimpleNamespace(get_workflow_handle=lambda _: stream)
    channel = Channel(cast("Any", client), "run", lambda: 2.0)
    text = LiveText(cast("Any", channel), TextPiece(node="n1", generation=0, attempt=1), answer_only=False)
    channel.open(text)
    await asyncio.sleep(0.01)  # the first text is sent at once
    await channel.close(text)
    async with asyncio.timeout(5):
        while not all(task.done() for task in asyncio.all_tasks() - {asyncio.current_task()}):
            await asyncio.sleep(0.01)
