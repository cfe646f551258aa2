"""The settings of a call on the wire: what is sent, what is left out, and how long a reply may be."""

from typing import Any

import pytest
from doubles.model_bench import Bench

from sennit.activities.providers.errors import OutputCut
from sennit.activities.providers.model import NoAccount
from sennit.testing.model_rules import Asked, Reply
from sennit.workflows.plan.language.limits import Usage

openai = pytest.mark.parametrize("bench", ["openai"], indirect=True)
anthropic = pytest.mark.parametrize("bench", ["anthropic"], indirect=True)
ALL: dict[str, Any] = {"temperature": 0.2, "top_p": 0.9, "stop": "END", "seed": 7, "effort": "low"}


async def test_only_what_is_set_is_sent(bench: Bench) -> None:
    await bench.ask()
    beside_limit = {"temperature", "top_p", "stop", "stop_sequences", "seed", "reasoning_effort", "thinking"}
    assert beside_limit.isdisjoint(bench.sent)
    assert ("max_tokens" in bench.sent) == (bench.format == "anthropic"), "only Anthropic's API wants a limit"


@openai
async def test_every_setting_has_its_place_in_openais_format(bench: Bench) -> None:
    await bench.ask(**ALL, max_output_tokens=300)
    names = ("temperature", "top_p", "stop", "seed", "reasoning_effort", "max_tokens")
    assert [bench.sent[name] for name in names] == [0.2, 0.9, ["END"], 7, "low", 300]


@anthropic
@pytest.mark.parametrize(
    ("model", "effort", "thinking", "word"),
    [
        ("claude-sonnet-4-5", "low", {"type": "enabled", "budget_tokens": 2048}, None),
        ("claude-opus-5-5", "high", {"type": "adaptive"}, "high"),
        ("claude-opus-5-5", "none", {"type": "disabled"}, None),
    ],
)
async def test_effort_is_what_anthropics_model_calls_it(
    bench: Bench, model: str, effort: str, thinking: dict[str, Any], word: str | None
) -> None:
    bench.server.models = (model,)
    reply = await bench.ask(model=model, **{**ALL, "effort": effort})
    assert (bench.sent["thinking"], bench.sent.get("output_config", {}).get("effort")) == (thinking, word)
    assert bench.sent["stop_sequences"] == ["END"]
    assert reply.warnings == (f"anthropic:{model} takes no `seed`, so it was not sent",)


class Granting(NoAccount):
    """Grants every call so many tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def room(self, sent: Usage, wanted: int) -> int | None:
        return min(self.tokens, wanted)


@anthropic
@pytest.mark.parametrize(
    ("granted", "thinking"),
    [
        (60_000, {"type": "enabled", "budget_tokens": 24_576}),
        (6_000, {"type": "enabled", "budget_tokens": 3_000}),
        (1_500, {"type": "enabled", "budget_tokens": 1_024}),
        (1_000, None),
    ],
)
async def test_thinking_stays_below_what_a_budget_leaves_to_a_reply(
    bench: Bench, granted: int, thinking: dict[str, Any] | None
) -> None:
    bench.server.models = ("claude-sonnet-4-5",)
    account = Granting(granted)
    await bench.ask(model="claude-sonnet-4-5", account=account, effort="high", max_output_tokens=64_000)
    assert bench.sent["max_tokens"] == granted
    assert bench.sent.get("thinking") == thinking


@anthropic
@pytest.mark.parametrize(
    ("model", "tokens"),
    [("claude-3-haiku-20240307", 4096), ("claude-sonnet-4-5", 64_000), ("claude-opus-5-5", 128_000), ("other", 32_000)],
)
async def test_anthropics_limit_is_the_longest_reply_of_the_model(bench: Bench, model: str, tokens: int) -> None:
    bench.server.models = (model,)
    await bench.ask(model=model)
    assert bench.sent["max_tokens"] == tokens


@openai
async def test_a_setting_that_is_refused_is_left_out_and_people_are_told(bench: Bench) -> None:
    bench.server.on(
        lambda asked: "temperature" in asked.body,
        Reply(status=400, text="Unsupported value: 'temperature' does not support 0.2 with this model."),
    )
    bench.server.on("", "fine")
    for _ in range(2):
        reply = await bench.ask(temperature=0.2, seed=7)
        assert reply.output == "fine"
        assert reply.warnings[0].startswith("openai:test-model takes no `temperature` of 0.2, so it was not sent (")
    assert ["temperature" in asked.body for asked in bench.server.asked] == [True, False, False]
    assert bench.sent["seed"] == 7


NO_SUCH_EFFORT = (
    "Unsupported value: 'reasoning_effort' does not support 'none' with this model. "
    "Supported values are: 'minimal', 'low', 'medium', and 'high'."
)


@openai
@pytest.mark.parametrize(
    ("setting", "refused", "taken", "words"),
    [
        ("effort", "none", "high", NO_SUCH_EFFORT),
        ("temperature", 1.5, 0.5, "temperature: range: -0.1..1.0, must be less than or equal to 1"),
        ("top_p", 1.0, 0.9, "Invalid value for 'top_p': must be below 1.0"),
    ],
)
async def test_a_value_that_is_refused_leaves_the_others_to_the_server(
    bench: Bench, setting: str, refused: Any, taken: Any, words: str
) -> None:
    field = "reasoning_effort" if setting == "effort" else setting
    bench.server.on(lambda asked: asked.body.get(field) == refused, Reply(status=400, text=words))
    bench.server.on("", "fine")
    for _ in range(2):
        reply = await bench.ask(**{setting: refused})
        told = f"openai:test-model takes no `{setting}` of {refused}, so it was not sent ("
        assert reply.warnings[0].startswith(told)
    assert [field in asked.body for asked in bench.server.asked] == [True, False, False]
    reply = await bench.ask(**{setting: taken})
    assert (bench.sent[field], reply.warnings) == (taken, ())
    [note] = bench.remote.known.notes("openai:test-model")
    assert f"`{setting}` of {refused}" in note


@openai
async def test_a_setting_without_a_value_that_is_taken_is_no_longer_sent(bench: Bench) -> None:
    bench.server.on(lambda asked: "seed" in asked.body, Reply(status=400, text="Invalid value for 'seed'"))
    bench.server.on("", "fine")
    for seed in range(12):
        await bench.ask(seed=seed)
    assert sum("seed" in asked.body for asked in bench.server.asked) == 9


async def test_of_two_settings_that_exclude_each_other_one_is_sent(bench: Bench) -> None:
    refusal = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    bench.server.on(lambda asked: {"temperature", "top_p"} <= asked.body.keys(), Reply(status=400, text=refusal))
    bench.server.on("", "fine")
    assert (await bench.ask(temperature=0.2, top_p=0.5)).output == "fine"
    assert (bench.sent["temperature"], "top_p" in bench.sent) == (0.2, False)


def cut_at(asked: Asked, usual: int, needed: int) -> int | None:
    """Return where a server cuts a reply that needs so many tokens, None for a whole one."""
    limit = asked.body.get("max_tokens", usual)
    return limit if limit < needed else None


@openai
async def test_a_reply_that_the_servers_own_limit_cuts_is_given_more_room(bench: Bench) -> None:
    """Text Generation Inference, for example, cuts at 100 tokens where a call names no limit."""
    bench.server.on(
        lambda asked: cut_at(asked, 100, 9_000) is not None,
        Reply(text="the beginning", stop="length", usage=(9, 100)),
        Reply(text="more of it", stop="length", usage=(9, 4096)),
    )
    bench.server.on("", "the whole reply")
    listened: list[str] = []
    reply = await bench.ask(on_text=listened.append, on_restart=lambda _: listened.clear())
    assert reply.output == "the whole reply"
    assert "".join(listened) == "the whole reply", "what was cut is no part of it"
    assert [asked.body.get("max_tokens") for asked in bench.server.asked] == [None, 4096, 16_384]
    assert "cut at 4,096 tokens; asked again with room for 16,384" in bench.progress
    bench.server.asked.clear()
    await bench.ask()
    assert [asked.body.get("max_tokens") for asked in bench.server.asked] == [16_384], "it is known from now on"


@openai
async def test_a_server_that_gives_less_than_it_is_asked_for_is_not_asked_again(bench: Bench) -> None:
    bench.server.on("", Reply(text="the beginning", stop="length", usage=(9, 100)))
    with pytest.raises(OutputCut, match="was cut at 100 tokens; its server gives no more") as caught:
        await bench.ask()
    assert (caught.value.retryable, len(bench.server.asked)) == (False, 2)


@openai
async def test_a_reply_that_is_cut_once_far_below_its_limit_is_asked_for_once_more(bench: Bench) -> None:
    replies = iter([Reply(text="the beg", stop="length", usage=(9, 11)), Reply(text="the whole reply")])
    bench.server.on("", lambda _: next(replies))
    assert (await bench.ask(max_output_tokens=4_096)).output == "the whole reply"
    assert [asked.body.get("max_tokens") for asked in bench.server.asked] == [4_096, 4_096]


@pytest.mark.parametrize("most", [None, 8_000])
async def test_a_reply_that_is_cut_where_its_budget_ends_is_paid_once(bench: Bench, most: int | None) -> None:
    bench.server.on("", Reply(text="the beginning", stop="length", usage=(9, 2_000)))
    with pytest.raises(OutputCut, match="was cut at 2,000 tokens; raise `max_tokens`, or ask for less"):
        await bench.ask(max_output_tokens=most, account=Granting(2_000))
    [asked] = bench.server.asked
    assert asked.body["max_tokens"] == 2_000


@openai
async def test_what_a_call_was_sent_with_tells_why_it_was_cut(bench: Bench) -> None:
    """Another call learns of more room while this one is under way."""

    def cut_while_another_learns(asked: Asked) -> Reply:
        if "max_tokens" in asked.body:
            return Reply(text="the whole reply")
        bench.remote.known.learn_room("openai:test-model", 4_096)
        return Reply(text="the beg", stop="length", usage=(9, 11))

    bench.server.on("", cut_while_another_learns)
    assert (await bench.ask()).output == "the whole reply"
    assert [asked.body.get("max_tokens") for asked in bench.server.asked] == [None, 4_096]


async def test_a_model_that_only_thinks_until_it_is_cut_is_told_apart(bench: Bench) -> None:
    bench.server.on("", Reply(text="<think>so many words", stop="length", usage=(9, 300)))
    with pytest.raises(OutputCut, match=r"the whole reply of .* was thinking: it was cut at 300 tokens .*`effort`"):
        await bench.ask(max_output_tokens=300)
    assert len(bench.server.asked) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        "max_tokens: {asked} > 8192, which is the maximum allowed number of output tokens for this model",
        "max_tokens is too large: {asked}. This model supports at most 8192 completion tokens.",
    ],
)
async def test_a_model_is_asked_for_no_more_than_a_refusal_allows(bench: Bench, refusal: str) -> None:
    text = refusal.format(asked=20_000)
    bench.server.on(lambda asked: asked.body["max_tokens"] > 8192, Reply(status=400, text=text))
    bench.server.on("", "fine")
    assert (await bench.ask(max_output_tokens=20_000)).output == "fine"
    assert bench.sent["max_tokens"] == 8192
    await bench.ask(max_output_tokens=300)
    assert (bench.sent["max_tokens"], len(bench.server.asked)) == (300, 3)


@openai
async def test_a_server_that_wants_a_limit_is_told_one(bench: Bench) -> None:
    bench.server.on(lambda asked: "max_tokens" not in asked.body, Reply(status=422, text="max_tokens: field required"))
    bench.server.on("", "fine")
    assert (await bench.ask()).output == "fine"
    assert bench.sent["max_tokens"] == 4096
