"""What both wire formats give: text as it arrives, calls, JSON of a schema, usage, why the reply ended."""

import asyncio
import json
from typing import Any

import pytest
from doubles.model_bench import Bench, MakeRemote

from sennit.activities.limits import MAX_KEPT_CAPABILITIES_BYTES
from sennit.activities.providers import prices
from sennit.activities.providers.capabilities import Lesson
from sennit.activities.providers.errors import (
    BadReply,
    CallRefused,
    ModelRefused,
    OutputCut,
    ReplyCut,
    SchemaMismatch,
    ServerFailed,
    ServerUnreachable,
)
from sennit.activities.providers.model import Message, ModelRequest, ReplyForm, ToolRequest
from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer
from sennit.workflows.plan.language.limits import Usage

TEXT = "Grüße aus dem Süden: 6,650 km — “long”, sagt man.\n"
SCHEMA = {"type": "object", "properties": {"km": {"type": "number"}}, "required": ["km"]}
SEARCH = {"name": "search", "description": "Search.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("cut", ["event", "random", 1, 3])
async def test_text_arrives_piece_by_piece_however_it_is_cut(bench: Bench, cut: Any) -> None:
    bench.server.on("Hello", Reply(text=TEXT, cut=cut, seed=7, usage=(12, 34)))
    reply = await bench.ask(system="Be short.")
    assert reply.output == reply.text == "".join(bench.pieces) == TEXT
    assert len(bench.pieces) > 5
    assert (reply.usage, reply.stop, reply.calls) == (Usage(12, 34, calls=1), "end", ())
    assert bench.server.asked[0].system == "Be short."
    assert reply.model == bench.server.asked[0].model
    assert bench.server.asked[0].turns == (("user", "Hello"),)
    assert bench.progress[-1].startswith(f"about {len(TEXT.encode()) // 4} tokens so far")


async def test_the_first_token_is_timed(bench: Bench) -> None:
    bench.server.on("", Reply(text="late", first_token=0.2))
    assert (await bench.ask()).first_token_ms >= 200


async def test_usage_is_estimated_where_the_server_counts_nothing(bench: Bench) -> None:
    bench.server.on("", Reply(text="x" * 30, fault="no usage"))
    assert (await bench.ask("p" * 60)).usage == Usage(bench.tokens_sent, 10, calls=1)


async def test_calls_of_tools_come_whole(bench: Bench) -> None:
    wanted = (Call("search", {"query": "the Nile “now”"}), Call("calculate", {"expression": "1 + 1"}))
    bench.server.on("", Reply(text="I look.", calls=wanted, cut=5))
    reply = await bench.ask(tools=(SEARCH,))
    assert (reply.text, reply.stop) == ("I look.", "tools")
    assert [(call.name, call.arguments) for call in reply.calls] == [(call.name, call.arguments) for call in wanted]
    assert len({call.id for call in reply.calls}) == 2
    assert bench.server.asked[0].tools == ("search",)


async def test_arguments_that_are_no_json_come_as_they_were_written(bench: Bench) -> None:
    bench.server.on("", Reply(calls=(Call("search", '{"query": '),)))
    assert (await bench.ask(tools=(SEARCH,))).calls[0].arguments == '{"query": '


async def test_a_planner_is_given_no_tools_to_call(bench: Bench) -> None:
    await bench.ask(role="planner", tools=(SEARCH,))
    assert "tools" not in bench.sent


async def test_a_tool_loop_goes_on_with_what_the_tools_gave(bench: Bench) -> None:
    """The server refuses turns that are out of order, and results of calls that nobody made."""
    asks = Reply(calls=(Call("search", {"q": "a"}), Call("search", {"q": "b"})), thinking="two at once")
    bench.server.on("", asks, results=0)
    bench.server.on("", "Both found.", results=2)
    first = await bench.ask(tools=(SEARCH,))
    turns = (
        Message("assistant", first.text, first.calls, thinking=first.thinking),
        *(Message("tool", f"result {call.arguments['q']}", call_id=call.id) for call in first.calls),
        Message("user", "Now answer."),
    )
    assert (await bench.ask(tools=(SEARCH,), messages=turns)).output == "Both found."
    assert bench.server.asked[1].results == ("result a", "result b")
    assert bench.server.asked[1].turns[-1] == ("user", "Now answer.")


async def test_the_last_turn_of_a_tool_loop_has_nothing_to_call(bench: Bench) -> None:
    bench.server.on("", Reply(calls=(Call("search", {"q": "a"}),)), results=0)
    bench.server.on("", "done", results=1)
    first = await bench.ask(tools=(SEARCH,))
    turns = (Message("assistant", "", first.calls), Message("tool", "found", call_id=first.calls[0].id))
    assert (await bench.ask(messages=turns)).output == "done"
    assert bench.server.asked[1].tools == ()


async def test_thinking_is_given_back_signed(bench: Bench) -> None:
    bench.server.on("", Reply(text="done", thinking="step by step", cut=2))
    reply = await bench.ask()
    assert reply.output == "done"
    if bench.format == "anthropic":
        assert reply.thinking == ({"type": "thinking", "thinking": "step by step ", "signature": "c2lnbmVk"},)
        await bench.ask(messages=(Message("assistant", "done", thinking=reply.thinking),))
        assert bench.sent["messages"][1]["content"][0] == reply.thinking[0]


async def test_a_schema_is_given_to_the_server(bench: Bench) -> None:
    bench.server.on("", Reply(text='{"km": 6650}', cut=3))
    reply = await bench.ask(output_schema=SCHEMA)
    assert (reply.output, reply.text) == ({"km": 6650}, '{"km": 6650}')
    asked = bench.server.asked[0]
    assert asked.schema is not None
    assert asked.schema["properties"] == SCHEMA["properties"]
    assert "JSON Schema" not in asked.text


async def test_a_schema_that_is_no_object_is_wrapped_for_the_server_alone(bench: Bench) -> None:
    bench.server.on("", '{"value": [1, 2]}')
    reply = await bench.ask(output_schema={"type": "array", "items": {"type": "integer"}})
    assert reply.output == [1, 2]
    assert bench.server.asked[0].schema is not None
    assert bench.server.asked[0].schema["type"] == "object"


@pytest.mark.parametrize("answer", ['{"km": 1}', '```json\n{"km": 1}\n```', 'Here it is: {"km": 1}. Done.'])
async def test_a_server_without_schemas_gets_it_in_words_and_is_remembered(bench: Bench, answer: str) -> None:
    parameter = "response_format" if bench.format == "openai" else "output_config"
    bench.server.refuse[parameter] = f"'{parameter}' is not supported by this model"
    bench.server.on("", answer)
    assert (await bench.ask(output_schema=SCHEMA)).output == {"km": 1}
    assert (await bench.ask(output_schema=SCHEMA)).output == {"km": 1}
    assert [parameter in asked.body for asked in bench.server.asked] == [True, False, False]
    assert '"required":["km"]' in bench.server.asked[1].text


async def test_a_refused_schema_is_put_in_words_and_others_are_still_given(bench: Bench) -> None:
    odd = {"type": "object", "properties": {"km": {"type": "string", "pattern": "a"}}, "required": ["km"]}
    texts = {
        "openai": "Invalid schema for response_format 'output': 'pattern' is not permitted.",
        "anthropic": "output_config.format.schema: property 'pattern' is not supported",
    }
    bench.server.on(
        lambda asked: asked.schema is not None and "pattern" in json.dumps(asked.schema),
        Reply(status=400, text=texts[bench.format]),
    )
    bench.server.on("", '{"km": "a"}')
    for schema in (SCHEMA, odd, SCHEMA, odd):
        assert (await bench.ask(output_schema=schema)).output == {"km": "a"}
    assert [asked.schema is not None for asked in bench.server.asked] == [True, True, False, True, False]


async def test_a_form_is_left_out_where_a_server_takes_none(bench: Bench) -> None:
    parameter = "response_format" if bench.format == "openai" else "output_config"
    bench.server.on("", "1. f()")
    form = ReplyForm(SCHEMA, "Write JSON.")
    held = await bench.ask(system="Write lines.", form=form)
    bench.server.refuse[parameter] = f"'{parameter}' is not supported by this model"
    free = [await bench.ask(system="Write lines.", form=form) for _ in range(2)]
    assert [reply.output for reply in (held, *free)] == ["1. f()"] * 3
    assert [asked.schema is not None for asked in bench.server.asked] == [True, True, False, False]
    assert [asked.system for asked in bench.server.asked] == ["Write JSON."] * 2 + ["Write lines."] * 2
    assert "JSON Schema" not in bench.server.asked[-1].text


async def test_one_mismatch_leaves_other_schemas_to_the_server(bench: Bench) -> None:
    bench.server.on("", "About 6,650 km.", "[1]")
    with pytest.raises(SchemaMismatch):
        await bench.ask(output_schema=SCHEMA)
    await bench.ask(output_schema={"type": "array"})
    assert bench.server.asked[1].schema is not None


def test_refused_schemas_are_forgotten_in_the_end(make_remote: MakeRemote) -> None:
    remote = make_remote("openai", "http://models.test/v1")
    requests = [ModelRequest("worker", "openai:m", "", "", "", output_schema={"const": n}) for n in range(3_000)]
    for request in requests:
        remote.known.learn(request, Lesson(frozenset({"response_format"})))
    assert remote.known._schemas.bytes <= MAX_KEPT_CAPABILITIES_BYTES
    assert remote.known.without(requests[-1]) == {"response_format"}
    assert remote.known.without(requests[0]) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Automatic parser generation failed: JSON schema error at #/properties/km: schema must be an object",
        "Unable to generate parser for this template. Automatic parser generation failed: At least one must be set",
        "Failed to initialize samplers: failed to parse grammar",
    ],
)
async def test_so_is_one_that_llama_cpp_cannot_compile(server: ModelServer, make_remote: MakeRemote, text: str) -> None:
    bench = Bench(server, make_remote("openai", server.openai_url), "openai")
    server.on(lambda asked: asked.schema is not None, Reply(status=400, text=text))
    server.on("", '{"km": 6650}')
    assert (await bench.ask(output_schema=SCHEMA)).output == {"km": 6650}
    assert [asked.schema is not None for asked in server.asked] == [True, False]
    server.on("", Reply(status=400, text=text))
    server.rules.reverse()
    with pytest.raises(CallRefused):
        await bench.ask()
    assert len(server.asked) == 3, "it had no schema, so it is not put again without one"


async def test_where_tools_are_offered_a_schema_is_put_in_words(bench: Bench) -> None:
    """llama.cpp holds a reply to a schema so tightly that the model can call no tool."""
    bench.server.on("", Reply(calls=(Call("search", {"query": "Nile"}),)), '{"km": 6650}')
    assert (await bench.ask(output_schema=SCHEMA, tools=(SEARCH,))).calls
    assert bench.server.asked[0].schema is None
    assert '"required":["km"]' in bench.server.asked[0].text
    assert (await bench.ask(output_schema=SCHEMA)).output == {"km": 6650}
    assert bench.server.asked[1].schema is not None


async def test_calls_that_begin_together_are_each_put_again(bench: Bench) -> None:
    """All of them have sent what the first refusal is of."""
    bench.server.refuse["temperature"] = "Unsupported parameter: temperature"
    replies = await asyncio.gather(*(bench.ask(temperature=0.2) for _ in range(10)))
    assert len(replies) == 10
    assert ["temperature" in asked.body for asked in bench.server.asked].count(True) > 1


async def test_a_server_that_does_not_heed_the_schema_gets_it_in_words_next_time(bench: Bench) -> None:
    bench.server.on("", "About 6,650 km.", '{"km": 6650}')
    with pytest.raises(SchemaMismatch, match="is not JSON: 'About 6,650 km") as caught:
        await bench.ask(output_schema=SCHEMA)
    assert caught.value.retryable
    assert (await bench.ask(output_schema=SCHEMA)).output == {"km": 6650}
    assert "JSON Schema" in bench.server.asked[1].text


@pytest.mark.parametrize("parameter", ["temperature", "stream_options"])
async def test_what_a_server_does_not_know_is_known_refusals(bench: Bench, parameter: str) -> None:
    bench.server.refuse[parameter] = f"Unsupported parameter: {parameter}"
    assert (await bench.ask(temperature=0.2)).output.startswith("no rule")
    assert parameter not in bench.sent


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_a_server_that_wants_another_limit_gets_it(bench: Bench) -> None:
    bench.server.on("", Reply(status=400, text="max_tokens is not supported here"), "fine")
    assert (await bench.ask(max_output_tokens=100)).output == "fine"
    first, second = (asked.body for asked in bench.server.asked)
    assert (first["max_tokens"], "max_tokens" in second) == (100, False)
    assert second["max_completion_tokens"] == 100


async def test_a_refused_call_is_made_once(bench: Bench) -> None:
    bench.server.on("", Reply(status=400, text="tools[0].name: does not match"))
    with pytest.raises(CallRefused, match=r"refuses the call \(400\): tools\[0\]") as caught:
        await bench.ask(output_schema=SCHEMA, temperature=1.0)
    assert not caught.value.retryable
    assert len(bench.server.asked) == 1


async def test_a_model_may_refuse(bench: Bench) -> None:
    bench.server.on("", Reply(refusal="I cannot help with that."))
    with pytest.raises(ModelRefused, match="declined to answer: I cannot help") as caught:
        await bench.ask()
    assert not caught.value.retryable


CUT = Reply(thinking="so many thoughts " * 20, text="and so few words", fault="cut")


async def test_a_failed_call_tells_what_it_used(bench: Bench) -> None:
    bench.server.on("", Reply(text="words", usage=(40, 3)), CUT, Reply(status=500))
    with pytest.raises(SchemaMismatch) as caught:
        await bench.ask(output_schema=SCHEMA)
    assert caught.value.usage == Usage(40, 3, calls=1)
    with pytest.raises(ReplyCut) as cut:
        await bench.ask()
    assert cut.value.usage.input_tokens > 0
    assert cut.value.usage.output_tokens > 40, "the server's own count is of the beginning, if there is one"
    with pytest.raises(ServerFailed) as failed:
        await bench.ask()
    assert failed.value.usage == Usage(calls=1)


async def test_a_call_of_a_tool_that_was_not_offered_is_no_answer(bench: Bench) -> None:
    bench.server.on("", Reply(text="I look.", calls=(Call("search", {}),), usage=(9, 7)))
    given: list[dict[str, Any]] = [{}, {"output_schema": SCHEMA}, {"role": "planner", "tools": (SEARCH,)}]
    for fields in given:
        with pytest.raises(BadReply, match="asks for the tool 'search', and none was offered") as caught:
            await bench.ask(**fields)
        assert (caught.value.retryable, caught.value.usage) == (True, Usage(9, 7, calls=1))


@pytest.mark.parametrize(("text", "schema"), [('{"km": 6', SCHEMA), ("", None)])
async def test_half_of_json_or_nothing_at_all_is_an_error(bench: Bench, text: str, schema: Any) -> None:
    """It says where the server cut it: at its own limit, or where the context ended."""
    bench.server.on("", Reply(text=text, stop="length", usage=(90, 37)))
    with pytest.raises(OutputCut, match="was cut at 37 tokens"):
        await bench.ask(output_schema=schema)


@pytest.mark.parametrize("role", ["worker", "joiner", "critic", "judge"])
@pytest.mark.parametrize(
    "form", ["<think>Draft: {}</think>{}", "<thinking>\n{}\n</thinking>\n{}", "{}\n</think>\n\n{}"]
)
async def test_thoughts_are_no_part_of_a_reply(bench: Bench, role: str, form: str) -> None:
    bench.server.on("", form.format("41 or so", "42"), form.format('{"km": 41}', '{"km": 42}'))
    assert (await bench.ask(role=role)).output == "42"
    assert (await bench.ask(role=role, output_schema=SCHEMA)).output == {"km": 42}


async def test_a_thought_without_an_answer_is_none(bench: Bench) -> None:
    bench.server.on("", "<think>41 or 42", Reply(text="<think>41 or 42", stop="length"))
    with pytest.raises(BadReply, match="holds a thought and no answer") as caught:
        await bench.ask()
    assert caught.value.retryable
    with pytest.raises(OutputCut):
        await bench.ask()


async def test_an_empty_reply_is_tried_again(bench: Bench) -> None:
    bench.server.on("", Reply())
    with pytest.raises(BadReply, match="is empty") as caught:
        await bench.ask()
    assert caught.value.retryable


async def test_a_server_that_does_not_stream_is_understood(bench: Bench) -> None:
    whole: dict[str, Any] = (
        {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
        if bench.format == "openai"
        else {"content": [{"type": "text", "text": "all at once"}], "stop_reason": "end_turn", "usage": {}}
    )
    bench.server.on("", Reply(body=json.dumps(whole), headers={"content-type": "application/json; charset=utf-8"}))
    assert (await bench.ask()).output == "all at once"


async def test_connections_are_kept(bench: Bench) -> None:
    bench.server.on("", Reply(status=400, text="no"))
    for _ in range(3):
        with pytest.raises(CallRefused):
            await bench.ask()
    assert bench.server.most_open == 1


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_calls_without_an_index_are_kept_apart(bench: Bench, index: int | None) -> None:
    """Ollama gives every call the index 0, others give none."""
    calls = [
        {"index": index, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("first", "second")
    ]
    choices: list[dict[str, Any]] = [{"delta": {"tool_calls": [call]}} for call in calls]
    choices.append({"delta": {}, "finish_reason": "stop"})
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\r\n\r\n" for choice in choices)
    bench.server.on("", Reply(body=body, headers={"content-type": "text/event-stream"}))
    reply = await bench.ask(tools=(SEARCH,))
    assert reply.calls == (ToolRequest("call_first", "first", {}), ToolRequest("call_second", "second", {}))
    assert reply.stop == "tools"


async def test_many_calls_at_once_do_not_wait_for_each_other(bench: Bench) -> None:
    bench.server.on("", Reply(text="ok", first_token=0.2))
    replies = await asyncio.gather(*(bench.ask() for _ in range(40)))
    assert {reply.output for reply in replies} == {"ok"}
    assert bench.server.most_open == 40


async def test_a_count_that_cannot_be_true_is_not_believed(bench: Bench) -> None:
    """Less than a third of what the texts are estimated at, three bytes a token."""
    bench.server.on("", Reply(text="long " * 90, usage=(1, 1)), Reply(text="long " * 90, usage=(90, 60)))
    assert (await bench.ask("word " * 120)).usage == Usage(200, 150, calls=1)
    assert (await bench.ask("word " * 120)).usage == Usage(90, 60, calls=1)


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        ({"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 300}}, 310),
        ({"completion_tokens": 310, "completion_tokens_details": {"reasoning_tokens": 300}}, 310),
        ({"completion_tokens": 10, "total_tokens": 410}, 310),
        ({"completion_tokens": 10, "total_tokens": "?", "completion_tokens_details": []}, 10),
        ({"completion_tokens": 10**30}, 1),
        ({"completion_tokens": True}, 1),
        ({"completion_tokens": 10, "total_tokens": 10**30}, 10),
    ],
)
@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_thoughts_are_counted_where_they_are_told(bench: Bench, usage: dict[str, Any], written: int) -> None:
    whole = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    body = json.dumps({**whole, "usage": {"prompt_tokens": 100, **usage}})
    bench.server.on("", Reply(body=body, headers={"content-type": "application/json"}))
    assert (await bench.ask()).usage == Usage(100, written, calls=1)


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_a_call_without_arguments_is_paid_too(bench: Bench) -> None:
    call = {"index": 0, "id": "x", "function": {"name": "search", "arguments": None}}
    whole = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    bench.server.on("", Reply(body=json.dumps(whole), headers={"content-type": "application/json"}))
    assert (await bench.ask(tools=(SEARCH,))).usage.input_tokens > 0


@pytest.mark.parametrize(
    ("usage", "headers", "cost"),
    [
        ({"cost": 0.00125}, {}, 1250),
        ({"cost": {"input": 0.1, "total_cost": 0.25}}, {}, 250_000),
        ({}, {"x-litellm-response-cost": "0.00000041"}, 1),
        ({"cost": 0}, {}, 0),
        ({"cost": "free"}, {"x-litellm-response-cost": "?"}, 1200),
        ({"cost": -1}, {"x-litellm-response-cost": "nan"}, 1200),
    ],
)
@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_a_told_cost_overrides_the_price(
    bench: Bench, usage: dict[str, Any], headers: dict[str, str], cost: int
) -> None:
    prices.use({"openai": {"test-model": [10_000_000, 20_000_000]}})
    whole = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    body = json.dumps({**whole, "usage": {"prompt_tokens": 100, "completion_tokens": 10, **usage}})
    bench.server.on("", Reply(body=body, headers={"content-type": "application/json", **headers}))
    try:
        assert (await bench.ask()).usage == Usage(100, 10, cost, calls=1)
    finally:
        prices.use({})


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:9"), ("HTTP_PROXY", "ftp://127.0.0.1:9"), ("NO_PROXY", "[::1]:x,::1")],
)
async def test_a_proxy_that_cannot_be_used_is_named(
    make_remote: MakeRemote, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv(variable, value)
    remote = make_remote("openai", "http://models.test/v1")
    with pytest.raises(ServerUnreachable, match=r"proxy that cannot be used: .*; check HTTP_PROXY") as caught:
        await remote.complete(ModelRequest("worker", "openai:m", "g", "p", "p"))
    assert not caught.value.retryable
