"""Servers as they are: what they refuse is left out, learned from the call itself, and kept with the reason."""

import json
from typing import Any

import pytest
from doubles.model_bench import KEY, QUICK, Bench

from sennit.activities.providers.errors import BadReply, CallRefused, ContextTooLong, ReplyCut, ServerFailed
from sennit.activities.providers.http_provider import HttpProvider
from sennit.activities.providers.model import Message
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import Server
from sennit.testing.model_rules import Asked, Reply

openai = pytest.mark.parametrize("bench", ["openai"], indirect=True)

PAGES = [
    ("text/html", "<html><head><title>Sign in</title></head><body>data: none</body></html>", "web page, 'Sign in'"),
    ("text/html", "", "nothing|text/html"),
    ("text/plain", "upstream connect error", "upstream connect error"),
    ("application/json", '{"status": "ok"}', "what is no reply"),
    ("application/json", "", "application/json"),
    ("application/json", "<html><title>502</title></html>", "web page, '502'"),
    ("application/json", "[1]", "what is no reply"),
    ("text/event-stream", "<html>", "ended in its middle"),
]


@pytest.mark.parametrize(("kind", "body", "words"), PAGES)
async def test_rubbish_with_status_200_is_tried_again(bench: Bench, kind: str, body: str, words: str) -> None:
    bench.server.on("", Reply(body=body, headers={"content-type": kind}))
    with pytest.raises((BadReply, ReplyCut), match=words) as caught:
        await bench.ask()
    assert caught.value.retryable


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/html; charset=utf-8"])
async def test_a_stream_is_known_by_what_it_is(bench: Bench, kind: str) -> None:
    good = Reply(text="The Nile.")
    bench.server.on("", good)
    await bench.ask()
    wire = "openai" if bench.format == "openai" else "anthropic"
    events = list(_format(wire).stream(good, bench.server.asked[-1], 1))
    bench.server.rules.clear()
    bench.server.on("", Reply(body="".join(event for event, _ in events), headers={"content-type": kind}))
    assert (await bench.ask()).output == "The Nile."


async def test_a_whole_reply_is_known_in_a_stream_too(bench: Bench) -> None:
    bench.server.on("", Reply(text="The Nile."))
    await bench.ask()
    whole = _format(bench.format).whole(Reply(text="The Nile."), bench.server.asked[-1], 1)
    bench.server.rules.clear()
    bench.server.on("", Reply(body=json.dumps(whole), headers={"content-type": "text/event-stream"}))
    assert (await bench.ask()).output == "The Nile."


def _format(name: str) -> Any:
    from sennit.testing.models import FORMATS

    return FORMATS["/v1/chat/completions" if name == "openai" else "/v1/messages"]


SYSTEM_REFUSALS = [
    (400, "System role not supported"),
    (500, "Jinja Exception: System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
]


@openai
@pytest.mark.parametrize(("status", "text"), SYSTEM_REFUSALS)
async def test_instructions_go_into_the_prompt_where_no_system_role_is_taken(
    bench: Bench, status: int, text: str
) -> None:
    bench.server.on(lambda asked: bool(asked.system), Reply(status=status, text=text))
    bench.server.on("", "fine")
    for _ in range(2):
        assert (await bench.ask(system="Be short.", messages=(Message("assistant", "a"), Message("user", "b")))).output
    assert [bool(asked.system) for asked in bench.server.asked] == [True, False, False]
    assert bench.server.asked[-1].turns[0] == ("user", "Be short.\n\nHello")
    assert "no system role" in bench.remote.known.notes("openai:test-model")[0]
    assert text in bench.remote.known.notes("openai:test-model")[0]


async def test_a_server_that_does_not_stream_is_asked_for_the_whole(bench: Bench) -> None:
    bench.server.on(lambda asked: asked.stream, Reply(status=400, text="stream=true is not supported for this model"))
    bench.server.on("", Reply(text="fine", first_token=1.3))
    assert (await bench.ask()).output == "fine"
    assert (await bench.ask()).output == "fine"
    assert [asked.stream for asked in bench.server.asked] == [True, False, False]
    assert "does not stream" in bench.remote.known.notes(f"{bench.format}:test-model")[0]


@pytest.mark.parametrize("text", ["Bad Request", "", "Unsupported parameters", "invalid_request_error"])
@pytest.mark.parametrize("parameter", ["temperature", "response_format", "stream_options"])
@openai
async def test_what_a_refusal_does_not_name_is_found(bench: Bench, text: str, parameter: str) -> None:
    bench.server.on(lambda asked: parameter in asked.body, Reply(status=400, text=text))
    bench.server.on("", '{"km": 1}')
    wanted = {"type": "object", "properties": {"km": {"type": "integer"}}}
    assert (await bench.ask(temperature=0.1, output_schema=wanted, system="x")).output == {"km": 1}
    tries = len(bench.server.asked)
    assert (await bench.ask(temperature=0.1, output_schema=wanted, system="x")).output == {"km": 1}
    assert len(bench.server.asked) == tries + 1
    left_out = {"temperature", "response_format", "stream_options", "stream"} - set(bench.sent)
    assert left_out == {parameter}, "nothing else is given up"


@openai
async def test_two_that_are_not_named_are_both_left_out(bench: Bench) -> None:
    bench.server.on(
        lambda asked: "temperature" in asked.body or "stream_options" in asked.body,
        Reply(status=400, text="Bad Request"),
    )
    bench.server.on("", "fine")
    assert (await bench.ask(temperature=0.1)).output == "fine"


@openai
async def test_a_call_that_is_wrong_whatever_is_left_out_is_refused_in_the_end(bench: Bench) -> None:
    bench.server.on("", Reply(status=400, text="Bad Request"))
    with pytest.raises(CallRefused, match="Bad Request"):
        await bench.ask(temperature=0.1, system="x")
    assert len(bench.server.asked) < 9
    bench.server.rules.clear()
    assert (await bench.ask(temperature=0.1, system="x")).output
    assert "temperature" in bench.sent
    assert bench.server.asked[-1].system == "x"


WINDOWS = [
    (
        "This model's maximum context length is 4096 tokens. However, you requested 4996 tokens (900 in the messages, "
        "4096 in the completion). Please reduce the length of the messages or completion."
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 "
        "tokens and your request has 900 input tokens (4096 > 4096 - 900)."
    ),
    (
        "You passed 900 input tokens and requested 4096 output tokens. However, the model's context length is only "
        "4096 tokens, resulting in a maximum input length of 0 tokens."
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 900 `inputs` tokens and "
        "4096 `max_new_tokens`: too many tokens"
    ),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
        "4996 tokens: 900 tokens from the input messages and 4096 tokens for the completion."
    ),
    "input length and `max_tokens` exceed context limit: 900 + 12288 > 4096, decrease input length or `max_tokens`",
]


@pytest.mark.parametrize("text", WINDOWS)
async def test_a_reply_is_given_the_room_that_a_refusal_tells(bench: Bench, text: str) -> None:
    def limit(asked: Asked) -> int:
        return int(asked.body["max_tokens"])

    bench.server.on(lambda asked: limit(asked) + 900 > 4096, Reply(status=400, text=text))
    bench.server.on("", "fine")
    assert (await bench.ask(max_output_tokens=4096)).output == "fine"
    assert limit(bench.server.asked[-1]) == 4096 - 900
    assert (await bench.ask("long " * 600, max_output_tokens=4096)).output == "fine"
    assert len(bench.server.asked) == 3 or limit(bench.server.asked[-1]) == 4096 - 900
    assert bench.remote.known.context(f"{bench.format}:test-model") == 4096
    assert "4,096 tokens" in bench.remote.known.notes(f"{bench.format}:test-model")[0]


@openai
@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "prompt is too long: 9000 tokens > 4096 maximum",
    ],
)
async def test_a_prompt_that_fills_the_context_is_too_long(bench: Bench, text: str) -> None:
    bench.server.on("", Reply(status=400, text=text, code="context_length_exceeded"))
    with pytest.raises(ContextTooLong) as caught:
        await bench.ask()
    assert (caught.value.context, caught.value.prompt, len(bench.server.asked)) == (4096, 9000, 1)


async def test_a_context_that_is_set_bounds_every_reply(bench: Bench) -> None:
    remote = HttpProvider(OpenAI(), Server("openai", bench.server.openai_url, KEY, 4096), QUICK)
    try:
        mine = Bench(bench.server, remote, "openai")
        await mine.ask("word " * 1800, max_output_tokens=4096)
        assert 4096 - mine.tokens_sent - 50 < mine.sent["max_tokens"] <= 4096 - mine.tokens_sent + 50
    finally:
        await remote.close()


@openai
@pytest.mark.parametrize(
    "entry",
    [{"max_model_len": 4096}, {"context_length": 4096}, {"meta": {"n_ctx": 4096, "n_ctx_train": 32768}}],
)
async def test_a_context_that_the_list_of_models_has_is_taken_from_it(bench: Bench, entry: dict[str, Any]) -> None:
    bench.remote.known.learn_listed([{"id": "test-model", **entry}])
    assert bench.remote.known.context("openai:test-model") == 4096


@openai
async def test_parallel_calls_without_ids_are_split(bench: Bench) -> None:
    """All of them with the index 0, or none, and no id; arguments in pieces."""
    for index in (0, None):
        pieces: list[dict[str, Any]] = [
            {"name": "search", "arguments": ""},
            {"arguments": '{"query": '},
            {"arguments": '"a"}'},
            {"name": "search", "arguments": '{"query": "b"}'},
            {"name": "read", "arguments": ""},
            {"arguments": '{"path": "c"}'},
        ]
        choices: list[Any] = [{"delta": {"tool_calls": [{"index": index, "function": piece}]}} for piece in pieces]
        choices.append({"delta": {}, "finish_reason": "tool_calls"})
        body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
        bench.server.rules.clear()
        bench.server.on("", Reply(body=body, headers={"content-type": "text/event-stream"}))
        reply = await bench.ask(tools=({"name": "search"}, {"name": "read"}))
        assert [(call.name, call.arguments) for call in reply.calls] == [
            ("search", {"query": "a"}),
            ("search", {"query": "b"}),
            ("read", {"path": "c"}),
        ]
        assert len({call.id for call in reply.calls}) == 3


@openai
async def test_a_name_that_is_repeated_with_every_piece_is_one_call(bench: Bench) -> None:
    pieces = ['{"query"', ': "a', '"}', ""]
    choices: list[Any] = [
        {"delta": {"tool_calls": [{"index": 0, "function": {"name": "search", "arguments": piece}}]}}
        for piece in pieces
    ]
    choices.append({"delta": {}, "finish_reason": "tool_calls"})
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    bench.server.on("", Reply(body=body, headers={"content-type": "text/event-stream"}))
    reply = await bench.ask(tools=({"name": "search"},))
    assert [(call.name, call.arguments) for call in reply.calls] == [("search", {"query": "a"})]


@pytest.mark.parametrize("text", ['{"km": NaN}', '{"km": -Infinity}'])
async def test_a_number_that_json_does_not_have_is_named(bench: Bench, text: str) -> None:
    bench.server.on("", text)
    with pytest.raises(Exception, match=r"NaN|Infinity"):
        await bench.ask(output_schema={"type": "object", "properties": {"km": {"type": "number"}}})


@openai
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "unexpected end of the stream"),
        (502, "unknown error in stream"),
        (503, "temperature of the engine is not known"),
    ],
)
async def test_an_error_of_this_moment_is_no_refusal(bench: Bench, status: int, text: str) -> None:
    bench.server.on("", Reply(status=status, text=text), "fine")
    with pytest.raises(ServerFailed):
        await bench.ask(temperature=0.1)
    assert (await bench.ask(temperature=0.1)).output == "fine"
    assert bench.sent["stream"]
    assert bench.sent["temperature"] == 0.1


@pytest.mark.parametrize("text", ["tools[0].parameters: unsupported keyword", "tools.0.input_schema: not permitted"])
async def test_one_tool_that_is_wrong_does_not_take_all_away(bench: Bench, text: str) -> None:
    bench.server.on(lambda asked: bool(asked.tools), Reply(status=400, text=text))
    with pytest.raises(CallRefused):
        await bench.ask(tools=({"name": "search"},))
    assert len(bench.server.asked) == 1


NO_TOOLS = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use"),
    (400, "deepseek-reasoner does not support Function Calling"),
    (422, "body.tools: Extra inputs are not permitted"),
    (400, "Unrecognized request argument supplied: tools"),
]


@pytest.mark.parametrize(("status", "text"), NO_TOOLS)
async def test_tools_are_told_in_words_where_none_are_taken(bench: Bench, status: int, text: str) -> None:
    bench.server.on(lambda asked: bool(asked.tools), Reply(status=status, text=text))
    bench.server.on("<tools>", '<tool_call>\n{"name": "search", "arguments": {"query": "a"}}\n</tool_call>')
    for _ in range(2):
        reply = await bench.ask(tools=({"name": "search"},))
        assert [(call.name, call.arguments) for call in reply.calls] == [("search", {"query": "a"})]
    assert [bool(asked.tools) for asked in bench.server.asked] == [True, False, False]
