"""A server that misbehaves costs a call its time at most: a short, typed error, and nothing more in memory."""

import asyncio
import json
import tracemalloc

import pytest
from doubles.model_bench import KEY, Bench, MakeRemote, url_of

from sennit.activities.providers.http_provider import Limits
from sennit.activities.providers.model import ProviderError
from sennit.testing.model_rules import Reply
from sennit.workflows.plan.language.limits import CALL_SECONDS

# How long a call may take is no matter of a format.
any_format = pytest.mark.parametrize("bench", ["openai"], indirect=True)
WORDS = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(
    ("fault", "kind", "retryable"),
    [
        ("cut", "ReplyCut", True),
        ("reset", "ReplyCut", True),
        ("huge", "ReplyTooLarge", False),
        ("bomb", "ReplyTooLarge", False),
        ("html", "BadReply", True),
        ("not utf-8", "BadReply", True),
        ("not json", "BadReply", True),
        ("odd json", "BadReply", True),
        ("error event", "ServerFailed", True),
    ],
)
async def test_a_fault_is_a_short_typed_error(bench: Bench, fault: str, kind: str, retryable: bool) -> None:
    await check_fault(bench, fault, kind, retryable)


@any_format
@pytest.mark.parametrize("fault", ["hang", "slow head", "hang in stream", "slow loris"])
async def test_a_server_that_takes_too_long_is_one_too(bench: Bench, fault: str) -> None:
    await check_fault(bench, fault, "ModelTimeout", True)


async def check_fault(bench: Bench, fault: str, kind: str, retryable: bool) -> None:
    bench.server.on("", Reply(text=WORDS, fault=fault))  # type: ignore[arg-type]
    with pytest.raises(ProviderError) as caught:
        await bench.ask(seconds=3.0 if kind == "ModelTimeout" else 20.0)
    assert (type(caught.value).__name__, caught.value.retryable) == (kind, retryable)
    assert 10 < len(str(caught.value)) <= 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", ["huge", "bomb"])
async def test_a_flood_is_bounded_in_memory(bench: Bench, fault: str) -> None:
    bench.server.on("", Reply(fault=fault))  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        with pytest.raises(ProviderError, match=r"sent over [\d,]+ bytes"):
            await bench.ask()
        grown = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert grown < 32 * 1024 * 1024


async def test_a_complete_reply_without_an_end_is_taken(bench: Bench) -> None:
    bench.server.on("", Reply(text=WORDS, fault="no end"))
    assert (await bench.ask(seconds=20)).output == WORDS


@any_format
async def test_a_stream_that_goes_on_for_ever_ends_with_the_call(bench: Bench) -> None:
    bench.server.on("", Reply(text="word " * 1000, rate=10))
    with pytest.raises(ProviderError, match="the reply took too long"):
        await bench.ask(seconds=1.2)


async def test_a_model_that_rambles_is_stopped_where_its_server_does_not(bench: Bench, make_remote: MakeRemote) -> None:
    """By its length: how fast it comes is no matter here."""
    bench.remote = make_remote(bench.format, url_of(bench.server, bench.format), limits=Limits())
    bench.server.on("", Reply(text="word " * 30_000))
    reply = await bench.ask(role="planner", seconds=60, max_output_tokens=1)
    assert reply.stop == "length"
    assert len(reply.text) < 70_000
    with pytest.raises(ProviderError, match="raise `max_tokens`, or ask for less"):
        await bench.ask(seconds=60, max_output_tokens=1)


@any_format
async def test_a_slow_reply_is_read_to_its_end_as_long_as_it_goes_on(bench: Bench) -> None:
    """Longer than any silence that is borne."""
    bench.server.on("", Reply(text="word " * 20, rate=8))
    assert (await bench.ask(seconds=CALL_SECONDS)).text == "word " * 20


@any_format
async def test_silence_is_borne_longer_before_a_long_prompt_is_read(bench: Bench) -> None:
    bench.server.on("", Reply(text=WORDS, first_token=3.5))
    with pytest.raises(ProviderError, match="in time"):
        await bench.ask()
    assert (await bench.ask("long " * 200)).text == WORDS


@any_format
async def test_a_cancelled_call_closes_its_connection(bench: Bench) -> None:
    bench.server.on("", Reply(text="word " * 1000, rate=10))
    call = asyncio.create_task(bench.ask(seconds=60))
    async with asyncio.timeout(50):
        while not bench.pieces:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while bench.server.open:
            await asyncio.sleep(0.01)


async def test_a_server_that_is_down_is_named_with_its_variable(make_remote: MakeRemote, unused_tcp_port: int) -> None:
    remote = make_remote("openai", f"http://127.0.0.1:{unused_tcp_port}/v1")
    with pytest.raises(ProviderError) as caught:
        await remote.default_model()
    assert (type(caught.value).__name__, caught.value.retryable) == ("ServerUnreachable", True)
    assert f"http://127.0.0.1:{unused_tcp_port}/v1 cannot be reached" in str(caught.value)
    assert str(caught.value).endswith("check OPENAI_BASE_URL")


async def test_a_wrong_key_is_reported_without_its_value(bench: Bench) -> None:
    bench.server.key = "another"
    with pytest.raises(ProviderError) as caught:
        await bench.ask()
    variable = f"{bench.format.upper()}_API_KEY"
    assert (type(caught.value).__name__, caught.value.retryable) == ("KeyRefused", False)
    assert f"refuses the key (401); check {variable}" in str(caught.value)
    assert KEY not in str(caught.value)


async def test_an_unknown_model_is_named(bench: Bench) -> None:
    with pytest.raises(ProviderError, match=r"has no model 'nobody' \(404\); change SENNIT_MODEL") as caught:
        await bench.ask(model="nobody")
    assert not caught.value.retryable


async def test_an_answer_of_another_place_is_no_list_of_models(bench: Bench) -> None:
    bench.server.models = ("a", "b")
    with pytest.raises(ProviderError, match=r"has 2 models \(a, b\); set SENNIT_MODEL=\w+:NAME"):
        await bench.remote.default_model()
    bench.server.models = ("only",)
    assert await bench.remote.default_model() == f"{bench.format}:only"


async def test_deep_json_breaks_nothing(bench: Bench) -> None:
    deep = json.dumps({"choices": "[" * 10_000}) + "[" * 100_000
    bench.server.on("", Reply(body=f"data: {deep}\n\n", headers={"content-type": "text/event-stream"}))
    with pytest.raises(ProviderError, match="what is no JSON"):
        await bench.ask()
