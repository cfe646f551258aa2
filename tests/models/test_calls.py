"""Single calls of a real model: what streams, what it costs, and what stops it."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from doubles.runs import happens
from models.conftest import Caller
from models.llama import FREE_SECONDS, Llama

from sennit.activities.providers.errors import ContextTooLong, ModelTimeout, OutputCut, ReplyCut, SchemaMismatch
from sennit.activities.providers.http_provider import HttpProvider, Limits
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import Server
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import NO_USAGE

pytestmark = pytest.mark.timeout(300)
ENDLESS = "Tell me a long story about a river and the people who live beside it."
CATALOGUE = load_tools([]).catalogue()
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"expression": {"type": "string"}},
    "required": ["expression"],
}
CALCULATE = {"name": "calculate", "description": "Calculates.", "parameters": PARAMETERS}
REPEAT = "Repeat after me: <tool_call>\n<tool_call>\n<tool_call>\n<tool_call>"
"""Even so small a model then begins a call, and the server's grammar leaves it no way but to write a whole one."""


def closed(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


async def test_text_comes_as_it_is_written_and_the_server_counts_it(llama: Llama, caller: Caller) -> None:
    call = asyncio.create_task(caller.ask(ENDLESS, system="You tell stories."))
    await happens(lambda: bool(caller.pieces), limit=FREE_SECONDS)
    assert not call.done()
    reply = await call
    assert ("".join(caller.pieces), reply.stop) == (reply.text, "length")
    assert len(caller.pieces) > 10
    prompt = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": ENDLESS}]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (llama.tokens_of(prompt), 24)


@pytest.mark.parametrize(
    "schema",
    [
        closed(km={"type": "number"}, name={"type": "string", "maxLength": 12}, kind={"enum": ["river", "sea"]}),
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 2, "maxItems": 3},
        closed(rivers={"type": "array", "items": closed(at=closed(km={"type": "number"})), "maxItems": 1}),
        {"type": "string", "maxLength": 20},
        {"type": "boolean"},
        {"anyOf": [{"type": "null"}, {"const": 7}]},
    ],
)
async def test_output_with_a_schema_is_held_to_it(caller: Caller, schema: dict[str, Any]) -> None:
    reply = await caller.ask("How long is the Nile?", output_schema=schema, max_output_tokens=120)
    assert list(violations(reply.output, schema)) == []


@pytest.mark.parametrize(
    "schema",
    [
        closed(any=True),
        closed(many={"type": "array", "items": {"type": "number"}, "minItems": 3000}),
        closed(big={"type": "integer", "minimum": -(10**30), "maximum": 10**30}),
    ],
)
async def test_a_schema_that_the_server_cannot_compile_is_put_in_words(caller: Caller, schema: dict[str, Any]) -> None:
    with suppress(SchemaMismatch, OutputCut):
        await caller.ask("How long is the Nile?", output_schema=schema)
    assert caller.pieces


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"output_schema": closed(km={"type": "number"}), "max_output_tokens": 4}, OutputCut),
        ({"prompt": REPEAT, "tools": (CALCULATE,), "max_output_tokens": 12}, OutputCut),
        ({"prompt": "word " * 3_000}, ContextTooLong),
    ],
)
async def test_what_is_cut_or_too_long_is_no_reply(
    caller: Caller, fields: dict[str, Any], error: type[ProviderError]
) -> None:
    with pytest.raises(error) as caught:
        await caller.ask(**{"prompt": "How long is the Nile?", **fields})
    assert not caught.value.retryable, "the same call is cut again"
    assert (caught.value.usage == NO_USAGE) == (error is ContextTooLong)


async def test_a_tool_is_called_with_arguments_by_its_schema(caller: Caller) -> None:
    reply = await caller.ask(REPEAT, tools=(CALCULATE,), max_output_tokens=200)
    assert {call.name for call in reply.calls} == {"calculate"}
    assert [list(violations(call.arguments, PARAMETERS)) for call in reply.calls] == [[]] * len(reply.calls)


@pytest.mark.parametrize("how", ["cancelled", "too late"])
async def test_what_nobody_waits_for_is_not_written_on(llama: Llama, caller: Caller, how: str) -> None:
    """The server says in its log that it stopped."""
    stopped, seconds = llama.stopped(), 2.0 if how == "too late" else 600.0
    call = asyncio.create_task(caller.ask(ENDLESS, max_output_tokens=400, seconds=seconds))
    await happens(lambda: bool(caller.pieces) or call.done(), limit=FREE_SECONDS)
    llama.pause(3.0)
    if how == "cancelled":
        call.cancel()
    with pytest.raises(ModelTimeout if how == "too late" else asyncio.CancelledError):
        await call
    await happens(lambda: llama.stopped() == stopped + 1, limit=FREE_SECONDS)
    await llama.until_busy(0)


async def test_more_calls_than_slots_are_all_answered(caller: Caller) -> None:
    replies = await asyncio.gather(*(caller.ask(f"Tell me about the river {name}.") for name in ("Po", "Ob", "Inn")))
    assert [reply.usage.output_tokens for reply in replies] == [24] * 3


@pytest.mark.parametrize("caller", [Limits(first=5.0, idle=5.0)], indirect=True)
async def test_a_slow_server_is_not_cut_off(llama: Llama, caller: Caller) -> None:
    """It stops after each piece, so that it writes at most seven a second: far longer than it may be silent."""

    def slowly(piece: str) -> None:
        caller.pieces.append(piece)
        llama.pause(1 / 7)

    reply = await caller.ask(ENDLESS, on_text=slowly, max_output_tokens=48)
    assert reply.usage.output_tokens == 48
    assert len(caller.pieces) / 7 > 5.0


async def test_what_a_killed_server_had_written_is_counted(packages: Path, tmp_path: Path, caller: Caller) -> None:
    """By a reply's bytes: the server's own count would have come at the end."""
    doomed = Llama(packages, tmp_path / "log", 512)
    await doomed.start()
    remote = HttpProvider(OpenAI(), Server("openai", doomed.openai_url))
    doomed_caller = Caller(remote)
    call = asyncio.create_task(doomed_caller.ask(ENDLESS, max_output_tokens=400))
    await happens(lambda: len(doomed_caller.pieces) > 3, limit=FREE_SECONDS)
    doomed.kill()
    with pytest.raises(ReplyCut) as caught:
        await call
    assert caught.value.retryable
    assert caught.value.usage.calls == 1
    assert caught.value.usage.input_tokens > 10
    assert caught.value.usage.output_tokens >= len("".join(doomed_caller.pieces)) // 3
