"""What the servers of Mistral, Groq, AWS Bedrock and OpenAI's Responses send, by their documented formats.

| maker | documented in |
|---|---|
| Mistral | https://docs.mistral.ai/api, `POST /v1/chat/completions` |
| Groq | https://console.groq.com/docs/api-reference, `POST /openai/v1/chat/completions` |
| Bedrock | https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html, in AWS's frames |
| OpenAI | https://platform.openai.com/docs/api-reference/responses-streaming |
"""

import binascii
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from doubles.raw_server import DONE, EVENTS, Piece, Script, chunk, event
from mistralai.client import Mistral
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.mistral import MistralProvider

FRAMES = "application/vnd.amazon.eventstream"
SIGNED = "c2lnbmVkLXRob3VnaHQ="
CANARY = "canary-5c41e7"


@dataclass(frozen=True)
class Maker:
    """A model of a maker and the bodies of its server: `text` is "Hello world" from 1,200 tokens, 800 of them out of a
    cache, in 10; `cut` ends at its limit and `half` in the midst. `call` asks `search` for the Nile, after a thought of
    which the server wants `returned` back. `refusals` are the bodies of a rate limit, a wrong key and an unknown model,
    with their status.
    """

    model: str
    text: Sequence[Piece]
    cut: Sequence[Piece]
    half: Sequence[Piece]
    call: Sequence[Piece]
    returned: str
    refusals: Sequence[tuple[int, dict[str, Any]]]
    cached: int = 800
    kind: str = EVENTS

    def script(self, pieces: Sequence[Piece]) -> Script:
        return Script(pieces, kind=self.kind)


def reach(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let the SDKs of all makers call this address, with keys that no message may show."""
    monkeypatch.setenv("GROQ_API_KEY", CANARY)
    monkeypatch.setenv("GROQ_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", CANARY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    # Mistral's address is in no variable.
    def provider_of(maker: str) -> Provider[Any]:
        if maker == "mistral":
            return MistralProvider(mistral_client=Mistral(api_key=CANARY, server_url=url))
        return infer_provider(maker)

    monkeypatch.setattr("sennit.activities.providers.pydantic_ai.calls.infer_provider", provider_of)


def _chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    return chunk(delta, reason, id="c1", created=1, model="served-model", **more)


def _function(identity: str) -> dict[str, Any]:
    return {
        "id": identity,
        "type": "function",
        "index": 0,
        "function": {"name": "search", "arguments": '{"q": "Nile"}'},
    }


_COUNTS = {"prompt_tokens": 1200, "completion_tokens": 10, "total_tokens": 1210}
_CACHED = {**_COUNTS, "prompt_tokens_details": {"cached_tokens": 800}}

# Mistral sends content as text or as parts, thoughts among them.
_MISTRAL_THOUGHT = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "A river."}]}]}
MISTRAL = Maker(
    "mistral:magistral-medium-latest",
    text=[
        _chunk({"role": "assistant", "content": "Hello "}),
        _chunk({"content": "world"}, "stop", usage=_CACHED),
        DONE,
    ],
    cut=[_chunk({"content": "Hello "}, "length"), DONE],
    half=[_chunk({"content": "Hello "})],
    call=[
        _chunk(_MISTRAL_THOUGHT),
        _chunk({"content": "", "tool_calls": [_function("call00001")]}, "tool_calls"),
        DONE,
    ],
    returned="A river.",
    refusals=(
        (429, {"object": "error", "message": "Requests rate limit exceeded", "type": "rate_limited", "code": "1300"}),
        (401, {"detail": "Unauthorized"}),
        (400, {"object": "error", "message": "Invalid model: magistral", "type": "invalid_model", "code": "1500"}),
    ),
)

# Groq sends what was used within `x_groq`.
GROQ = Maker(
    "groq:qwen/qwen3-32b",
    text=[
        _chunk({"role": "assistant", "content": "Hello "}, x_groq={"id": "r1"}),
        _chunk({"content": "world"}),
        _chunk({}, "stop", x_groq={"id": "r1", "usage": _CACHED}),
        DONE,
    ],
    cut=[_chunk({"content": "Hello "}), _chunk({}, "length"), DONE],
    half=[_chunk({"content": "Hello "})],
    call=[_chunk({"reasoning": "A river."}), _chunk({"tool_calls": [_function("c1")]}), _chunk({}, "tool_calls"), DONE],
    returned='"search"',  # it refuses thoughts
    refusals=(
        (429, {"error": {"message": "Rate limit reached. Please try again in 7.5s.", "code": "rate_limit_exceeded"}}),
        (401, {"error": {"message": "Invalid API Key", "code": "invalid_api_key"}}),
        (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}),
    ),
)


def _frame(kind: str, data: dict[str, Any], exception: bool = False) -> bytes:
    """Return a frame of AWS's event streams: lengths, a checksum, headers, JSON and a checksum of all of it."""
    told = "exception" if exception else "event"
    headers = {":message-type": told, f":{told}-type": kind, ":content-type": "application/json"}
    head = b""
    for name, value in headers.items():
        head += struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
    body = json.dumps(data).encode()
    prelude = struct.pack("!II", 16 + len(head) + len(body), len(head))
    whole = prelude + struct.pack("!I", binascii.crc32(prelude)) + head + body
    return whole + struct.pack("!I", binascii.crc32(whole))


def _delta(index: int, **delta: Any) -> bytes:
    return _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})


def _stops(index: int, reason: str) -> bytes:
    return _frame("contentBlockStop", {"contentBlockIndex": index}) + _frame("messageStop", {"stopReason": reason})


_BEGINS = _frame("messageStart", {"role": "assistant"})
_USED = {"inputTokens": 400, "outputTokens": 10, "totalTokens": 1210, "cacheReadInputTokens": 800}
BEDROCK = Maker(
    "bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    text=[
        _BEGINS,
        _delta(0, text="Hello "),
        _delta(0, text="world"),
        _stops(0, "end_turn"),
        _frame("metadata", {"usage": _USED, "metrics": {"latencyMs": 9}}),
    ],
    cut=[_BEGINS, _delta(0, text="Hello "), _stops(0, "max_tokens")],
    half=[_BEGINS, _delta(0, text="Hello ")],
    call=[
        _BEGINS,
        _delta(0, reasoningContent={"text": "A river."}),
        _delta(0, reasoningContent={"signature": SIGNED}),
        _frame("contentBlockStop", {"contentBlockIndex": 0}),
        _frame(
            "contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "search"}}}
        ),
        _delta(1, toolUse={"input": '{"q": '}),
        _delta(1, toolUse={"input": '"Nile"}'}),
        _stops(1, "tool_use"),
    ],
    returned=SIGNED,
    refusals=(
        (429, {"message": "Too many requests, please wait before trying again.", "__type": "ThrottlingException"}),
        (403, {"message": "The security token is invalid.", "__type": "UnrecognizedClientException"}),
        (404, {"message": "The model is not found.", "__type": "ResourceNotFoundException"}),
    ),
    kind=FRAMES,
)
BEDROCK_FAILS = [_BEGINS, _delta(0, text="Hello "), _frame("throttlingException", {"message": "Too many tokens"}, True)]


def _response(kind: str, number: int, **fields: Any) -> bytes:
    return event({"type": kind, "sequence_number": number, **fields}, kind)


def _whole(status: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt-5-mini", "output": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **fields,
    }  # fmt: skip


_CREATED = _response("response.created", 0, response=_whole("in_progress"))
_MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
_PART = {"type": "output_text", "text": "", "annotations": []}
_THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNED}
_ASKS = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search", "arguments": ""}
_WRITES = [
    _CREATED,
    _response("response.output_item.added", 1, output_index=0, item=_MESSAGE),
    _response("response.content_part.added", 2, output_index=0, content_index=0, item_id="msg_1", part=_PART),
]


def _text_delta(number: int, text: str) -> bytes:
    place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    return _response("response.output_text.delta", number, **place, delta=text, logprobs=[])


_SPENT = {
    "input_tokens": 1200, "output_tokens": 10, "total_tokens": 1210,
    "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}  # fmt: skip
RESPONSES = Maker(
    "openai-responses:gpt-5-mini",
    text=[
        *_WRITES,
        _text_delta(3, "Hello "),
        _text_delta(4, "world"),
        _response("response.completed", 5, response=_whole("completed", usage=_SPENT)),
    ],
    cut=[
        *_WRITES,
        _text_delta(3, "Hello "),
        _response(
            "response.incomplete",
            4,
            response=_whole("incomplete", usage=_SPENT, incomplete_details={"reason": "max_output_tokens"}),
        ),
    ],
    half=[*_WRITES, _text_delta(3, "Hello ")],
    call=[
        _CREATED,
        _response("response.output_item.added", 1, output_index=0, item=_THOUGHT),
        _response("response.output_item.done", 2, output_index=0, item=_THOUGHT),
        _response("response.output_item.added", 3, output_index=1, item=_ASKS),
        _response("response.function_call_arguments.delta", 4, output_index=1, item_id="fc_1", delta='{"q": "Nile"}'),
        _response("response.output_item.done", 5, output_index=1, item={**_ASKS, "arguments": '{"q": "Nile"}'}),
        _response("response.completed", 6, response=_whole("completed", usage=_SPENT)),
    ],
    returned=SIGNED,
    refusals=(
        (429, {"error": {"message": "Rate limit reached. Please try again in 7.5s.", "code": "rate_limit_exceeded"}}),
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}),
    ),
)
MAKERS = {"mistral": MISTRAL, "groq": GROQ, "bedrock": BEDROCK, "openai-responses": RESPONSES}
