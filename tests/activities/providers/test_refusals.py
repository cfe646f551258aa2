"""A refusal teaches only what it says: of one parameter of one model, once confirmed, for an hour."""

import asyncio
import json
from typing import Any

import pytest
from doubles.model_bench import QUICK, MakeRemote
from doubles.raw_server import DONE, STOP, Answer, Script, event, raw_server, said

from sennit.activities.providers import capabilities
from sennit.activities.providers.errors import CallRefused, OutputCut, ServerFailed, error_of
from sennit.activities.providers.http_provider import HttpProvider
from sennit.activities.providers.model import ModelRequest, ProviderError
from sennit.activities.providers.settings import Server
from sennit.workflows.plan.language.call_settings import CallSettings

TOOLS = ({"name": "search", "parameters": {"type": "object", "properties": {}}},)
SCHEMA = {"type": "object", "properties": {"km": {"type": "integer"}}}
ASKED: dict[str, dict[str, Any]] = {
    "tools": {"tools": TOOLS},
    "response_format": {"output_schema": SCHEMA},
    "temperature": {"settings": CallSettings(temperature=0.2)},
    "stream": {},
    "stream_options": {},
}


def refusal(message: str, status: int = 400, **fields: Any) -> Script:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Script((body,), status, "application/json")


async def ask(remote: HttpProvider, model: str = "m", **fields: Any) -> Any:
    return await remote.complete(ModelRequest("worker", f"openai:{model}", "g", "p", "p", system="Be short.", **fields))


def answer(body: dict[str, Any]) -> Script:
    text = '{"km": 1}'
    if body["stream"]:
        return Script((said(text), STOP, DONE))
    whole = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    return Script((json.dumps(whole).encode(),), kind="application/json")


def unless(parameter: str, refused: Script) -> Answer:
    """Return a server that refuses each call with a parameter."""

    def answered(body: dict[str, Any], _count: int) -> Script:
        has = bool(body.get("stream")) if parameter == "stream" else parameter in body
        return refused if has else answer(body)

    return answered


NAMED = [
    ("tools", 400, "`tool calling` is not supported with this model", {}),
    ("tools", 501, "Tool calling is not implemented", {}),
    ("tools", 400, "The model `guard` tool use is not supported", {"code": "tool_not_supported"}),
    ("tools", 404, "No endpoints found that support tool use", {}),
    ("tools", 400, "Function calling is not enabled for models/gemma", {}),
    ("temperature", 400, "`temperature` is deprecated for this model.", {}),
    ("temperature", 400, "Unsupported value", {"param": "temperature", "code": "unsupported_value"}),
    ("response_format", 400, "model features structured outputs not support", {}),
    ("response_format", 500, "EngineCore: failed to compile json schema grammar", {}),
    ("stream_options", 400, "Unrecognized request argument supplied: stream_options", {}),
    ("stream", 400, "Your organization must be verified to stream this model.", {"param": "stream"}),
]


@pytest.mark.parametrize(("parameter", "status", "message", "fields"), NAMED)
async def test_what_a_refusal_names_is_left_out_and_nothing_else(
    make_remote: MakeRemote, parameter: str, status: int, message: str, fields: dict[str, Any]
) -> None:
    async with raw_server(unless(parameter, refusal(message, status, **fields))) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        for _ in range(2):
            await ask(remote, **ASKED[parameter])
    first, second, third = server.asked
    left_out = {name for name in first if first[name] != second.get(name)} - {"messages"}
    assert left_out <= {parameter, *(("stream_options",) if parameter == "stream" else ())}
    assert second == third, "it is remembered"


async def test_a_field_that_names_a_setting_counts_before_words_that_name_tools(make_remote: MakeRemote) -> None:
    message = "Function tools with reasoning_effort are not supported for this model. Please use /v1/responses instead."
    refused = refusal(message, param="reasoning_effort")
    async with raw_server(unless("reasoning_effort", refused)) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        await ask(remote, tools=TOOLS, settings=CallSettings(effort="low"))
    assert "reasoning_effort" not in server.asked[-1]
    assert "tools" in server.asked[-1]


async def test_what_pydantic_locates_is_left_out(make_remote: MakeRemote) -> None:
    problem = {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted",
               "input": {"tools": "not supported"}}  # fmt: skip
    refused = Script((json.dumps({"detail": [problem]}).encode(),), 422, "application/json")
    async with raw_server(unless("stream_options", refused)) as server:
        await ask(make_remote("openai", f"{server.url}/v1", "", QUICK), tools=TOOLS)
    assert "stream_options" not in server.asked[-1]
    assert "tools" in server.asked[-1]


OTHERS = [
    (400, "Function call is missing a thought_signature in functionCall parts."),
    (400, "tools[0].function.parameters: schema is not supported"),
    (400, "messages.3.tool_calls.0: tool_call_id is not expected here"),
    (500, 'error parsing tool call: raw=\'{"query": "does it not support streaming and tools"}\''),
    (500, "the model wrote `tools are not supported here, and streaming is not supported either` and stopped"),
    (500, "upstream: tools server crashed while streaming"),
]


@pytest.mark.parametrize(("status", "message"), OTHERS)
async def test_a_refusal_of_something_else_switches_nothing_off(
    make_remote: MakeRemote, status: int, message: str
) -> None:
    def answered(body: dict[str, Any], count: int) -> Script:
        return refusal(message, status) if count == 1 else answer(body)

    async with raw_server(answered) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        with pytest.raises((CallRefused, ServerFailed)):
            await ask(remote, tools=TOOLS)
        assert remote.known.notes("openai:m") == []
        await ask(remote, tools=TOOLS)
    assert [("tools" in body, body["stream"]) for body in server.asked] == [(True, True)] * 2


async def test_what_the_next_call_does_not_confirm_is_not_learned(make_remote: MakeRemote) -> None:
    async with raw_server(refusal("tools are not supported")) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        with pytest.raises(CallRefused):
            await ask(remote, tools=TOOLS)
        assert remote.known.notes("openai:m") == []
    assert len(server.asked) == 2


async def test_a_lesson_is_of_one_model_and_for_an_hour(make_remote: MakeRemote) -> None:
    async with raw_server(unless("tools", refusal("tools are not supported"))) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        now = 0.0
        remote.known.clock = lambda: now
        await ask(remote, tools=TOOLS)
        assert "takes no tools" in remote.known.notes("openai:m")[0]
        assert remote.known.notes("openai:other") == []
        now = capabilities.FORGOTTEN_AFTER
        assert remote.known.notes("openai:m") == []
        await ask(remote, tools=TOOLS)
    assert ["tools" in body for body in server.asked] == [True, False, True, False]


@pytest.mark.parametrize(
    "message",
    [
        "too many tokens: max tokens must be less than or equal to 300, the maximum output length for this model",
        "max_tokens is too large: 4096. This model supports at most 300 completion tokens",
        "This request requires more credits, or fewer max_tokens. You can only afford 300",
    ],
)
async def test_a_longest_reply_is_kept_to(make_remote: MakeRemote, message: str) -> None:
    def answered(body: dict[str, Any], _count: int) -> Script:
        if body["max_tokens"] > 300:
            return refusal(message, 402 if "credits" in message else 400)
        return answer(body)

    async with raw_server(answered) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        for _ in range(2):
            await ask(remote, max_output_tokens=4096)
    assert [body["max_tokens"] for body in server.asked][1:] == [300, 300]


WAITS = [
    ("Rate limit reached. Please try again in 7.66s.", 7.66),
    ("try again in 350ms", 0.35),
    ("Please retry after 20 seconds.", 20.0),
    ("Please try again in 1m30s.", 60.0),
    ("Too many requests, wait for 2 minutes", 60.0),
    ("quota: retryDelay: 34s", 34.0),
    ("Limit 6000, used 5800", None),
]


@pytest.mark.parametrize(("message", "seconds"), WAITS)
def test_a_wait_in_words_is_heeded(message: str, seconds: float | None) -> None:
    error = error_of(Server("openai", "http://x/v1"), "openai:m", 429, {}, json.dumps({"error": {"message": message}}))
    assert error.retry_after == (pytest.approx(seconds) if seconds is not None else None)


MEANT = [
    (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, "KeyRefused", False),
    (429, {"error": {"message": "suspended", "type": "exceeded_current_quota_error"}}, "QuotaUsedUp", False),
    (400, {"error": {"message": "ThrottlingException: Too many tokens, please wait"}}, "RateLimited", True),
    (400, {"error": {"message": "no", "code": "tool_use_failed"}}, "BadReply", True),
    (400, {"error": {"message": "Failed to generate JSON", "code": "json_validate_failed"}}, "BadReply", True),
    (403, {"error": {"message": "Your input was flagged"}}, "ModelRefused", False),
    (400, {"error": {"message": "x", "code": "content_filter"}}, "ModelRefused", False),
]


@pytest.mark.parametrize(("status", "body", "kind", "retryable"), MEANT)
def test_words_count_where_the_status_misleads(status: int, body: Any, kind: str, retryable: bool) -> None:
    error: ProviderError = error_of(Server("openai", "http://x/v1"), "openai:m", status, {}, json.dumps(body))
    assert (type(error).__name__, error.retryable) == (kind, retryable)


async def test_a_reply_that_is_cut_at_the_longest_of_its_model_is_not_asked_for_again(make_remote: MakeRemote) -> None:
    def answered(body: dict[str, Any], _count: int) -> Script:
        most = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000
        if most > 2_048:
            return refusal(f"max_tokens is too large: {most}. This model supports at most 2048 completion tokens")
        used = {"prompt_tokens": 9, "completion_tokens": most, "total_tokens": 9 + most}
        return Script((said("The Nile " * 50, "length"), event({"choices": [], "usage": used}), DONE))

    async with raw_server(answered) as server:
        remote = make_remote("openai", f"{server.url}/v1", "", QUICK)
        with pytest.raises(OutputCut, match="was cut at 2,048 tokens; its server gives no more"):
            await asyncio.wait_for(ask(remote), 10)
    assert len(server.asked) == 3, "cut at 1,000, refused for 4,096, and cut at 2,048"


async def test_a_reply_may_be_as_long_as_the_account_can_pay_for(make_remote: MakeRemote) -> None:
    def answered(body: dict[str, Any], _count: int) -> Script:
        if body.get("max_tokens", 65_536) > 1_200:
            words = "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens"
            return refusal(f"{words}, but can only afford 1200.", 402)
        return answer(body)

    async with raw_server(answered) as server:
        reply = await ask(make_remote("openai", f"{server.url}/v1", "", QUICK))
    assert (reply.text, server.asked[-1]["max_tokens"]) == ('{"km": 1}', 1_200)
