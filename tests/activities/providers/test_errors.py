"""What a server's refusal means, and whether and when it is tried again."""

import json

import pytest
from doubles.model_bench import KEY, Bench

from sennit.activities.providers.errors import ContextTooLong, error_of, error_within
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.settings import Server
from sennit.testing.model_rules import Reply

SERVER = Server("openai", "http://models.test/v1", KEY)

CASES = [
    (401, "Incorrect API key provided", "", "KeyRefused", False),
    (403, "Country not supported", "", "KeyRefused", False),
    (404, "The model `test-model` does not exist", "model_not_found", "UnknownModel", False),
    (404, 'model "test-model" not found, try pulling it first', "", "UnknownModel", False),
    (404, "model: test-model", "not_found_error", "UnknownModel", False),
    (400, "test-model is not a valid model: no such model", "", "UnknownModel", False),
    (404, "Not Found", "", "CallRefused", False),
    (400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded", "ContextTooLong", False),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", "", "ContextTooLong", False),
    (400, "the request exceeds the available context size", "exceed_context_size_error", "ContextTooLong", False),
    (400, "Range of input length should be [1, 129024]", "", "ContextTooLong", False),
    (400, "Prompt 超长", "1261", "ContextTooLong", False),
    (400, "Prompt exceeds max length", "1261", "ContextTooLong", False),
    (400, "field `user` exceeds max length", "", "CallRefused", False),
    (400, "schema is too long", "", "CallRefused", False),
    (413, "Request too large", "request_too_large", "ContextTooLong", False),
    (
        429,
        "Request too large for gpt-4o on TPM: Limit 30000, Requested 45000.",
        "rate_limit_exceeded",
        "ContextTooLong",
        False,
    ),
    (400, "messages.0: unexpected field", "", "CallRefused", False),
    (422, "temperature: not a number", "", "CallRefused", False),
    (402, "Insufficient balance", "", "QuotaUsedUp", False),
    (402, "", "", "QuotaUsedUp", False),
    (400, "test-model is not a valid model ID", "", "UnknownModel", False),
    (400, "Model Not Exist", "invalid_request_error", "UnknownModel", False),
    (400, "Your credit balance is too low", "", "QuotaUsedUp", False),
    (429, "You exceeded your current quota", "insufficient_quota", "QuotaUsedUp", False),
    (429, "Rate limit reached", "rate_limit_exceeded", "RateLimited", True),
    (429, "Rate limit reached; add a payment method at https://x.test/billing", "", "RateLimited", True),
    (429, "You exceeded your current quota. Please retry in 13.2s.", "RESOURCE_EXHAUSTED", "RateLimited", True),
    (408, "Timed out", "", "ServerFailed", True),
    (409, "Conflict", "", "ServerFailed", True),
    (425, "Too early", "", "ServerFailed", True),
    (500, "Internal error", "", "ServerFailed", True),
    (502, "Bad gateway", "", "ServerFailed", True),
    (503, "The model is loading", "", "ServerFailed", True),
    (529, "Overloaded", "overloaded_error", "ServerFailed", True),
    (599, "?", "", "ServerFailed", True),
    (307, "", "", "CallRefused", False),
    (418, "I'm a teapot", "", "CallRefused", False),
]


LENGTHS = [
    ("Input length (9000) exceeds model's maximum context length (8192).", 8192, 9000),
    ("Input length 9000 exceeds the maximum allowed input length of 8192 tokens.", 8192, 9000),
    ("Your request exceeded model token limit: 8192 (requested: 9000)", 8192, 9000),
    ("Prompt too long: 9000 tokens exceeds max_seq_len 8192 (leave room for output tokens)", 8192, 9000),
    ("Range of input length should be [1, 8192]", 8192, 0),
]


@pytest.mark.parametrize(("message", "context", "prompt"), LENGTHS)
def test_the_length_of_a_context_is_read_from_its_refusal(message: str, context: int, prompt: int) -> None:
    long = error_of(SERVER, "openai:m", 400, {}, json.dumps({"error": {"message": message, "code": "400"}}))
    assert isinstance(long, ContextTooLong)
    assert (long.context, long.prompt) == (context, prompt)


async def test_a_status_has_its_type_and_its_posture(bench: Bench) -> None:
    for status, message, code, kind, retryable in CASES:
        bench.server.rules.clear()
        bench.server.on("", Reply(status=status, text=message, code=code, headers={"retry-after": "3"}))
        with pytest.raises(ProviderError) as caught:
            await bench.ask()
        assert (type(caught.value).__name__, caught.value.retryable) == (kind, retryable), message
        assert caught.value.retry_after == (3.0 if retryable else None), message
        assert str(status) in str(caught.value)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("body", "quote"),
    [
        ('{"error": "model is loading"}', "model is loading"),
        ('{"message": "plain", "object": "error"}', "plain"),
        ('{"detail": [{"msg": "field required"}]}', "field required"),
        ("<html><head><title>502 Bad Gateway</title></head></html>", "a web page, '502 Bad Gateway'"),
        ("upstream <b>timed</b> out", "upstream timed out"),
        ("", ""),
        ("[]", ""),
        ('"text"', "text"),
        ("{" * 5000, "{{{"),
    ],
)
def test_any_form_of_an_error_body_is_quoted_short(body: str, quote: str) -> None:
    error = error_of(SERVER, "openai:m", 502, {}, body)
    assert quote in str(error)
    assert len(str(error)) <= 320


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}}, "RateLimited"),
        ({"error": {"message": "see billing", "type": "requests", "code": "rate_limit_exceeded"}}, "RateLimited"),
        ({"error": {"message": "see billing", "type": "insufficient_quota"}}, "QuotaUsedUp"),
        ({"error": {"message": "no", "type": "overloaded_error"}}, "ServerFailed"),
        ({"error": {"message": "no", "type": "authentication_error"}}, "KeyRefused"),
        ({"error": "broke"}, "ServerFailed"),
        ({"type": "error"}, "ServerFailed"),
        ({"error": {"message": "context length exceeded", "type": "invalid_request_error"}}, "ContextTooLong"),
    ],
)
def test_an_error_inside_a_stream_has_the_same_types(data: dict[str, object], kind: str) -> None:
    assert type(error_within(SERVER, "openai:m", data)).__name__ == kind


BEHIND = [
    (429, "z-ai/glm-5 is temporarily rate-limited upstream. Please retry shortly", "RateLimited"),
    (400, {"error": {"message": "Your credit balance is too low", "type": "invalid_request_error"}}, "QuotaUsedUp"),
    (400, {"error": {"message": "at most 1 image per prompt", "param": "messages"}}, "CallRefused"),
    (400, {"type": "error", "error": {"message": "prompt is too long: 9 tokens > 4 maximum"}}, "ContextTooLong"),
]


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize(("status", "raw", "kind"), BEHIND)
def test_a_gateway_passes_on_what_the_server_behind_it_has_said(
    status: int, raw: object, kind: str, as_text: bool
) -> None:
    """OpenRouter: open-webui/computer#293, diegosouzapw/OmniRoute#3044."""
    passed_on = json.dumps(raw) if as_text and not isinstance(raw, str) else raw
    said = {"message": "Provider returned error", "code": status, "metadata": {"raw": passed_on, "provider_name": "P"}}
    for error in (
        error_of(SERVER, "openai:m", status, {}, json.dumps({"error": said})),
        error_within(SERVER, "openai:m", {"error": said}),
    ):
        assert type(error).__name__ == kind
        words = raw["error"]["message"] if isinstance(raw, dict) else str(raw)
        assert f"Provider returned error: {words}" in str(error)


def test_a_key_is_never_quoted() -> None:
    server = Server("openai", "http://models.test/v1", KEY)
    message = f"Incorrect key {KEY}, sk-proj-ab12****9xyz or Bearer {KEY} at http://ada:hush-hush@models.test"
    error = error_of(server, "openai:m", 400, {}, json.dumps({"error": {"message": message}}))
    for secret in (KEY, "ab12", "9xyz", "hush-hush"):
        assert secret not in str(error)
        assert secret not in repr(server)
