"""Which model serves which role, what is refused at start, and when the next of a list takes over."""

import math
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from doubles.model_bench import KEY

from sennit.activities.llm.metrics import CallMeter
from sennit.activities.llm.models import Models
from sennit.activities.providers.http_provider import Limits
from sennit.activities.providers.limiter import Limiter, ProviderBusy
from sennit.activities.providers.model import ModelReply, ModelRequest, ProviderError
from sennit.activities.providers.prices import DEFAULTS, price_of, unpriced, with_cost
from sennit.activities.providers.settings import ModelSettings
from sennit.testing.model_rules import Reply
from sennit.testing.models import ModelServer, model_server
from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.nodes import Role

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(role="worker", model="", goal="g", prompt="Hello", template="Hello", seconds=5.0, **fields)


@pytest.mark.parametrize(
    ("env", "usual"),
    [
        ({}, "offline"),
        ({"OPENAI_API_KEY": " "}, "offline"),
        ({"OPENAI_API_KEY": KEY}, "openai"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai"),
        ({"ANTHROPIC_API_KEY": KEY}, "anthropic"),
        ({"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}, "openai"),
        ({"ANTHROPIC_API_KEY": KEY, "SENNIT_MODEL": "offline"}, "offline"),
        ({"SENNIT_MODEL": "openai:qwen3:8b"}, "openai:qwen3:8b"),
    ],
)
def test_every_role_has_the_usual_model(env: dict[str, str], usual: str) -> None:
    settings = ModelSettings.read(env)
    assert {settings.models(role) for role in get_args(Role)} == {(usual,)}


def test_a_role_may_have_models_of_its_own_in_order() -> None:
    env = {
        "SENNIT_MODEL": "openai:small",
        "SENNIT_MODEL_JUDGE": "anthropic:big, openai:big,",
        "SENNIT_MODEL_PLANNER": " ",
    }
    settings = ModelSettings.read(env)
    assert settings.models("judge") == ("anthropic:big", "openai:big")
    assert settings.models("planner") == settings.models("worker") == ("openai:small",)


def test_a_provider_may_have_a_rate() -> None:
    assert Models.of(ModelSettings.read({})).rates == {}
    settings = ModelSettings.read({"SENNIT_RATES": " openai = 600,anthropic=50, "})
    assert Models.of(settings).rates == {"sennit.llm.openai": 600, "sennit.llm.anthropic": 50}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"SENNIT_MODEL": "gpt-5"}, "SENNIT_MODEL='gpt-5': is no model; give offline, openai:NAME, anthropic:NAME"),
        ({"SENNIT_MODEL_CRITIC": "openai:"}, "SENNIT_MODEL_CRITIC='openai:': is no model"),
        ({"SENNIT_MODEL": "openai:a b"}, "SENNIT_MODEL='openai:a b'"),
        ({"SENNIT_RATES": "openai=60, mistral=5"}, "SENNIT_RATES='mistral=5': is no rate; give calls a minute, like"),
        ({"SENNIT_RATES": "openai"}, "SENNIT_RATES='openai': is no rate"),
        ({"SENNIT_RATES": "openai=0"}, "SENNIT_RATES='openai=0': is no rate"),
        ({"SENNIT_RATES": "openai=1.5"}, "SENNIT_RATES='openai=1.5': is no rate"),
        (
            {"SENNIT_PLAN_FORMAT": "yaml"},
            "SENNIT_PLAN_FORMAT='yaml': is no format of plans; give auto, lines or program",
        ),
        ({"SENNIT_CONTEXT": "4k"}, "SENNIT_CONTEXT='4k': give a number of tokens, at least 1,000"),
        ({"SENNIT_CONTEXT": "999"}, "SENNIT_CONTEXT='999': give a number of tokens"),
        ({"SENNIT_MODEL_SETTINGS": "/nowhere/a.toml"}, "SENNIT_MODEL_SETTINGS='/nowhere/a.toml': cannot be read: "),
        ({"SENNIT_MODEL_SETTINGS": "temperature = "}, "SENNIT_MODEL_SETTINGS='temperature =': cannot be read: "),
        ({"SENNIT_MODEL_SETTINGS": "[boss]\nseed = 1"}, "SENNIT_MODEL_SETTINGS: [boss] is no role; the roles are pla"),
        ({"SENNIT_MODEL_SETTINGS": "top_p = 2"}, "SENNIT_MODEL_SETTINGS: `top_p`: must be at most 1, not 2"),
        (
            {"SENNIT_MODEL_SETTINGS": "[judge]\ntemp = 2"},
            "SENNIT_MODEL_SETTINGS in [judge]: unknown field `temp`",
        ),
        ({"SENNIT_IDLE_TIMEOUT": "60"}, "SENNIT_IDLE_TIMEOUT='60': is not a duration; write one such as 30s, 5m"),
        ({"SENNIT_FIRST_TOKEN_TIMEOUT": "0s"}, "SENNIT_FIRST_TOKEN_TIMEOUT='0s': is not a duration"),
        ({"SENNIT_PRICES": "/nowhere/prices.toml"}, "SENNIT_PRICES='/nowhere/prices.toml': cannot be read: "),
        ({"OPENAI_BASE_URL": "localhost:8000"}, "OPENAI_BASE_URL="),
        ({"OPENAI_BASE_URL": "http://"}, "OPENAI_BASE_URL="),
        ({"OPENAI_BASE_URL": "http://[::1"}, "OPENAI_BASE_URL: is no URL"),
        ({"OPENAI_BASE_URL": f"http://me:{KEY}@h/v1"}, "OPENAI_BASE_URL: the URL has a user name or password in it"),
        ({"OPENAI_BASE_URL": "http://h:99999/v1"}, "OPENAI_BASE_URL: is no URL"),
        ({"ANTHROPIC_API_KEY": f"{KEY}\nX: y"}, "ANTHROPIC_API_KEY: has a space or another character"),
    ],
)
def test_a_wrong_setting_names_its_variable_and_no_secret(env: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        ModelSettings.read(env)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openai =", "cannot be read: "),
        ("[openai]\nm = [1]", 'openai."m" is no price; write openai."NAME" = [0, 0]'),
        ("[openai]\nm = [1.5, 2]", 'openai."m" is no price'),
        ("[openai]\nm = [-1, 2]", 'openai."m" is no price'),
        ("[mistral]\nm = [1, 2]", "mistral is no price"),
        ("openai = 3", "openai is no price"),
        ("[openai]\nm = {input = 1}", 'openai."m" is no price'),
        ("[openai]\nm = {input = 1, output = 2, cashed = 1}", 'openai."m" is no price'),
        ("[openai]\nm = {input = 1, output = 2, cached = true}", 'openai."m" is no price'),
        ("[openai]\nm = {input = 1, output = 2, cached = 5}", 'openai."m" costs more from the cache than without it'),
        ("[openai]\nm = [2_000_000_000_000, 0]", 'openai."m" is more than 10,000,000,000 millionths of a dollar'),
    ],
)
def test_wrong_prices_are_named(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"SENNIT_PRICES={str(own)!r}: {message}")):
        ModelSettings.read({"SENNIT_PRICES": str(own)})


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(models=("first", "second")) as found:
        yield found


@pytest.fixture
async def models(server: ModelServer) -> AsyncIterator[Models]:
    env = {
        "OPENAI_BASE_URL": server.openai_url,
        "ANTHROPIC_BASE_URL": f"{server.url}/v1",
        "SENNIT_MODEL_JUDGE": "openai",
    }
    found = Models.of(ModelSettings.read(env | {"SENNIT_MODEL": "openai:first"}))
    yield found
    await found.close()


def asked(server: ModelServer) -> list[str]:
    return [f"{each.format}:{each.model}" for each in server.asked]


@pytest.mark.parametrize(
    ("attempt", "model"), [(1, "first"), (2, "first"), (3, "second"), (4, "second"), (9, "second")]
)
async def test_the_attempt_decides_which_model_is_asked(
    models: Models, server: ModelServer, attempt: int, model: str
) -> None:
    await models.complete(request(), ["openai:first", "anthropic:second"], attempt)
    assert [each.model for each in server.asked] == [model]


async def test_an_unknown_model_gives_way_at_once_and_a_busy_one_does_not(models: Models, server: ModelServer) -> None:
    reply = await models.complete(request(), ["openai:nobody", "anthropic:second"])
    assert reply.output.startswith("no rule")
    assert asked(server) == ["openai:nobody", "anthropic:second"]
    server.on("", Reply(status=500, text="broken"))
    with pytest.raises(ProviderError, match="broken"):
        await models.complete(request(), ["openai:first", "anthropic:second"])
    assert len(server.asked) == 3


async def test_a_reply_that_repeats_the_key_has_it_masked(models: Models, server: ModelServer) -> None:
    ModelSettings.read({"OPENAI_API_KEY": KEY})
    server.on("", f"You sent {KEY}.")
    reply = await models.complete(request(), ["openai:first"])
    assert reply.text == reply.output == "You sent [redacted]."


async def test_the_last_of_a_list_tells_its_own_error(models: Models) -> None:
    with pytest.raises(ProviderError, match="has no model 'nobody'"):
        await models.complete(request(), ["openai:nobody"])


async def test_one_rate_limit_slows_the_provider_and_not_the_other(models: Models, server: ModelServer) -> None:
    server.on("", Reply(status=429, text="slow down", headers={"retry-after": "30"}), times=1)
    with pytest.raises(ProviderError, match="slow down"):
        await models.complete(request(), ["openai:first"])
    with pytest.raises(ProviderBusy, match="openai is busy") as caught:
        await models.complete(request(), ["openai:first"])
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 30
    await models.complete(request(), ["anthropic:first"])
    assert asked(server) == ["openai:first", "anthropic:first"]


async def test_a_declared_rate_paces_the_calls_of_its_provider_alone(server: ModelServer) -> None:
    env = {"OPENAI_BASE_URL": server.openai_url, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    models = Models.of(ModelSettings.read({**env, "SENNIT_RATES": "openai=6"}))
    await models.complete(request(), ["openai:first"])
    with pytest.raises(ProviderBusy, match=r"openai is busy: 0\.1 calls a second"):
        await models.complete(request(), ["openai:first"])
    for _ in range(2):
        await models.complete(request(), ["anthropic:first"])
    await models.close()
    assert asked(server) == ["openai:first", "anthropic:first", "anthropic:first"]


async def test_a_refusal_of_a_model_that_others_follow_uses_up_an_attempt(models: Models, server: ModelServer) -> None:
    await models.complete(request(), ["openai:first"])
    server.on("", Reply(status=429, text="slow down"))
    found = []
    for names in (["openai:first", "openai:second"], ["openai:first"]):
        with pytest.raises(ProviderError, match="slow down") as caught:
            await models.complete(request(), names)
        found.append(caught.value.is_attempt)
    assert found == [True, False]


async def test_a_bare_name_is_looked_up_once_a_run(models: Models, server: ModelServer) -> None:
    with pytest.raises(ProviderError, match=r"has 2 models \(first, second\); set SENNIT_MODEL=openai:NAME"):
        await models.chosen()
    server.models = ("first",)
    chosen = await models.chosen()
    assert chosen["judge"] == chosen["worker"] == ["openai:first"]
    assert models.wanted()["judge"] == ["openai"]


async def test_a_run_may_name_the_models_of_all_roles(models: Models) -> None:
    assert set(map(tuple, (await models.chosen("openai:own, offline")).values())) == {("openai:own", "offline")}
    for wrong in ("gpt-5", "mistral:large", "openai:"):
        with pytest.raises(ValueError, match=f"^model='{wrong}': is no model; give offline, openai:NAME"):
            await models.chosen(wrong)


async def test_without_a_key_the_variable_is_named() -> None:
    models = Models.of(ModelSettings.read({}))
    for provider in ("openai", "anthropic"):
        message = f"{provider} needs a key: set {provider.upper()}_API_KEY where the workers run"
        with pytest.raises(ProviderError, match=message) as caught:
            await models.complete(request(), [f"{provider}:any"])
        assert not caught.value.retryable
    assert (await models.chosen())["planner"] == ["offline"]


async def test_the_own_servers_have_a_default_with_a_price_and_need_no_key_to_name_it() -> None:
    settings = ModelSettings.read({"SENNIT_MODEL": "openai", "SENNIT_MODEL_JUDGE": "anthropic"})
    chosen = await Models.of(settings).chosen()
    assert chosen["worker"] == [f"openai:{DEFAULTS['openai']}"]
    assert chosen["judge"] == [f"anthropic:{DEFAULTS['anthropic']}"]
    assert all(price_of(names[0]) for names in chosen.values())


async def test_output_that_does_not_fit_the_schema_is_tried_again(models: Models, server: ModelServer) -> None:
    server.on("", '{"n": "many"}')
    with pytest.raises(ProviderError, match=r"the model's output n: wanted integer") as caught:
        await models.complete(request(output_schema=SCHEMA), ["openai:first"])
    assert (type(caught.value).__name__, caught.value.retryable) == ("SchemaMismatch", True)


async def test_a_provider_nobody_has_is_named(models: Models) -> None:
    with pytest.raises(ProviderError, match="'mistral:large' is no model; there are offline, openai, anthropic"):
        await models.complete(request(), ["mistral:large"])


def test_prices_are_micro_dollars_rounded_up() -> None:
    used = Usage(1_000_000, 1_000_000)
    assert with_cost(used, "openai:gpt-4o-2024-08-06").cost == with_cost(used, "openai:gpt-4o").cost == 12_500_000
    assert with_cost(used, "openai:gpt-4o-2024-05-13").cost == 20_000_000
    assert with_cost(Usage(100_000, 100_000), "anthropic:claude-haiku-5-5").cost == 60_000
    assert with_cost(Usage(200_000, 100_000), "anthropic:claude-haiku-5-5-20261007").cost == 350_000, "a long prompt"
    assert with_cost(Usage(1, 0), "openai:gpt-4o").cost == 3
    assert with_cost(used, "openai:nobody").cost == with_cost(used, "offline").cost == 0
    assert unpriced(["openai:gpt-4o", "offline"]) is None
    assert unpriced(["openai:x", "openai:x"]) == "no price is known for openai:x: it counts as 0"


class Seen(CallMeter):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str, int]] = []
        self.pressure: list[float] = []

    def called(self, model: str, outcome: str, reply: ModelReply | None) -> None:
        self.calls.append((model, outcome, reply.usage.cost if reply else 0))

    def pressed(self, limiter: Limiter) -> None:
        self.pressure.append(round(limiter.pressure, 1))


class Book:
    """An account that keeps every report."""

    put_offs = 0

    def __init__(self) -> None:
        self.begun: list[tuple[Usage, Usage]] = []
        self.ended: list[Usage] = []

    async def begin(self, sent: Usage, most: Usage) -> None:
        self.begun.append((sent, most))

    def room(self, sent: Usage, wanted: int) -> None:
        """Limit nothing."""

    def end(self, used: Usage) -> None:
        self.ended.append(used)


async def test_a_call_is_booked_at_its_most_before_it_goes_out_and_at_what_it_cost_when_it_has_ended() -> None:
    """In full, refused for a parameter and put again, refused by a rate limit and by its model, cut in its middle."""
    book, booked = Book(), list[int]()
    replies = [Reply(text="yes", usage=(1000, 100)), Reply(status=429, text="slow"), Reply("x " * 90, fault="cut")]

    def answer(_: Any) -> Reply:
        booked.append(len(book.begun))
        return replies[len(booked) - 1]

    async with model_server(models=("gpt-4o",), refuse={"temperature": "temperature is not supported"}) as server:
        server.on("", answer)
        for fields, names in (
            ({"settings": CallSettings(temperature=0.5)}, ["openai:o3", "openai:gpt-4o"]),
            *[({}, ["openai:gpt-4o"])] * 2,
        ):
            models = Models.of(ModelSettings.read({"OPENAI_BASE_URL": server.openai_url}))
            with suppress(ProviderError):
                await models.complete(request(account=book, **fields), names)
            await models.close()
    sent, most = book.begun[-1]
    assert (most.output_tokens, most.cost - sent.cost) == (12_288, 122_880), "nobody knows how long it becomes"
    assert sent.input_tokens > len("Hello") // 3
    assert [any(most) for _, most in book.begun] == [False, True, True, False, True, True, False, True, False, True]
    assert book.ended[:5] == [NO_USAGE, NO_USAGE, NO_USAGE, Usage(1000, 100, 3500, 1), Usage(calls=1)]
    assert 0 < book.ended[5].output_tokens < 180
    assert booked == [6, 8, 10], "each is booked first"


async def test_every_call_is_counted_with_its_cost_and_pressure() -> None:
    meter = Seen()
    async with model_server(models=("gpt-4o",)) as server:
        models = Models.of(ModelSettings.read({"OPENAI_BASE_URL": server.openai_url}), meter)
        server.on("", Reply(text="yes", usage=(1000, 100)), Reply(status=429, text="wait 30 s"))
        assert (await models.complete(request(), ["openai:gpt-4o"])).usage == Usage(1000, 100, 3500, 1)
        for _ in range(2):
            with pytest.raises(ProviderError):
                await models.complete(request(), ["openai:gpt-4o"])
        await models.close()
    calls = [("ok", 3500), ("RateLimited", 0), ("ProviderBusy", 0)]
    assert meter.calls == [("openai:gpt-4o", outcome, cost) for outcome, cost in calls]
    assert meter.pressure == [2.0, 2.0]


def test_the_silences_of_settings_are_those_of_every_server() -> None:
    env = {"SENNIT_FIRST_TOKEN_TIMEOUT": "5m", "SENNIT_IDLE_TIMEOUT": "90s"}
    limits = [Limits().of_server(server) for server in ModelSettings.read(env).servers.values()]
    assert {(found.first, found.idle, found.reading) for found in limits} == {(300.0, 90.0, math.inf)}
    assert Limits().of_server(ModelSettings.read({}).servers["openai"]) == Limits()
