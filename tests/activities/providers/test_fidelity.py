"""The model server is what the official clients take it for: their packages read every kind of answer it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
from doubles.model_bench import KEY

from sennit.testing.model_rules import Call, Reply
from sennit.testing.models import ModelServer

if TYPE_CHECKING:  # three seconds of imports that only the process which runs these tests is to spend
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

TEXT = "The Nile is 6,650 km long — “about”."
CALL = Call("search", {"query": "Nile"})
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string"}}}
TOOL: Any = {"type": "function", "function": {"name": "search", "parameters": PARAMETERS}}
ASKED: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture
async def openai(server: ModelServer) -> AsyncIterator[AsyncOpenAI]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=server.openai_url, api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
async def anthropic(server: ModelServer) -> AsyncIterator[AsyncAnthropic]:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(base_url=server.url, api_key=KEY, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("cut", ["event", "random", 1])
async def test_openai_reads_the_stream(server: ModelServer, openai: AsyncOpenAI, cut: Any) -> None:
    server.on("", Reply(text=TEXT, calls=(CALL,), usage=(5, 9), cut=cut))
    async with openai.chat.completions.stream(
        model="test-model", messages=ASKED, tools=[TOOL], stream_options={"include_usage": True}
    ) as stream:
        whole = await stream.get_final_completion()
    message = whole.choices[0].message
    assert (message.content, whole.choices[0].finish_reason) == (TEXT, "tool_calls")
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"query": "Nile"}'
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (5, 9)


async def test_openai_reads_a_whole_reply_the_models_and_the_errors(server: ModelServer, openai: AsyncOpenAI) -> None:
    from openai import NotFoundError, RateLimitError

    server.on("", Reply(text=TEXT), Reply(refusal="no"), Reply(status=429, text="slow", headers={"retry-after": "1"}))
    whole = await openai.chat.completions.create(model="test-model", messages=ASKED)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (TEXT, "stop")
    refused = await openai.chat.completions.create(model="test-model", messages=ASKED)
    assert refused.choices[0].message.refusal == "no"
    assert [model.id async for model in openai.models.list()] == ["test-model"]
    with pytest.raises(RateLimitError, match="slow"):
        await openai.chat.completions.create(model="test-model", messages=ASKED)
    with pytest.raises(NotFoundError, match="does not exist"):
        await openai.chat.completions.create(model="nobody", messages=ASKED)


@pytest.mark.parametrize("cut", ["event", "random", 1])
async def test_anthropic_reads_the_stream(server: ModelServer, anthropic: AsyncAnthropic, cut: Any) -> None:
    server.on("", Reply(text=TEXT, calls=(CALL,), thinking="first think", usage=(5, 9), cut=cut))
    tool: Any = {"name": "search", "input_schema": PARAMETERS}
    async with anthropic.messages.stream(model="test-model", messages=ASKED, tools=[tool], max_tokens=100) as stream:
        whole = await stream.get_final_message()
    thought, text, call = whole.content
    assert thought.type == "thinking"
    assert (thought.thinking.strip(), thought.signature) == ("first think", "c2lnbmVk")
    assert text.type == "text"
    assert text.text == TEXT
    assert call.type == "tool_use"
    assert (call.name, call.input, whole.stop_reason) == ("search", {"query": "Nile"}, "tool_use")
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (5, 9)


async def test_anthropic_reads_a_whole_reply_the_models_and_the_errors(
    server: ModelServer, anthropic: AsyncAnthropic
) -> None:
    from anthropic import APIStatusError, RateLimitError

    limited = Reply(status=429, text="slow", code="rate_limit_error", headers={"retry-after": "1"})
    server.on("", Reply(text=TEXT), Reply(refusal="no"), limited, Reply(text=TEXT, fault="error event"))

    async def ask(model: str = "test-model") -> Any:
        return await anthropic.messages.create(model=model, messages=ASKED, max_tokens=100)

    whole = await ask()
    assert (whole.content[0].text, whole.stop_reason) == (TEXT, "end_turn")
    assert (await ask()).stop_reason == "refusal"
    assert [model.id async for model in anthropic.models.list()] == ["test-model"]
    with pytest.raises(RateLimitError, match="slow"):
        await ask()
    with pytest.raises(APIStatusError, match="overloaded"):
        async with anthropic.messages.stream(model="test-model", messages=ASKED, max_tokens=100) as stream:
            await stream.get_final_message()
    with pytest.raises(APIStatusError, match="does not exist"):
        await ask("nobody")
