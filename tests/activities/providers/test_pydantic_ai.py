"""Models of the extra `pydantic-ai`: Google's before a server of that form, and the library's own models for tests."""

import asyncio
import base64
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from doubles.google_server import GOOGLE_KEY, MODEL, google, piece, refusal, words
from doubles.pictures import MP3, PNG
from doubles.raw_server import Piece, Script, event, raw_server
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers import infer_provider

from sennit.activities.llm.models import Models
from sennit.activities.providers.errors import (
    BadReply,
    CallRefused,
    ContextTooLong,
    ExtraMissing,
    KeyRefused,
    MediaRefused,
    ModelRefused,
    ModelTimeout,
    OutputCut,
    QuotaUsedUp,
    RateLimited,
    ReplyCut,
    ReplyTooLarge,
    SchemaMismatch,
    ServerFailed,
    ServerUnreachable,
    UnknownModel,
)
from sennit.activities.providers.model import (
    MediaPart,
    Message,
    ModelRequest,
    NoAccount,
    ProviderError,
    ReplyForm,
    ToolRequest,
)
from sennit.activities.providers.offline import OfflineCannot
from sennit.activities.providers.prices import price_of
from sennit.activities.providers.pydantic_ai.provider import PydanticAI
from sennit.activities.providers.settings import ModelSettings, Server
from sennit.workflows.plan.language.limits import Usage

SEARCH = {
    "name": "search",
    "description": "Finds passages.",
    "schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTS = {"promptTokenCount": 1200, "cachedContentTokenCount": 800, "candidatesTokenCount": 3, "thoughtsTokenCount": 7}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "14s"}
PER_DAY = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay"}]}


async def test_a_reply_streams_and_has_all_settings_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    thought = piece({"text": "A greeting.", "thought": True})
    script: list[Piece] = [thought, words("Hello "), 0.05, words("world", "STOP", usageMetadata=COUNTS)]
    async with google(monkeypatch, script) as bench:
        reply = await bench.ask(
            "Greet.",
            system="You are kind.",
            history=(Message("user", "Hi"), Message("assistant", "Yes?")),
            temperature=0.2,
            top_p=0.9,
            seed=7,
            stop=("END",),
            effort="low",
            max_output_tokens=50,
        )
    assert (reply.text, bench.pieces) == ("Hello world", ["Hello ", "world"])
    assert reply.usage == Usage(1200, 10, cost=reply.usage.cost, calls=1, cached_tokens=800)
    sent, written = price_of(MODEL) or (0, 0)
    assert 0 < reply.usage.cost < (1200 * sent + 10 * written) // 1_000_000  # what came out of the cache costs less
    assert [(turn["role"], turn["parts"][0]["text"]) for turn in bench.sent["contents"]] == [
        ("user", "Hi"),
        ("model", "Yes?"),
        ("user", "Greet."),
    ]
    assert bench.sent["systemInstruction"]["parts"] == [{"text": "You are kind."}]
    config = bench.sent["generationConfig"]
    wanted = {"temperature": 0.2, "topP": 0.9, "seed": 7, "stopSequences": ["END"], "maxOutputTokens": 50}
    assert wanted.items() <= config.items()
    assert config["thinkingConfig"]["thinking_level"] == "LOW"


async def test_what_is_not_set_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with google(monkeypatch, [words("Hello", "STOP")]) as bench:
        await bench.ask()
    names = {"temperature", "topP", "seed", "stopSequences", "maxOutputTokens", "thinkingConfig"}
    assert not names & bench.sent["generationConfig"].keys()
    assert "systemInstruction" not in bench.sent


async def test_a_signature_goes_back_as_it_came_with_the_results_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemini 3 refuses the second turn without the signature of the first. The turn has been stored as JSON between."""
    signature = base64.b64encode(b"opaque \x00 bytes").decode()
    calls = [
        piece({"functionCall": {"name": "search", "args": {"q": "Nile"}}, "thoughtSignature": signature}),
        piece({"functionCall": {"name": "search", "args": {"q": "Amazon"}}}, reason="STOP"),
    ]
    turns = [Script(calls), Script([words("The Nile.", "STOP")])]
    async with google(monkeypatch, lambda _, count: turns[count - 1]) as bench:
        first = await bench.ask("Which?", tools=(SEARCH,))
        assert [call.arguments for call in first.calls] == [{"q": "Nile"}, {"q": "Amazon"}]
        assert first.stop == "tools"
        kept = json.loads(json.dumps(first.thinking))
        # The ids by which results are matched may be others than the server's: it may use one twice.
        made = tuple(ToolRequest(f"own_{number}", call.name, call.arguments) for number, call in enumerate(first.calls))
        turn = Message("assistant", first.text, made, thinking=tuple(kept), origin=first.origin)
        results = tuple(Message("tool", f"{call.arguments['q']} is long", call_id=call.id) for call in made)
        reply = await bench.ask("Which?", tools=(SEARCH,), messages=(turn, *results))
    assert reply.text == "The Nile."
    asked, called, answered = bench.sent["contents"]
    assert asked["parts"] == [{"text": "Which?"}]
    assert called["parts"][0]["thoughtSignature"] == signature
    assert [part["functionCall"]["args"] for part in called["parts"]] == [{"q": "Nile"}, {"q": "Amazon"}]
    assert [part["functionResponse"]["response"] for part in answered["parts"]] == [
        {"return_value": "Nile is long"},
        {"return_value": "Amazon is long"},
    ]
    declared = bench.sent["tools"][0]["functionDeclarations"]
    assert [(each["name"], each["description"]) for each in declared] == [("search", "Finds passages.")]


async def test_another_model_gets_the_turns_without_what_belongs_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ToolRequest("c1", "search", {"q": "Nile"})
    turn = Message("assistant", "", (call,), thinking=({"reasoning_content": "hm"},), origin="openai:deepseek")
    messages = (turn, Message("tool", "long", call_id="c1"))
    async with google(monkeypatch, [words("The Nile.", "STOP")]) as bench:
        reply = await bench.ask("Which?", messages=messages)
    assert reply.warnings == (f"{MODEL} goes on with turns of openai:deepseek, without the thoughts of these",)
    assert "hm" not in json.dumps(bench.sent)
    assert bench.sent["contents"][1]["parts"][0]["functionCall"]["name"] == "search"
    # The last turn may call nothing, but the tools of the turns before it are named.
    assert bench.sent["toolConfig"]["functionCallingConfig"]["mode"] == "NONE"


ENDS: list[tuple[list[Piece], type[ProviderError], bool]] = [
    ([words("Half of")], ReplyCut, True),  # the stream closed, and no reason came
    ([words("Half of"), b'data: {"candid'], ServerFailed, True),
    ([words("Half of", "MAX_TOKENS")], OutputCut, False),
    ([words("Half of", "SAFETY")], ModelRefused, False),
    ([event({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})], ModelRefused, False),
    ([piece(reason="MALFORMED_FUNCTION_CALL")], ReplyCut, True),
    ([words("Half"), event({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}})], ServerFailed, True),
    ([30.0], ModelTimeout, True),
    ([words("Half of"), 30.0], ModelTimeout, True),
]


@pytest.mark.parametrize(("pieces", "error", "is_retried"), ENDS)
async def test_half_of_a_reply_is_none(
    monkeypatch: pytest.MonkeyPatch, pieces: list[Piece], error: type[ProviderError], is_retried: bool
) -> None:
    async with google(monkeypatch, pieces) as bench:
        with pytest.raises(error) as caught:
            await bench.ask()
    assert type(caught.value) is error
    assert caught.value.retryable is is_retried
    assert len(bench.server.asked) == 1


async def test_a_cut_stream_teaches_nothing_of_a_maker_that_always_gives_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy may close every stream as if it had ended: half a reply is never whole, and a whole one still is."""
    turns = [*[Script([words("Half of")])] * 3, Script([words("Whole", "STOP")])]
    async with google(monkeypatch, lambda _, count: turns[count - 1]) as bench:
        for _ in range(3):
            with pytest.raises(ReplyCut, match="without a reason"):
                await bench.ask()
        assert (await bench.ask()).text == "Whole"


def picture(size: int) -> bytes:
    """Return an event with a file of so many bytes, which is no part of a reply."""
    return piece({"inlineData": {"mimeType": "image/png", "data": base64.b64encode(bytes(size)).decode()}})


async def test_a_flood_of_files_is_ended_and_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is that of every answer: 4 MiB, and 1 KiB for each token that was asked for."""
    account = Granted()
    flood: list[Piece] = [words("A dot: "), *[picture(1024 * 1024)] * 6, words("done", "STOP")]
    async with google(monkeypatch, flood) as bench:
        with pytest.raises(ReplyTooLarge, match="more than 4,211,712 bytes"):
            await bench.ask(account=account)
    assert account.used[0].tokens > 0


async def test_files_of_a_model_are_not_kept_with_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    call = piece({"functionCall": {"name": "search", "args": {"q": "Nile"}}}, reason="STOP")
    async with google(monkeypatch, [picture(60_000), call]) as bench:
        reply = await bench.ask("Which?", tools=(SEARCH,))
    assert [made.arguments for made in reply.calls] == [{"q": "Nile"}]
    assert len(json.dumps(reply.thinking)) < 5_000


REFUSALS: list[tuple[Script, type[ProviderError], bool, float | None]] = [
    (refusal(429, "slow down", "RESOURCE_EXHAUSTED", [RETRY]), RateLimited, True, 14.0),
    (refusal(429, "slow down", "RESOURCE_EXHAUSTED", **{"retry-after": "7"}), RateLimited, True, 7.0),
    (refusal(429, "try again in 20s", "RESOURCE_EXHAUSTED"), RateLimited, True, 20.0),
    (refusal(429, "quota", "RESOURCE_EXHAUSTED", [PER_DAY]), QuotaUsedUp, False, None),
    (refusal(400, "API key not valid", "INVALID_ARGUMENT", [{"reason": "API_KEY_INVALID"}]), KeyRefused, False, None),
    (refusal(403, "denied", "PERMISSION_DENIED"), KeyRefused, False, None),
    (refusal(404, "models/x is not found", "NOT_FOUND"), UnknownModel, False, None),
    (refusal(400, "The input token count (9) exceeds the maximum number of tokens allowed (8)", "INVALID_ARGUMENT"),
     ContextTooLong, False, None),
    (refusal(400, "Invalid value at generation_config", "INVALID_ARGUMENT"), CallRefused, False, None),
    (refusal(500, "internal", "INTERNAL"), ServerFailed, True, None),
    (refusal(503, "The model is overloaded", "UNAVAILABLE"), ServerFailed, True, None),
    (Script([b"<html><title>Proxy</title>"], 502, "text/html"), ServerFailed, True, None),
]  # fmt: skip


@pytest.mark.parametrize(("script", "error", "is_retried", "wait"), REFUSALS)
async def test_errors_of_a_server_have_the_types_and_waits_of_sennits_own(
    monkeypatch: pytest.MonkeyPatch, script: Script, error: type[ProviderError], is_retried: bool, wait: float | None
) -> None:
    """Each is one request: Temporal alone makes a call again."""
    async with google(monkeypatch, script) as bench:
        with pytest.raises(error) as caught:
            await bench.ask()
    assert type(caught.value) is error
    assert (caught.value.retryable, caught.value.retry_after) == (is_retried, wait)
    assert GOOGLE_KEY not in str(caught.value)
    assert len(bench.server.asked) == 1


async def test_a_server_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    async with google(monkeypatch, []) as bench:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{unused_tcp_port}")
        with pytest.raises(ServerUnreachable) as caught:
            await bench.ask()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("fields", "pieces", "message"),
    [
        ({"first_token_timeout": 0.2}, [5.0], "no first piece of the reply in time"),
        ({"idle_timeout": 0.2}, [words("a"), 5.0], "no next piece of the reply within 0.2 s"),
        ({"seconds": 0.4, "idle_timeout": 5.0}, [words("a"), 5.0], "the reply took too long"),
    ],
)
async def test_silences_and_the_time_of_a_call_have_their_ends(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], pieces: list[Piece], message: str
) -> None:
    async with google(monkeypatch, pieces) as bench:
        await bench.remote._model(MODEL)  # to import its SDK may take longer than the whole call here
        with pytest.raises(ModelTimeout, match=message):
            await bench.ask(**fields)


async def test_a_slow_reply_outlives_the_usual_silence_where_its_call_has_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with google(monkeypatch, [words("a"), 0.8, words("b", "STOP")]) as bench:
        assert (await bench.ask(idle_timeout=5.0)).text == "ab"


async def test_media_are_shown_with_the_prompt_and_with_the_result_of_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = MediaPart("image/png", base64.b64encode(PNG).decode(), 1600, "a.png")
    sound = MediaPart("audio/mpeg", base64.b64encode(MP3).decode(), 10, "a.mp3")
    turn = Message("assistant", "", (ToolRequest("c1", "search", {"q": "x"}),))
    result = Message("tool", "a chart", call_id="c1", media=(picture,))
    async with google(monkeypatch, [words("A dot.", "STOP")]) as bench:
        await bench.ask("What?", media=(picture, sound), messages=(turn, result))
    prompt, _, answered = bench.sent["contents"]
    shown = [part["inlineData"] for part in prompt["parts"] if "inlineData" in part]
    assert [(each["mime_type"], base64.urlsafe_b64decode(each["data"])) for each in shown] == [
        ("image/png", PNG),
        ("audio/mpeg", MP3),
    ]
    assert base64.urlsafe_b64encode(PNG).decode() in json.dumps(answered)


async def test_media_that_a_model_does_not_take_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = MediaPart("audio/mpeg", base64.b64encode(MP3).decode(), 10, "a.mp3")
    refused = refusal(400, "Audio input modality is not enabled, unsupported for this model", "INVALID_ARGUMENT")
    async with google(monkeypatch, refused) as bench:
        with pytest.raises(MediaRefused, match="takes no audio"):
            await bench.ask("What?", media=(sound,))
    assert len(bench.server.asked) == 1


async def test_a_schema_is_sent_and_the_reply_is_read_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with google(monkeypatch, [words('{"city": "Rome"}', "STOP")]) as bench:
        reply = await bench.ask("Where?", output_schema=CITY)
    assert reply.output == {"city": "Rome"}
    config = bench.sent["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"]["city"]["type"] == "string"


async def test_a_value_that_is_no_object_is_wrapped_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with google(monkeypatch, [words('{"value": [1, 2]}', "STOP")]) as bench:
        reply = await bench.ask("Which?", output_schema={"type": "array", "items": {"type": "integer"}})
    assert reply.output == [1, 2]


async def test_a_schema_that_is_refused_is_asked_for_in_words_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(body: dict[str, Any], _: int) -> Script:
        if "responseJsonSchema" in body["generationConfig"]:
            return refusal(400, "Unsupported keyword in schema", "INVALID_ARGUMENT")
        return Script([words('{"city": "Rome"}', "STOP")])

    async with google(monkeypatch, answer) as bench:
        for _ in range(2):
            assert (await bench.ask("Where?", output_schema=CITY)).output == {"city": "Rome"}
    assert len(bench.server.asked) == 3
    assert '"city"' in bench.sent["contents"][0]["parts"][0]["text"]


async def test_a_form_has_its_own_system_prompt_and_its_reply_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async with google(monkeypatch, [words('{"city": "Rome"}', "STOP")]) as bench:
        form = ReplyForm(CITY, "Write JSON.")
        reply = await bench.ask("Join.", role="joiner", system="Write text.", form=form)
    assert reply.output == '{"city": "Rome"}'  # whoever asked reads it
    assert bench.sent["systemInstruction"]["parts"] == [{"text": "Write JSON."}]
    assert "responseJsonSchema" in bench.sent["generationConfig"]


class Granted(NoAccount):
    """Grants 17 tokens, and keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.used: list[Usage] = []

    async def begin(self, sent: Usage, most: Usage) -> None:
        self.begun.append(most.output_tokens)

    def room(self, sent: Usage, wanted: int) -> int | None:
        return 17

    def end(self, used: Usage) -> None:
        self.used.append(used)


async def test_a_call_asks_for_what_its_budget_grants_and_is_booked_whatever_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = Granted()
    turns = [
        Script([words("Hi", "STOP", usageMetadata=COUNTS)]),
        Script([words("Half")]),
        refusal(404, "no", "NOT_FOUND"),
    ]
    async with google(monkeypatch, lambda _, count: turns[count - 1]) as bench:
        await bench.ask(account=account)
        assert bench.sent["generationConfig"]["maxOutputTokens"] == 17
        for error in (ReplyCut, UnknownModel):
            with pytest.raises(error):
                await bench.ask(account=account)
    assert account.begun == [17, 17, 17]
    whole, half, refused = account.used
    assert (whole.input_tokens, whole.output_tokens) == (1200, 10)
    assert half.tokens > 0
    assert refused.calls == 0


# The library's own models for tests.


@pytest.fixture
async def remote() -> AsyncIterator[PydanticAI]:
    found = PydanticAI(Server("pydantic-ai", ""))
    yield found
    await found.close()


def ask_for(model: str, prompt: str = "Hello", **fields: Any) -> ModelRequest:
    return ModelRequest(
        role="worker", model=f"pydantic-ai:{model}", goal=prompt, prompt=prompt, template=prompt, **fields
    )


async def test_a_model_that_never_gives_a_reason_is_believed_the_second_time(remote: PydanticAI) -> None:
    """`pydantic-ai:test` is the library's TestModel, which names no reason, as some servers do not."""
    with pytest.raises(ReplyCut, match="without a reason"):
        await remote.complete(ask_for("test"))
    assert (await remote.complete(ask_for("test"))).text == "success (no tool calls)"


async def test_a_test_model_calls_the_tools_it_is_given_and_then_answers(remote: PydanticAI) -> None:
    with pytest.raises(ReplyCut):
        await remote.complete(ask_for("test"))
    first = await remote.complete(ask_for("test", tools=(SEARCH,)))
    [call] = first.calls
    assert (call.name, call.arguments) == ("search", {"q": "a"})
    turn = Message("assistant", first.text, first.calls, thinking=first.thinking, origin=first.origin)
    result = Message("tool", "found it", call_id=call.id)
    second = await remote.complete(ask_for("test", tools=(SEARCH,), messages=(turn, result)))
    assert second.text == '{"search":"found it"}'


async def test_arguments_in_pieces_are_one_call(remote: PydanticAI, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[list[ModelMessage]]()

    async def calls(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[DeltaToolCalls | str]:
        seen.append(messages)
        if len(messages) > 1:
            yield "done"
            return
        assert [tool.name for tool in info.function_tools] == ["search"]
        yield {0: DeltaToolCall("sea", '{"q": "N', tool_call_id="c1")}
        yield {0: DeltaToolCall("rch", 'ile"}')}

    model = FunctionModel(stream_function=calls)
    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_model", lambda *_: model)
    with pytest.raises(ReplyCut):
        await remote.complete(ask_for("function", tools=(SEARCH,)))
    first = await remote.complete(ask_for("function", tools=(SEARCH,)))
    assert [asdict(call) for call in first.calls] == [asdict(ToolRequest("c1", "search", {"q": "Nile"}))]
    turn = Message("assistant", "", first.calls, thinking=first.thinking, origin=first.origin)
    result = Message("tool", "6,650 km", call_id="c1")
    assert (await remote.complete(ask_for("function", tools=(SEARCH,), messages=(turn, result)))).text == "done"
    _, response, request = seen[-1]
    assert isinstance(response, ModelResponse)
    [part] = request.parts
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_name, part.content, part.tool_call_id) == ("search", "6,650 km", "c1")


async def test_a_reply_without_an_end_is_cut(remote: PydanticAI, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        while True:
            yield "word " * 1000

    model = FunctionModel(stream_function=endless)
    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_model", lambda *_: model)
    with pytest.raises(OutputCut, match="far above its limit of 100 tokens"):
        await remote.complete(ask_for("function", max_output_tokens=100))


async def test_json_that_does_not_fit_its_schema_is_no_output(
    remote: PydanticAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TestModel(custom_output_text="Rome")
    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_model", lambda *_: model)
    with pytest.raises(ReplyCut):
        await remote.complete(ask_for("test"))
    with pytest.raises(SchemaMismatch):
        await remote.complete(ask_for("test", output_schema=CITY))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nobody:x", UnknownModel, "Unknown provider: nobody"),
        ("gemini", UnknownModel, "Unknown model: gemini"),
        ("google:gemini-3-pro", KeyRefused, "Set the `GOOGLE_API_KEY` environment variable"),
        ("mistral:large", KeyRefused, "Set the `MISTRAL_API_KEY` environment variable"),
        ("groq:llama", KeyRefused, "Set the `GROQ_API_KEY` environment variable"),
        ("openai-responses:gpt-5", KeyRefused, "Set the `OPENAI_API_KEY` environment variable"),
        ("bedrock:nova", KeyRefused, "You must provide a `region_name`"),
        ("cohere:x", ExtraMissing, r"pydantic-ai-slim\[cohere\]"),
    ],
)
async def test_a_model_that_cannot_be_reached_says_what_to_do(
    remote: PydanticAI, monkeypatch: pytest.MonkeyPatch, name: str, error: type[ProviderError], message: str
) -> None:
    for variable in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(error, match=message) as caught:
        await remote.complete(ask_for(name))
    assert not caught.value.retryable


@pytest.mark.parametrize("name", ["google-cloud:gemini-3-pro", "bedrock:amazon.nova-pro-v1:0", "google:gemini-3-pro"])
async def test_credentials_that_are_missing_or_no_text_let_the_next_model_take_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for variable in list(os.environ):
        if variable.startswith(("AWS_", "GOOGLE_", "GEMINI_", "CLOUDSDK_")):
            monkeypatch.delenv(variable)
    found = {
        "HOME": str(tmp_path),
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_GCE_CHECK": "true",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": "europe-west1",
    }
    if name.startswith("google:"):
        found["GOOGLE_API_KEY"] = "AIza-schlüssel"
    for variable, value in found.items():
        monkeypatch.setenv(variable, value)
    models = Models.of(ModelSettings.read({"SENNIT_MODEL": f"pydantic-ai:{name},offline"}))
    request = ask_for(name, "What is 6 times 7?")
    try:
        with pytest.raises(KeyRefused, match="where the workers run") as caught:
            await models.complete(request, [f"pydantic-ai:{name}"])
        with pytest.raises(OfflineCannot):  # of the next one
            await models.complete(request, models.wanted()["worker"])
    finally:
        await models.close()
    assert not caught.value.retryable
    assert "ü" not in str(caught.value)
    assert "xfc" not in str(caught.value)


async def test_what_an_sdk_raises_in_mid_stream_is_tried_again_and_charged(
    remote: PydanticAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "word " * 100
        raise ZeroDivisionError("in the SDK")

    model = FunctionModel(stream_function=broken)
    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_model", lambda *_: model)
    account = Granted()
    with pytest.raises(BadReply, match="ZeroDivisionError: in the SDK") as caught:
        await remote.complete(ask_for("function", account=account))
    assert caught.value.retryable
    assert account.used[0].output_tokens > 50


async def test_an_error_that_nobody_knows_is_charged_with_what_came(remote: PydanticAI) -> None:
    def listen(_: str) -> None:
        raise ZeroDivisionError("in Sennit")

    account = Granted()
    with pytest.raises(ZeroDivisionError):
        await remote.complete(ask_for("test", account=account, on_text=listen))
    assert account.used[0].calls == 1


async def test_an_older_release_of_the_library_is_named_as_missing(
    remote: PydanticAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "sennit.activities.providers.pydantic_ai.calls")
    monkeypatch.delattr("pydantic_ai.models.ModelRequestParameters")
    with pytest.raises(ExtraMissing, match=r"pip install 'sennit\[pydantic-ai\]'"):
        await remote.complete(ask_for("test"))


async def test_a_maker_that_is_not_ready_ends_with_its_call_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """boto3 may wait for credentials from the network. Two calls in a row wait for one thread."""
    asked, goes_on = list[str](), threading.Event()

    def slow(maker: str) -> Any:
        asked.append(maker)
        if maker == "bedrock":
            goes_on.wait(30)
        return infer_provider(maker)

    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_provider", slow)
    account = Granted()
    try:
        async with google(monkeypatch, [words("Hello", "STOP")]) as bench, asyncio.timeout(20):
            for _ in range(2):
                with pytest.raises(ModelTimeout, match="not ready in time") as caught:
                    await bench.remote.complete(ask_for("bedrock:nova", seconds=0.3, account=account))
                assert caught.value.retryable
            assert (await bench.ask()).text == "Hello"
    finally:
        goes_on.set()
    assert asked == ["bedrock", "google"]
    assert (account.begun, account.used) == ([], [])


@pytest.mark.parametrize(("attempts", "requests"), [("", 1), ("2", 2)])
async def test_bedrock_is_sent_a_call_once_unless_an_operator_says_otherwise(
    remote: PydanticAI, monkeypatch: pytest.MonkeyPatch, attempts: str, requests: int
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", attempts)
    if not attempts:
        monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    async with raw_server(Script([b'{"message": "overloaded"}'], 503, "application/json")) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA-canary-5519")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "bedrock-canary-5519")
        with pytest.raises(ServerFailed) as caught:
            await remote.complete(ask_for("bedrock:amazon.nova-pro-v1:0"))
    assert caught.value.retryable
    assert len(server.asked) == requests


async def test_the_bare_name_is_no_model(remote: PydanticAI) -> None:
    with pytest.raises(UnknownModel, match="SENNIT_MODEL=pydantic-ai:google:NAME"):
        await remote.default_model()


async def test_without_the_extra_a_call_names_the_command_and_the_next_model_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("sennit.activities.providers.pydantic_ai.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pydantic_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    models = Models.of(ModelSettings.read({"SENNIT_MODEL": "pydantic-ai:google:x,offline"}))
    request = ask_for("google:x", "What is 6 times 7?")
    try:
        with pytest.raises(ExtraMissing, match=r"pip install 'sennit\[pydantic-ai\]'"):
            await models.complete(request, ["pydantic-ai:google:x"])
        with pytest.raises(OfflineCannot):  # of the next one
            await models.complete(request, models.wanted()["worker"])
    finally:
        await models.close()


def test_models_of_the_extra_have_the_prices_of_their_makers() -> None:
    assert price_of("pydantic-ai:openai-responses:gpt-5-mini") == price_of("openai:gpt-5-mini") == (250_000, 2_000_000)
    assert price_of("pydantic-ai:anthropic:claude-opus-5-5") == price_of("anthropic:claude-opus-5-5")
    assert price_of("pydantic-ai:test") is None
