"""The prices that quotes are made with."""

import json
from collections.abc import Iterator

import pytest
from doubles.model_bench import Bench

from sennit.activities.providers import prices
from sennit.activities.providers.prices import DEFAULTS, Price, price_list, price_of, prices_of
from sennit.activities.providers.settings import ModelSettings
from sennit.testing.model_rules import Reply
from sennit.workflows.plan.bounded_cache import BoundedCache

USUAL = f"openai:{DEFAULTS['openai']}"


@pytest.mark.parametrize(
    ("env", "worker", "critic"),
    [
        ({}, (0, 0), (0, 0)),
        ({"SENNIT_MODEL": "openai", "OPENAI_API_KEY": "k"}, price_of(USUAL), price_of(USUAL)),
        ({"SENNIT_MODEL_CRITIC": "openai:gpt-5,offline"}, (0, 0), price_of("openai:gpt-5")),
        ({"SENNIT_MODEL": "openai", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, None, None),
    ],
)
def test_each_role_has_the_price_of_its_first_model_where_one_is_known(
    env: dict[str, str], worker: tuple[int, int] | None, critic: tuple[int, int] | None
) -> None:
    listed = price_list(ModelSettings.read(env))
    assert (listed.get("worker"), listed.get("critic")) == (worker, critic)
    assert listed["openai:gpt-5"] == price_of("openai:gpt-5")


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the extra has said, and have it not installed."""
    monkeypatch.setattr(prices, "_KEPT", BoundedCache(1 << 20, lambda _: 1))
    monkeypatch.setattr(prices, "_library", lambda: None)


@pytest.fixture
def table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices where the extra is not installed."""
    without(monkeypatch)


@pytest.fixture
def own() -> Iterator[None]:
    """Prices of the operator's own."""
    prices.use({"openai": {"gpt-4o": {"input": 10, "output": 20, "cached": 1}, "mine": [3, 4]}})
    yield
    prices.use({})


@pytest.mark.usefixtures("own")
def test_prices_of_ones_own_come_first() -> None:
    assert prices_of("openai:gpt-4o") == Price(10, 20, 1, 10)
    assert prices_of("openai:mine") == Price(3, 4, 3, 3), "without a price of the cache it gives no discount"


@pytest.mark.usefixtures("table_alone")
@pytest.mark.parametrize(
    ("model", "prompt", "price"),
    [
        ("openai:gpt-4o", 0, Price(2_500_000, 10_000_000, 1_250_000, 2_500_000)),
        ("openai:gpt-4o-2024-08-06", 0, Price(2_500_000, 10_000_000, 1_250_000, 2_500_000)),
        ("anthropic:claude-sonnet-4-5", 200_000, Price(3_000_000, 15_000_000, 300_000, 3_750_000)),
        ("anthropic:claude-sonnet-4-5", 200_001, Price(6_000_000, 22_500_000, 600_000, 7_500_000)),
        ("openai:nobody", 0, None),
        ("openai:mistral-large", 0, None),
    ],
)
def test_without_the_extra_a_short_table_applies(model: str, prompt: int, price: Price | None) -> None:
    assert prices_of(model, prompt) == price


def test_the_extra_knows_the_models_of_the_table_at_the_same_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices")
    names = [f"{provider}:{name}" for provider in ("openai", "anthropic") for name in prices._DATA[provider]]
    known = {name: prices.prices_of(name) for name in names}
    assert prices._library_model("openai", "gpt-4o") is not None
    without(monkeypatch)
    differing = [name for name in names if known[name] != prices.prices_of(name)]
    assert differing == []


def test_the_extra_knows_long_prompts_and_models_that_the_table_lacks() -> None:
    pytest.importorskip("genai_prices")
    short, long = (prices_of("anthropic:claude-sonnet-4-5", prompt) for prompt in (200_000, 200_001))
    assert (short, long) == (
        Price(3_000_000, 15_000_000, 300_000, 3_750_000),
        Price(6_000_000, 22_500_000, 600_000, 7_500_000),
    )
    assert "openai:gpt-3.5-turbo" not in price_list(ModelSettings.read({}))
    assert price_of("openai:gpt-3.5-turbo") is not None


CACHED = {
    "openai": {
        "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 800}},
    },
    "anthropic": {
        "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_read_input_tokens": 800,
            "cache_creation_input_tokens": 100,
        },
    },
}


@pytest.mark.parametrize("extra", [True, False], ids=["extra", "table"])
async def test_cached_tokens_are_counted_at_their_price(
    bench: Bench, request: pytest.FixtureRequest, extra: bool
) -> None:
    if not extra:
        request.getfixturevalue("table_alone")
    model, cost = {"openai": ("gpt-4o", 500 + 1000 + 100), "anthropic": ("claude-opus-5", 500 + 400 + 625 + 250)}[
        bench.format
    ]
    bench.server.models = (model,)
    bench.server.on("", Reply(body=json.dumps(CACHED[bench.format])))
    usage = (await bench.ask(model=model)).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.cost) == (1000, 800, 10, cost)


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_cached_tokens_are_counted_where_moonshot_has_them(bench: Bench) -> None:
    """earendil-works/pi#8119"""
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "cached_tokens": 800}
    choice = {"delta": {"content": "yes"}, "finish_reason": "stop", "usage": usage}
    bench.server.on("", Reply(body=f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"))
    used = (await bench.ask()).usage
    assert (used.input_tokens, used.cached_tokens, used.output_tokens) == (1000, 800, 10)


@pytest.mark.parametrize("bench", ["anthropic"], indirect=True)
async def test_cached_tokens_of_the_first_event_count_if_the_last_leaves_them_out(bench: Bench) -> None:
    first = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 50}
    events = (
        {"type": "message_start", "message": {"usage": first}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "yes"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": None},
        },
        {"type": "message_stop"},
    )
    bench.server.on("", Reply(body="".join(f"data: {json.dumps(event)}\n\n" for event in events)))
    used = (await bench.ask()).usage
    assert (used.input_tokens, used.cached_tokens, used.output_tokens) == (950, 800, 10)


@pytest.mark.parametrize("bench", ["anthropic"], indirect=True)
async def test_anthropic_is_asked_to_keep_what_the_next_call_begins_with(bench: Bench) -> None:
    tool = {"name": "search", "description": "", "parameters": {"type": "object"}}
    kept = {"type": "ephemeral"}
    await bench.ask(system="Be terse.")
    assert bench.sent["system"] == [{"type": "text", "text": "Be terse.", "cache_control": kept}]
    assert "cache_control" not in json.dumps(bench.sent["messages"]), "nothing begins with a single call"
    await bench.ask(system="Be terse.", tools=(tool,))
    assert bench.sent["messages"][-1]["content"][-1]["cache_control"] == kept
    bench.server.on(
        lambda asked: "cache_control" in json.dumps(asked.body),
        Reply(status=400, text="system.0.cache_control: Extra inputs are not permitted"),
    )
    bench.server.rules.reverse()
    await bench.ask(system="Be terse.")
    assert bench.sent["system"] == "Be terse."


def test_a_list_of_prices_does_not_wait_for_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise AssertionError("it takes a second")

    without(monkeypatch)
    monkeypatch.setattr(prices, "_library", load)
    assert price_list(ModelSettings.read({"SENNIT_MODEL": "openai", "OPENAI_API_KEY": "k"}))["worker"] is not None
