"""Models of the extra `pydantic-ai` before servers that answer as their makers' do, over HTTP."""

import json
from collections.abc import AsyncIterator, Callable

import pytest
from doubles.maker_servers import BEDROCK_FAILS, CANARY, MAKERS, SIGNED, Maker, reach
from doubles.model_bench import QUICK
from doubles.raw_server import RawServer, Script, raw_server

from sennit.activities.providers.errors import KeyRefused, OutputCut, RateLimited, UnknownModel
from sennit.activities.providers.model import Message, ModelReply, ModelRequest, ProviderError
from sennit.activities.providers.pydantic_ai.provider import PydanticAI
from sennit.activities.providers.settings import Server
from sennit.workflows.plan.language.call_settings import CallSettings

SEARCH = {
    "name": "search",
    "description": "Finds passages.",
    "schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
}
EACH = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())


class Bench:
    """pydantic-ai before a server whose next answers are `scripts`; `pieces` is the text as it was streamed."""

    def __init__(self, server: RawServer, scripts: list[Script]) -> None:
        self.server, self.scripts = server, scripts
        self.remote = PydanticAI(Server("pydantic-ai", ""), QUICK)
        self.pieces = list[str]()

    async def ask(self, maker: Maker, *scripts: Script, **fields: object) -> ModelReply:
        self.scripts[:] = scripts
        name = f"pydantic-ai:{maker.model}"
        request = ModelRequest("worker", name, "Which?", "Which?", "Which?", on_text=self.pieces.append, **fields)  # type: ignore[arg-type]
        return await self.remote.complete(request)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    scripts = list[Script]()
    answer: Callable[[object, int], Script] = lambda _body, _count: scripts.pop(0)  # noqa: E731
    async with raw_server(answer) as server:
        reach(monkeypatch, server.url)
        found = Bench(server, scripts)
        yield found
        await found.remote.close()


@EACH
async def test_a_reply_streams_with_its_counts(bench: Bench, maker: Maker) -> None:
    reply = await bench.ask(maker, maker.script(maker.text), system="You are kind.", max_output_tokens=71)
    assert (reply.text, bench.pieces, reply.stop) == ("Hello world", ["Hello ", "world"], "end")
    used = reply.usage
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (1200, 10, maker.cached)
    sent = json.dumps(bench.server.asked[-1])
    assert "You are kind." in sent
    assert ": 71" in sent
    assert reply.usage.cost > 0


@EACH
async def test_a_tool_loop_gives_back_what_the_server_wants(bench: Bench, maker: Maker) -> None:
    first = await bench.ask(maker, maker.script(maker.call), tools=(SEARCH,))
    assert [(call.name, call.arguments) for call in first.calls] == [("search", {"q": "Nile"})]
    assert first.stop == "tools"
    kept = tuple(json.loads(json.dumps(first.thinking)))  # as it is stored between the turns
    turn = Message("assistant", first.text, first.calls, thinking=kept, origin=first.origin)
    result = Message("tool", "6,650 km", call_id=first.calls[0].id)
    reply = await bench.ask(maker, maker.script(maker.text), tools=(SEARCH,), messages=(turn, result))
    assert reply.text == "Hello world"
    sent = json.dumps(bench.server.asked[-1])
    assert maker.returned in sent
    assert "6,650 km" in sent


@EACH
async def test_another_model_gets_no_thoughts_of_the_first(bench: Bench, maker: Maker) -> None:
    first = await bench.ask(maker, maker.script(maker.call), tools=(SEARCH,))
    turn = Message("assistant", first.text, first.calls, thinking=first.thinking, origin="pydantic-ai:google:other")
    result = Message("tool", "6,650 km", call_id=first.calls[0].id)
    reply = await bench.ask(maker, maker.script(maker.text), tools=(SEARCH,), messages=(turn, result))
    assert "goes on with turns of pydantic-ai:google:other" in reply.warnings[0]
    sent = json.dumps(bench.server.asked[-1])
    assert SIGNED not in sent
    assert "A river." not in sent


@EACH
async def test_half_a_reply_is_none(bench: Bench, maker: Maker) -> None:
    for _ in range(2):  # it is never believed later either
        with pytest.raises(ProviderError) as caught:
            await bench.ask(maker, maker.script(maker.half))
        assert caught.value.retryable
    with pytest.raises(OutputCut):
        await bench.ask(maker, maker.script(maker.cut))


@EACH
async def test_refusals_have_their_types_and_show_no_key(bench: Bench, maker: Maker) -> None:
    for (status, body), kind in zip(maker.refusals, (RateLimited, KeyRefused, UnknownModel), strict=True):
        with pytest.raises(ProviderError) as caught:
            await bench.ask(maker, Script([json.dumps(body).encode()], status, "application/json"))
        assert type(caught.value) is kind
        assert caught.value.retryable is (kind is RateLimited)
        assert CANARY not in str(caught.value)
    assert len(bench.server.asked) == len(maker.refusals)  # the SDKs make no call again


async def test_bedrock_may_throttle_in_the_midst_of_a_reply(bench: Bench) -> None:
    maker = MAKERS["bedrock"]
    with pytest.raises(RateLimited) as caught:
        await bench.ask(maker, maker.script(BEDROCK_FAILS))
    assert caught.value.retryable


async def test_the_library_leaves_out_what_a_model_does_not_take_and_only_logs_it(bench: Bench) -> None:
    maker = MAKERS["openai-responses"]
    with pytest.warns(UserWarning, match="temperature"):
        await bench.ask(maker, maker.script(maker.text), settings=CallSettings(temperature=0.2))
    assert "temperature" not in bench.server.asked[-1]
