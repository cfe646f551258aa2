"""A reply is whole only if its server has said so."""

import json
from typing import Any

import pytest
from doubles.model_bench import Bench

from sennit.activities.providers.errors import ModelRefused, OutputCut, ReplyCut
from sennit.testing.model_rules import Reply

SSE = {"content-type": "text/event-stream"}
openai = pytest.mark.parametrize("bench", ["openai"], indirect=True)
anthropic = pytest.mark.parametrize("bench", ["anthropic"], indirect=True)


def stream(bench: Bench, reason: str | None, *, end: bool = True, text: str = "The Nile.", index: int = 0) -> Reply:
    """Return a reply with this finish reason; without an `end` the stream is closed without a last event."""
    if bench.format == "openai":
        chunks: list[Any] = [{"choices": [{"delta": {"content": text}, "finish_reason": None}]}]
        chunks += [{"choices": [{"delta": {}, "finish_reason": reason}]}] if reason else []
        lines = [f"data: {json.dumps(chunk)}" for chunk in chunks] + (["data: [DONE]"] if end else [])
    else:
        delta = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}
        events: list[Any] = [
            {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
            {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
            delta,
        ]
        events += [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}]
        events += [{"type": "message_stop"}] if end else []
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}" for event in events]
    return Reply(body="\n\n".join([*lines, ""]) + "\n", headers=SSE)


ENDS = {
    "openai": ["stop", "STOP", "eos", "eos_token", "stop_sequence", "end_turn", "tool_calls", "function_call"],
    "anthropic": ["end_turn", "stop_sequence", "tool_use"],
}
CUT = {
    "openai": ["insufficient_system_resource", "abort", "error", "repetition", "RECITATION", "pause_turn"],
    "anthropic": ["error", "compaction", "stop"],
}
AT_LIMIT = {
    "openai": ["length", "MAX_TOKENS", "model_length"],
    "anthropic": ["max_tokens", "model_context_window_exceeded"],
}


async def test_a_known_reason_is_an_end(bench: Bench) -> None:
    for reason in ENDS[bench.format]:
        bench.server.rules.clear()
        bench.server.on("", stream(bench, reason))
        assert (await bench.ask()).output == "The Nile."


async def test_any_other_reason_is_named_and_tried_again(bench: Bench) -> None:
    for reason in CUT[bench.format]:
        bench.server.rules.clear()
        bench.server.on("", stream(bench, reason))
        with pytest.raises(ReplyCut, match=f"was broken off: '{reason}'") as caught:
            await bench.ask()
        assert caught.value.retryable


async def test_a_stream_that_is_closed_without_either_is_none(bench: Bench) -> None:
    bench.server.on("", stream(bench, None, end=False))
    with pytest.raises(ReplyCut, match="ended in its middle"):
        await bench.ask()


async def test_a_reply_cut_at_the_limit_of_its_call_is_not_asked_for_again(bench: Bench) -> None:
    for reason in AT_LIMIT[bench.format]:
        bench.server.rules.clear()
        bench.server.asked.clear()
        bench.server.on("", stream(bench, reason))
        told = r"was cut at 3 tokens; raise `max_tokens`, or ask for less \('The Nile\.'"
        with pytest.raises(OutputCut, match=told) as caught:
            await bench.ask(max_output_tokens=3)
        assert not caught.value.retryable, "it would be cut at the same place"
        assert len(bench.server.asked) == 1
        assert (await bench.ask(role="planner")).stop == "length", "its reader says so"


@openai
async def test_a_filter_is_a_refusal(bench: Bench) -> None:
    for reason in ("content_filter", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"):
        bench.server.rules.clear()
        bench.server.on("", stream(bench, reason))
        with pytest.raises(ModelRefused, match="content filter"):
            await bench.ask()


@anthropic
async def test_a_pause_goes_on_with_what_was_said(bench: Bench) -> None:
    bench.server.on("", stream(bench, "pause_turn", text="The Nile, "), stream(bench, "end_turn", text="by 250 km."))
    reply = await bench.ask()
    assert (reply.output, "".join(bench.pieces)) == ("The Nile, by 250 km.", "The Nile, by 250 km.")
    last = bench.sent["messages"][-1]
    assert (last["role"], last["content"][-1]["text"]) == ("assistant", "The Nile, ")


@anthropic
async def test_a_pause_without_an_end_is_none(bench: Bench) -> None:
    bench.server.on("", stream(bench, "pause_turn", text="x"))
    with pytest.raises(ReplyCut, match="pause_turn"):
        await bench.ask()
    assert len(bench.server.asked) == 8
