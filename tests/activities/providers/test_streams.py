"""Streams as servers send them: each is read for what it means, or the model is asked again."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from doubles.model_bench import QUICK, MakeRemote
from doubles.raw_server import (
    CALLED,
    DONE,
    STOP,
    Answer,
    RawServer,
    Script,
    block,
    called,
    chunk,
    event,
    raw_server,
    said,
)

from sennit.activities.providers.errors import OutputCut
from sennit.activities.providers.http_provider import HttpProvider, Limits
from sennit.activities.providers.model import Message, ModelReply, ModelRequest, ProviderError, ToolRequest
from sennit.activities.providers.settings import ModelSettings

NILE = "The Nile is 6,650 km long."
HALF, REST = "The Nile is ", "6,650 km long."
SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
SEND = {"name": "send", "effect": "write", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
TOOLS: tuple[dict[str, Any], ...] = (SEARCH, SEND)
ARGS_A, ARGS_B = '{"query": "a"}', '{"query": "b"}'
SEARCH_A = {"function": {"name": "search", "arguments": ARGS_A}}
A, B = ("search", {"query": "a"}), ("search", {"query": "b"})
START = block("message_start", message={"usage": {"input_tokens": 9, "output_tokens": 1}})
END = block("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4}) + block("message_stop")


class Opened(NamedTuple):
    """A server with a script, and a provider before it."""

    server: RawServer
    remote: HttpProvider
    model: str

    async def ask(self, **fields: Any) -> ModelReply:
        return await self.remote.complete(ModelRequest("worker", self.model, "g", "p", "p", **fields))


Open = Callable[..., Awaitable[Opened]]


@pytest.fixture
async def opened(make_remote: MakeRemote) -> AsyncIterator[Open]:
    """Open servers; they are closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_(answer: Answer | Script, wire: str = "openai", limits: Limits = QUICK) -> Opened:
            server = await stack.enter_async_context(raw_server(answer))
            path = "/v1" if wire == "openai" else ""
            return Opened(server, make_remote(wire, f"{server.url}{path}", "", limits), f"{wire}:test-model")

        yield open_


ERRORS = {
    "a field `error`": (said(HALF), b'error: {"code": 500, "message": "failed to decode"}\n\n', DONE),
    "an event `error`": (said(HALF), event({"message": "overloaded", "code": 503}, "error"), DONE),
    "an event `error` in words": (said(HALF), event("upstream is gone", "error"), DONE),
    "`detail` alone": (said(HALF), event({"detail": "CUDA out of memory"}), DONE),
    "`msg` alone": (said(HALF), event({"code": 500, "msg": "worker died"}), DONE),
    "in the choice": (said(HALF), event({"choices": [{"delta": {}, "error": {"code": 502, "message": "bad"}}]}), DONE),
    "in the delta": (said(HALF), chunk({"error": {"message": "bad"}}), DONE),
    "as a list": (said(HALF), event([{"error": {"message": "bad"}}]), DONE),
    "beside no choices": (said(HALF), event({"choices": [], "error": {"message": "bad"}}), DONE),
    "as `fault`": (said(HALF), event({"fault": {"faultstring": "policy"}}), DONE),
    "as a status of MiniMax": (event({"choices": None, "base_resp": {"status_code": 1000, "status_msg": "x"}}), DONE),
}


@pytest.mark.parametrize("form", ERRORS)
async def test_an_error_in_a_stream_is_one_whatever_follows_it(opened: Open, form: str) -> None:
    found = await opened(Script(ERRORS[form]))
    with pytest.raises(ProviderError) as caught:
        await found.ask()
    assert (type(caught.value).__name__, caught.value.retryable) in (("ServerFailed", True), ("BadReply", True))
    has_begun = ERRORS[form][0] == said(HALF)
    assert (caught.value.usage.input_tokens > 0) == has_begun, "what came of it is charged"


STATUSES = [
    ({"error": {"code": "401", "message": "Invalid API key"}}, "KeyRefused"),
    ({"error": {"code": 429, "message": "slow down"}}, "RateLimited"),
    ({"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow down"}}, "RateLimited"),
    ({"base_resp": {"status_code": 1002, "status_msg": "rate limit reached"}, "choices": None}, "RateLimited"),
    ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "QuotaUsedUp"),
    ({"error": {"type": "ThrottlingException", "message": "Too many tokens, please wait"}}, "RateLimited"),
    ({"error": "Unexpected endpoint or method. (POST /chat/completions)"}, "CallRefused"),
    ({"error": {"message": "prompt is too long: 9 tokens > 4 maximum", "type": "invalid"}}, "ContextTooLong"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "kind"), STATUSES)
async def test_an_error_in_a_stream_has_the_status_that_it_names(opened: Open, data: Any, kind: str) -> None:
    found = await opened(Script((event(data), DONE)))
    with pytest.raises(ProviderError) as caught:
        await found.ask()
    assert type(caught.value).__name__ == kind


REPEATED = {"index": 0, "message": {"role": "assistant", "content": NILE}, "finish_reason": "stop"}
MORE = {"index": 0, "message": {"role": "assistant", "content": f"{NILE} Surely."}, "finish_reason": "stop"}
TEXTS: dict[str, tuple[bytes | float, ...]] = {
    "a reason with every piece, and a pause": (said(HALF, "stop"), 2.5, said(REST, "stop"), DONE),
    "an empty reason with every piece": (said(HALF, ""), said(REST, ""), STOP, DONE),
    "`null` in words with every piece": (said(HALF, "null"), said(REST, "null"), STOP, DONE),
    "the whole once more, without a delta": (said(HALF), said(REST), event({"choices": [REPEATED]}), DONE),
    "the whole once more, beside a delta": (
        said(HALF), said(REST), event({"choices": [{**REPEATED, "delta": {}}]}), DONE),
    "the whole once more, as a delta": (said(HALF), said(REST), said(NILE, "stop"), DONE),
    "the whole once more, before the reason": (said(HALF), said(REST), said(NILE), STOP, DONE),
    "the whole, of which a piece is lost": (said(HALF), event({"choices": [REPEATED]}), DONE),
    "thoughts among the parts of the content": (
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        chunk({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": NILE}]}), STOP, DONE,
    ),
    "a comment that a gateway has wrapped": (b"data: : PROCESSING\n\n", said(NILE), STOP, DONE),
    "empty data": (b"data:\n\n", said(NILE), b"data: \n\n", STOP, DONE),
    "no empty line between events": (b"".join((said(NILE), STOP, DONE)).replace(b"\n\n", b"\n"),),
    "no line break behind the last event": (said(NILE), STOP.rstrip()),
    "another index than 0": tuple(piece.replace(b'"index": 0', b'"index": 1') for piece in (said(NILE), STOP, DONE)),
    "another index than its thought's": (
        chunk({"reasoning_content": "hm"}),
        *(piece.replace(b'"index": 0', b'"index": 1') for piece in (said(NILE), STOP, DONE))),
    "quotes without a text": (b'event: ping\ndata: ""\n\n', said(NILE), STOP, DONE),
    "halves of a character in two pieces": (said("ok \ud83d"), said("\ude00"), STOP, DONE),
    "a number that JSON does not have": (
        said(NILE).replace(b'"index": 0', b'"index": 0, "logprob": -Infinity'), STOP, DONE),
}  # fmt: skip


@pytest.mark.parametrize("form", TEXTS)
async def test_a_text_is_read_however_it_is_sent(opened: Open, form: str) -> None:
    found = await opened(Script(TEXTS[form]), limits=Limits(connect=2.0, first=5.0, idle=5.0))
    reply = await found.ask()
    assert reply.text == ("ok 😀" if "character" in form else NILE)
    assert (reply.calls, reply.warnings) == ((), ())


BLOCKS = {
    "a block that begins with its first delta": (
        START, block("content_block_start", index=0, content_block={"type": "text", "text": HALF}),
        block("content_block_delta", index=0, delta={"type": "text_delta", "text": HALF}),
        block("content_block_delta", index=0, delta={"type": "text_delta", "text": REST}), END,
    ),
    "the whole message at the end": (
        START, block("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        block("content_block_delta", index=0, delta={"type": "text_delta", "text": NILE}),
        block("message", content=[{"type": "text", "text": NILE}]), END,
    ),
    "a search that the server has made": (
        START, block("content_block_start", index=0, content_block={"type": "server_tool_use", "id": "s", "input": {}}),
        block("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": ARGS_A}),
        block("content_block_start", index=1, content_block={"type": "text", "text": NILE}), END),
    "an event without a type": (
        START, block("content_block_start", index=0, content_block={"type": "text", "text": NILE}),
                                event({"amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}}), END),
}  # fmt: skip


@pytest.mark.parametrize("form", BLOCKS)
async def test_blocks_are_read_however_they_are_sent(opened: Open, form: str) -> None:
    assert (await (await opened(Script(BLOCKS[form]), "anthropic")).ask()).text == NILE


@pytest.mark.parametrize(
    ("begins", "pieces"),
    [
        pytest.param({"id": "x", "input": {"query": "a"}}, (ARGS_A,), id="they begin the block"),
        pytest.param({"id": "x", "input": {}}, ("{}", ARGS_A), id="an empty object first"),
        pytest.param({"input": {}}, (ARGS_A,), id="no id"),
        pytest.param({"id": 7, "input": {}}, (ARGS_A,), id="a number as its id"),
    ],
)
async def test_a_block_with_a_call_is_one_call(opened: Open, begins: dict[str, Any], pieces: tuple[str, ...]) -> None:
    stop = block("message_delta", delta={"stop_reason": "tool_use"}, usage={}) + block("message_stop")
    begun = block("content_block_start", index=0, content_block={"type": "tool_use", "name": "search", **begins})
    deltas = (
        block("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece})
        for piece in pieces
    )
    found = await opened(Script((START, begun, *deltas, stop)), "anthropic")
    reply = await found.ask(tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.calls] == [A]


CALLS = {
    "a reason with each call, and seconds between them": (
        (called(0, "search", ARGS_A, "tool_calls", id="1"), 2.5,
         called(1, "search", ARGS_B, "tool_calls", id="2"), DONE), [A, B]),
    "a reason behind the first call, and seconds": (
        (called(0, "search", ARGS_A, id="1"), STOP, 2.5, called(1, "search", ARGS_B, id="2"), STOP, DONE),
        [A, B]),
    "two objects in one call": ((called(0, "search", ARGS_A + ARGS_B), CALLED, DONE), [A, B]),
    "one object twice": ((called(0, "search", ARGS_A), called(0, "", ARGS_A), CALLED, DONE), [A]),
    "one call at two places": (
        (called(0, "search", ARGS_A, id="1"), called(1, "search", ARGS_A, id="1"), CALLED, DONE), [A]),
    "one id for two calls": (
        (called(0, "search", ARGS_A, id="1"), called(1, "search", ARGS_B, id="1"), CALLED, DONE), [A, B]),
    "two equal calls": (
        (called(0, "search", ARGS_A, id="1"), called(1, "search", ARGS_A, id="2"), CALLED, DONE), [A, A]),
    "an empty object first": (
        (called(0, "search", "{}"), called(0, "", '{"query": '), called(0, "", '"a"}'), CALLED, DONE), [A]),
    "encoded twice": ((called(0, "search", json.dumps(ARGS_A)), CALLED, DONE), [A]),
    "an id of its own for each piece": (
        (called(0, "search", "", id="1"), called(0, "", '{"query": ', id="2"), called(0, "", '"a"}', id="3"),
         CALLED, DONE), [A]),
    "an index with the first piece alone": (
        (called(0, "search", '{"query": ', id="1"), chunk({"tool_calls": [{"function": {"arguments": '"a"}'}}]}),
         called(1, "search", '{"query": ', id="2"), chunk({"tool_calls": [{"function": {"arguments": '"b"}'}}]}),
         CALLED, DONE), [A, B]),
    "pieces by turns, known by their places alone": (
        (chunk({"tool_calls": [{"function": {"name": "search"}}, {"function": {"name": "look"}}]}),
         chunk({"tool_calls": [{"function": {"arguments": '{"query": '}}, {"function": {"arguments": '{"at": '}}]}),
         chunk({"tool_calls": [{"function": {"arguments": '"a"}'}}, {"function": {"arguments": "1}"}}]}), CALLED, DONE),
        [A, ("look", {"at": 1})]),
    "ids that are numbers": (
        (called(0, "search", ARGS_A, id=7), called(1, "search", ARGS_B, id=8), CALLED, DONE), [A, B]),
    "pieces by turns, known by their ids alone": (
        (*(chunk({"tool_calls": [{"id": name, "function": {"name": "search", "arguments": ""}}]}) for name in "ab"),
         *(chunk({"tool_calls": [{"id": name, "function": {"arguments": piece}}]})
           for piece, name in (('{"query": ', "a"), ('{"query": ', "b"), ('"a"}', "a"), ('"b"}', "b"))),
         CALLED, DONE), [A, B]),
    "pieces by turns at one index": (
        (called(0, "search", "", id="a"), called(0, "search", "", id="b"), called(0, "", ARGS_A, id="a"),
         called(0, "", ARGS_B, id="b"), CALLED, DONE), [A, B]),
    "a name in two pieces": ((called(0, "sea"), called(0, "rch", ARGS_A), CALLED, DONE), [A]),
    "a name behind the arguments": (
        (called(0, "", '{"query": ', id="1"), called(0, "search", '"a"}'), CALLED, DONE), [A]),
    "the arguments at another index than the name": (
        (called(0, "search", ARGS_A, id="1"), called(0, "search", "", id="2"), called(1, "", ARGS_B), CALLED, DONE),
        [A, B]),
    "in the whole message alone": (
        (event({"choices": [{"message": {"tool_calls": [{"function": {"name": "search", "arguments": {"query": "a"}}}]},
                             "finish_reason": "tool_calls"}]}), DONE), [A]),
    "in the whole message once more": (
        (called(0, "search", ARGS_A, id="1"),
         event({"choices": [{"message": {"tool_calls": [{"id": "1", **SEARCH_A}]}, "finish_reason": "stop"}]}), DONE),
        [A]),
    "of a server before tools, beside a text": (
        (chunk({"content": "I search.", "function_call": {"name": "search", "arguments": '{"query": '}}),
         chunk({"function_call": {"arguments": '"a"}'}}), chunk(reason="function_call"), DONE), [A]),
    "halves of a character": (
        (called(0, "search", '{"query": "\ud83d'), called(0, "", '\ude00"}'), CALLED, DONE),
        [("search", {"query": "😀"})]),
    "halves that are written as escapes": (
        (called(0, "search", '{"query": "\\ud83d'), called(0, "", '\\ude00"}'), CALLED, DONE),
        [("search", {"query": "😀"})]),
}  # fmt: skip


@pytest.mark.parametrize("form", CALLS)
async def test_calls_are_read_however_they_are_sent(opened: Open, form: str) -> None:
    pieces, wanted = CALLS[form]
    found = await opened(Script(pieces), limits=Limits(connect=2.0, first=5.0, idle=5.0))
    reply = await found.ask(tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.calls] == wanted
    assert len({call.id for call in reply.calls}) == len(wanted)
    assert reply.warnings == ()


WITHOUT_IDS = {
    "two calls": (called(0, "search", ARGS_A), called(1, "search", ARGS_B), CALLED, DONE),
    "two objects in one call": (called(0, "search", ARGS_A + ARGS_B), CALLED, DONE),
    "calls in a text": (
        said(f'<tool_call>\n{{"name": "search", "arguments": {ARGS_A}}}\n</tool_call>\n'),
        said(f'<tool_call>\n{{"name": "search", "arguments": {ARGS_B}}}\n</tool_call>\n'),
        STOP,
        DONE,
    ),
}


@pytest.mark.parametrize("form", WITHOUT_IDS)
async def test_calls_without_ids_get_some_that_every_server_takes(opened: Open, form: str) -> None:
    """Mistral takes nine letters and digits alone (ggml-org/llama.cpp#26359), Anthropic none twice."""
    found = await opened(Script(WITHOUT_IDS[form]))
    first = await found.ask(tools=TOOLS)
    assert [call.id for call in first.calls] == ["call00000", "call00001"]
    turn = Message("assistant", "", first.calls, origin=found.model)
    results = [Message("tool", "found", call_id=call.id) for call in first.calls]
    second = await found.ask(tools=TOOLS, messages=(turn, *results))
    assert [call.id for call in second.calls] == ["call00002", "call00003"]


AGAIN = {
    "half a text, and the last event": ((said(HALF), DONE), "without a reason"),
    "an odd end, and then a stop": ((said(HALF), chunk(reason="error"), STOP, DONE), "was broken off: 'error'"),
    "a reason with each piece, and no last event": ((said(HALF, "stop"), said("6,6", "stop")), "ended in its middle"),
    "a call that does not come": ((said("I will search.", "tool_calls"), DONE), "called none"),
    "blanks behind a thought": (
        (chunk({"reasoning_content": "hm"}), said("\n\n \u200b"), STOP, DONE),
        "holds a thought",
    ),
    "blanks": ((said(" \u200b\n"), STOP, DONE), "is empty"),
    "a whole text that is another": (
        (said(HALF), said("7"), event({"choices": [REPEATED]}), DONE),
        "another one as a whole",
    ),
    "a write with half of a character": (
        (called(1, "send", '{"text": "\ud83d"}'), CALLED, DONE),
        "half of a character",
    ),
    "a write with two objects": (
        (called(1, "send", '{"text": "a"}{"text": "a"}'), CALLED, DONE),
        "more than one object",
    ),
}


@pytest.mark.parametrize("form", AGAIN)
async def test_the_model_is_asked_again_where_nobody_can_tell(opened: Open, form: str) -> None:
    pieces, words = AGAIN[form]
    found = await opened(Script(pieces))
    with pytest.raises(ProviderError, match=words) as caught:
        await found.ask(tools=TOOLS)
    assert caught.value.retryable


async def test_a_limit_counts_whatever_follows_it(opened: Open) -> None:
    with pytest.raises(OutputCut, match="was cut at"):
        await (await opened(Script((said(HALF, "length"), STOP, DONE)))).ask()


async def test_a_message_that_stops_after_half_is_asked_for_again(opened: Open) -> None:
    start = block("content_block_start", index=0, content_block={"type": "text", "text": HALF})
    found = await opened(Script((START, start, block("message_stop"))), "anthropic")
    with pytest.raises(ProviderError, match="without a reason"):
        await found.ask()


async def test_a_server_that_never_gives_a_reason_is_believed_when_it_was_asked_again(opened: Open) -> None:
    found = await opened(Script((said(NILE), DONE)))
    with pytest.raises(ProviderError, match="without a reason") as caught:
        await found.ask()
    assert caught.value.retryable
    assert [(await found.ask()).text for _ in range(2)] == [NILE, NILE]


async def test_a_server_that_has_given_a_reason_is_never_believed_without_one(opened: Open) -> None:
    def answer(_body: Any, count: int) -> Script:
        return Script((said(NILE), *([STOP] if count == 1 else []), DONE))

    found = await opened(answer)
    assert (await found.ask()).text == NILE
    for _ in range(3):
        with pytest.raises(ProviderError, match="without a reason"):
            await found.ask()


async def test_a_lone_half_of_a_character_is_replaced_and_noted(opened: Open) -> None:
    found = await opened(Script((said("a \ud83d b"), STOP, DONE)))
    reply = await found.ask()
    assert reply.text == "a \ufffd b"
    assert "half of a character" in reply.warnings[0]
    read = await (await opened(Script((called(0, "search", '{"query": "\\ud83d"}'), CALLED, DONE)))).ask(tools=TOOLS)
    assert (read.calls[0].arguments, len(read.warnings)) == ({"query": "\ufffd"}, 1)
    named = Script((called(0, "sea\ud83d", ARGS_A, id="c\ud83d"), CALLED, DONE))
    (call,) = (await (await opened(named)).ask(tools=TOOLS)).calls
    assert (call.id, call.name) == ("c\ufffd", "sea\ufffd"), "a name that no tool has is refused by its name"


async def test_comments_and_empty_data_show_that_a_server_lives(opened: Open) -> None:
    waits = [piece for _ in range(3) for piece in (0.4, b": still here\n\n", 0.4, b"data:\n\n")]
    found = await opened(Script((*waits, said(NILE), STOP, DONE)))
    assert (await found.ask()).text == NILE


async def test_the_time_of_a_node_counts_alone_and_its_own_silences_before_those_of_the_worker(opened: Open) -> None:
    limits = Limits(connect=2.0, first=1.0, idle=0.5, reading=10_000.0)
    found = await opened(Script((1.5, said(HALF), 1.5, said(REST), STOP, DONE)), limits=limits)
    with pytest.raises(ProviderError, match="no first piece"):
        await found.ask()
    assert (await found.ask(seconds=20.0)).text == NILE
    assert (await found.ask(first_token_timeout=5.0, idle_timeout=5.0)).text == NILE
    with pytest.raises(ProviderError, match="no next piece"):
        await found.ask(seconds=20.0, idle_timeout=0.3)


def test_a_model_may_think_for_minutes_before_its_first_piece() -> None:
    """OpenAI's server sends nothing meanwhile: mezmo/aura#62, BlockRunAI/Franklin#74."""
    assert Limits().first >= 300
    assert Limits().idle == 60


async def test_a_prompt_that_the_server_has_cut_is_noted(opened: Open) -> None:
    counted = event({"choices": [], "usage": {"prompt_tokens": 4096, "completion_tokens": 9}})
    found = await opened(Script((said(NILE), STOP, counted, DONE)))
    notes = {(await found.ask(system="word " * length)).warnings for length in (9000, 9500)}
    [[note]] = notes  # a run keeps equal warnings once
    assert "counted only 4,096 tokens of a longer prompt" in note
    assert (await found.ask(system="word " * 3000)).warnings == ()


@pytest.mark.parametrize(("wire", "path"), [("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages")])
async def test_what_an_address_asks_for_stays_behind_the_path(make_remote: MakeRemote, wire: str, path: str) -> None:
    async with raw_server(Script((b"{}",), 404, "application/json")) as server:
        variable = f"{wire.upper()}_BASE_URL"
        address = f"{server.url}/v1/?api-version=2024-06-01"
        found = ModelSettings.read({variable: address, "SENNIT_MODEL": f"{wire}:m"}).servers[wire]
        remote = make_remote(wire, found.url, "")
        with pytest.raises(ProviderError):
            await remote.complete(ModelRequest("worker", f"{wire}:m", "g", "p", "p"))
    assert server.targets == [f"{path}?api-version=2024-06-01"]


# --- what a server wants back

THOUGHT = chunk({"reasoning_content": "I must "}) + chunk({"reasoning_content": "search."})
SIGNED = called(0, "search", ARGS_A, id="1", extra_content={"google": {"thought_signature": "c2ln"}})
ASKS = called(0, "search", ARGS_A, id="1")


def refusal(words: str) -> Script:
    return Script((json.dumps({"error": {"message": words}}).encode(),), 400, "application/json")


def wants_thoughts(body: dict[str, Any], _count: int) -> Script:
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    if any(turn.get("reasoning_content") != "I must search." for turn in turns):
        return refusal("The `reasoning_content` in the thinking mode must be passed back to the API.")
    return Script((said(NILE), STOP, DONE)) if turns else Script((THOUGHT, ASKS, CALLED, DONE))


def wants_signatures(body: dict[str, Any], _count: int) -> Script:
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    signed = [call.get("extra_content") for turn in turns for call in turn["tool_calls"]]
    if not all(signed):
        return refusal("Function call is missing a thought_signature in functionCall parts.")
    return Script((said(NILE), STOP, DONE)) if turns else Script((SIGNED, CALLED, DONE))


def refuses_thoughts(body: dict[str, Any], _count: int) -> Script:
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    if any("reasoning_content" in turn for turn in turns):
        return refusal("property 'reasoning_content' is unsupported")
    return Script((said(NILE), STOP, DONE)) if turns else Script((THOUGHT, ASKS, CALLED, DONE))


async def turn_after(found: Opened, reply: ModelReply, **fields: Any) -> ModelReply:
    """Make the second turn of a tool loop."""
    turn = Message("assistant", reply.text, reply.calls, thinking=reply.thinking, origin=reply.origin)
    results = [Message("tool", "found", call_id=call.id) for call in reply.calls]
    return await found.remote.complete(
        ModelRequest("worker", fields.get("model", found.model), "g", "p", "p", tools=TOOLS, messages=(turn, *results))
    )


@pytest.mark.parametrize(
    ("server", "requests"), [(wants_thoughts, 5), (wants_signatures, 4), (refuses_thoughts, 4)]
)  # fmt: skip
async def test_the_second_turn_has_what_the_server_wants_back(opened: Open, server: Answer, requests: int) -> None:
    found = await opened(server)
    for _ in range(2):
        assert (await turn_after(found, await found.ask(tools=TOOLS))).text == NILE
    assert len(found.server.asked) == requests, "what a refusal has taught is remembered"
    assert all("tools" in body for body in found.server.asked), "no refusal of a field is one of tools"


async def test_thoughts_of_another_model_are_dropped_with_a_note(opened: Open) -> None:
    found = await opened(wants_signatures)
    first = await found.ask(tools=TOOLS)
    sent = await opened(Script((said(NILE), STOP, DONE)))
    reply = await turn_after(sent, first, model="openai:other")
    assert reply.warnings == ("openai:other goes on with turns of openai:test-model, without the thoughts of these",)
    assert "extra_content" not in json.dumps(sent.server.asked[0])


def strict(body: dict[str, Any], _count: int) -> Script:
    """A server that reads earlier turns as OpenAI, vLLM and Anthropic do, and otherwise answers."""
    for turn in body["messages"]:
        if turn["role"] != "assistant":
            continue
        blocks = turn["content"] if isinstance(turn["content"], list) else []
        texts = [part["text"] for part in blocks if part["type"] == "text"]
        if any(not text.strip() for text in texts) or str(turn["content"]).isspace():
            return refusal("messages: text content blocks must contain non-whitespace text")
        calls = [(part["id"], part["name"], part["input"]) for part in blocks if part["type"] == "tool_use"]
        for call in turn.get("tool_calls", ()):
            try:
                arguments = json.loads(call["function"]["arguments"])
            except ValueError:
                return refusal("Expecting ',' delimiter: line 1 column 54 (char 53)")
            calls.append((call["id"], call["function"]["name"], arguments))
        for call_id, name, arguments in calls:
            if not isinstance(arguments, dict):
                return refusal("'str object' has no attribute 'items'")
            if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name):
                return refusal("tool_calls[0].function.name: string does not match pattern '^[a-zA-Z0-9_-]+$'")
            if not re.fullmatch("[a-zA-Z0-9]{9}", call_id):
                return refusal(f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.")
    if any(turn.get("role") == "assistant" for turn in body["messages"]):
        answers = [turn for turn in body["messages"] if turn["role"] == "tool"]
        made = [call["id"] for turn in body["messages"] for call in turn.get("tool_calls", ())]
        assert [turn["tool_call_id"] for turn in answers] == made
    if "max_tokens" not in body:
        return Script((said(NILE), STOP, DONE))
    return Script((START, block("content_block_start", index=0, content_block={"type": "text", "text": NILE}), END))


ORDERS = {
    "a thought between two calls": ("thinking", "tool_use", "thinking", "tool_use"),
    "a thought between two texts": ("thinking", "text", "thinking", "text", "tool_use"),
    "a thought behind the calls": ("text", "tool_use", "redacted_thinking"),
    "a thought at the beginning": ("thinking", "text", "tool_use", "tool_use"),
}


@pytest.mark.parametrize("form", ORDERS)
async def test_thoughts_go_back_where_the_model_has_had_them(opened: Open, form: str) -> None:
    """gotgenes/pi-anthropic-auth#66: "`thinking` blocks in the latest assistant message cannot be modified"."""
    blocks: list[dict[str, Any]] = []
    for number, kind in enumerate(ORDERS[form]):
        made: dict[str, dict[str, Any]] = {
            "thinking": {"thinking": f"thought {number}", "signature": f"signed {number}"},
            "redacted_thinking": {"data": f"sealed {number}"},
            "text": {"text": f"text {number}"},
            "tool_use": {"id": f"toolu_{number}", "name": "search", "input": {"query": f"q {number}"}},
        }
        blocks.append({"type": kind, **made[kind]})

    def answer(body: dict[str, Any], _count: int) -> Script:
        if len(body["messages"]) == 1:
            begun = [block("content_block_start", index=n, content_block=each) for n, each in enumerate(blocks)]
            stop = block("message_delta", delta={"stop_reason": "tool_use"}, usage={}) + block("message_stop")
            return Script((START, *begun, stop))
        if body["messages"][1]["content"] != blocks:
            return refusal("`thinking` blocks in the latest assistant message cannot be modified.")
        return Script((START, block("content_block_start", index=0, content_block={"type": "text", "text": NILE}), END))

    found = await opened(answer, "anthropic")
    assert (await turn_after(found, await found.ask(tools=TOOLS))).text == NILE


STRICTLY_READ = {
    "arguments that are cut": Message("assistant", "", (ToolRequest("abcdefghi", "search", '{"query": "a'),)),
    "arguments in a list": Message("assistant", "", (ToolRequest("abcdefghi", "search", ["a"]),)),
    "a name that no server allows": Message("assistant", "", (ToolRequest("abcdefghi", "browser.open", {}),)),
    "no name": Message("assistant", "", (ToolRequest("abcdefghi", "", {}),)),
    "blanks before a call": Message("assistant", "\n\n", (ToolRequest("abcdefghi", "search", {"query": "a"}),)),
    "ids of another model": Message(
        "assistant", "", tuple(ToolRequest(f"functions.search:{n}", "search", {}) for n in range(2)), origin="openai:o"
    ),
}


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("form", STRICTLY_READ)
async def test_a_server_takes_an_earlier_turn_whatever_the_model_has_written(
    opened: Open, form: str, wire: str
) -> None:
    """vllm-project/vllm#43995, anomalyco/opencode#48750, LibreChat-AI/agents#124, langchain-ai/langchain#37756."""
    found = await opened(strict, wire)
    turn = STRICTLY_READ[form]
    results = [Message("tool", "found", call_id=call.id) for call in turn.calls]
    assert (await found.ask(tools=TOOLS, messages=(turn, *results))).text == NILE
    assert len(found.server.asked) == 1


BLANKS = " \n" * 100


def called_with(blanks: str) -> bytes:
    return called(0, arguments=blanks)


ENDLESS = {
    "behind half a text": (said('{"km": 1'), said(BLANKS)),
    "behind half of a call": (called(0, "search", '{"query": '), called_with(BLANKS)),
    "behind nothing": (said(""), said(BLANKS)),
    "of no width": (said("The Nile"), said("\u200b" * 200)),
    "in one piece": (said("The Nile"), said("The Nile" + " " * 10_000)),
    "in a thought": (chunk({"reasoning_content": "hm"}), chunk({"reasoning_content": BLANKS})),
}


@pytest.mark.parametrize("form", ENDLESS)
async def test_a_reply_that_goes_on_with_blanks_is_soon_ended(opened: Open, form: str) -> None:
    begins, blanks = ENDLESS[form]
    found = await opened(Script((begins, *[blanks] * 400, STOP, DONE)))
    with pytest.raises(ProviderError, match="goes on with blanks and nothing else, and was ended") as caught:
        await found.ask(tools=TOOLS)
    assert caught.value.retryable
    assert caught.value.usage.output_tokens <= 15_000, "what came of it is charged, and most has not come"


async def test_a_reply_that_goes_on_with_blanks_is_ended_when_silence_would_be(opened: Open) -> None:
    slow = [piece for _ in range(100) for piece in (said(" "), 0.02)]
    found = await opened(Script((said("The Nile"), *slow, STOP, DONE)), limits=Limits(connect=2.0, first=5.0, idle=0.7))
    with pytest.raises(ProviderError, match="goes on with blanks and nothing else, and was ended") as caught:
        await found.ask()
    assert caught.value.retryable


async def test_blanks_within_a_reply_are_part_of_it(opened: Open) -> None:
    wide = f"The{' ' * 3_000}Nile"
    assert (await (await opened(Script((said(wide[:1_500]), said(wide[1_500:]), STOP, DONE)))).ask()).text == wide
    spaced = [piece for sign in "abcdefgh" * 8 for piece in (said(sign), said(" " * 500))]
    assert len((await (await opened(Script((*spaced, STOP, DONE)))).ask()).text) == 64 * 501
    # One blank, and a long pause in which the server shows that it lives, is no end.
    alive = [piece for _ in range(12) for piece in (b": alive\n\n", 0.1)]
    found = await opened(
        Script((said("The "), *alive, said("Nile"), STOP, DONE)), limits=Limits(connect=2.0, first=5.0, idle=0.7)
    )
    assert (await found.ask()).text == "The Nile"


async def test_a_reply_without_an_end_is_cut_and_the_error_does_not_blame_the_server(opened: Open) -> None:
    found = await opened(Script([said("river " * 1_000)] * 300))
    with pytest.raises(OutputCut, match="it was ended here, far above its limit of 100 tokens") as caught:
        await found.ask(max_output_tokens=100)
    assert not caught.value.growable
