"""Secrets never reach the log, however they are spelled there."""

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest

from sennit.activities.nodes.error_mapping import failure
from sennit.activities.providers.model import ProviderError
from sennit.activities.toolbox import ToolError, redaction
from sennit.activities.toolbox.redaction import MASK, Redactor, mask, redact, remember

SECRET = 'sk-"quoted"\\and-long'


NAMES = [
    "OPENAI_API_KEY",
    "OPENAI_API_KEY_2",
    "HF_TOKEN",
    "HF_TOKEN_READ",
    "APP_SECRET",
    "CLIENT_SECRET_V2",
    "AWS_SECRET_ACCESS_KEY",
    "my_api_key",
    "SIGNING_KEY",
    "ENCRYPTION_KEY_OLD",
    "SECRET_KEY_BASE",
    "MASTER_KEY",
    "SSH_PRIVATE_KEY",
    "LICENSE_KEY",
    "KEY",
    "apiKey",
    "x-api-key",
    "APIKEY",
    "DB_PASSWORD_RO",
    "REDIS_PASS",
    "DB_PASS_2",
    "MYSQL_PWD",
    "PGPASSWORD",
    "PASSPHRASE",
    "KEY_PASSPHRASE",
    "GITHUB_PAT",
    "GITHUB_PAT_CI",
    "TOKEN",
    "TOKEN_GITHUB",
    "API_TOKENS",
    "GITHUBTOKEN",
    "authToken",
    "clientSecret",
    "Proxy-Authorization",
    "BASIC_AUTH",
    "NPM_AUTH",
    "JWT_OLD",
    "SESSION_COOKIE",
    "GCP_CREDENTIALS_JSON",
    "SENTRY_DSN",
    "SLACK_WEBHOOK",
    "WEBHOOK_URL",
    "WIFI_PSK",
    "HMAC_V1",
    "OAUTH_CLIENT",
    "BEARER",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_value_of_a_variable_that_looks_like_a_key_is_masked(name: str) -> None:
    assert Redactor({name: "hunter2222"}).clean("said hunter2222, twice: hunter2222") == (f"said {MASK}, twice: {MASK}")


def test_an_operator_names_other_secrets() -> None:
    env = {
        "SENNIT_SECRETS": "HARMLESS, PLAIN_*",
        "HARMLESS": "hunter2222",
        "PLAIN_2": "hunter3333",
        "OTHER": "hunter4444",
    }
    assert Redactor(env).clean("hunter2222 hunter3333 hunter4444 HARMLESS") == f"{MASK} {MASK} hunter4444 HARMLESS"


@pytest.mark.parametrize(
    "name",
    [
        "MAX_TOKENS",
        "TOKENIZER",
        "TOKENIZERS_PARALLELISM",
        "KEYBOARD",
        "PATH",
        "PWD",
        "SECRETARY",
        "MONKEY",
        "COMPASS",
        "SSH_AUTH_SOCK",
        "TLS_KEY_FILE",
        "PASSED",
        "PATTERN",
        "AUTHOR",
        "TOKENS_PER_MINUTE",
        "PINNED",
        "SALTED_NUTS",
    ],
)
def test_the_value_of_another_variable_stays(name: str) -> None:
    assert Redactor({name: "hunter2222"}).clean("hunter2222") == "hunter2222"


@pytest.mark.parametrize("spelling", [SECRET, json.dumps(SECRET), repr(SECRET), json.dumps(json.dumps(SECRET))])
def test_a_secret_is_found_however_it_is_quoted(spelling: str) -> None:
    cleaned = Redactor({"X_API_KEY": SECRET}).clean(f"before {spelling} after")
    assert "and-long" not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


ODD = 'p@ss w/rd+"<é>\\-9'


@pytest.mark.parametrize(
    "spelling",
    [
        ODD,
        quote(ODD),
        quote(ODD, safe="").lower(),
        quote_plus(ODD),
        quote(quote(ODD)),
        html.escape(ODD),
        html.escape(html.escape(ODD), quote=False),
        json.dumps(html.escape(ODD)),
        ODD.encode("ascii", "xmlcharrefreplace").decode(),
        b64encode(ODD.encode()).decode(),
        urlsafe_b64encode(f"a{ODD}".encode()).decode(),
        b64encode(f"me:{ODD}\n".encode()).decode(),
        quote(b64encode(f"you:{ODD}".encode()).decode(), safe=""),
    ],
)
def test_a_secret_is_found_however_a_library_encodes_it(spelling: str) -> None:
    cleaned = Redactor({"X_TOKEN": ODD}).clean(f"before {spelling} after")
    assert re.fullmatch(r'before ["\w/+]{0,6}\[redacted\]["\w/+=%]{0,4} after', cleaned)


def test_data_is_masked_at_any_depth_and_only_where_it_holds_a_secret() -> None:
    remember("t0ld-to-it")
    data = {"a": ["x t0ld-to-it", 7, None, {"t0ld-to-it": True}], "b": "Authorization: Bearer of-a-document"}
    assert mask(data) == {"a": [f"x {MASK}", 7, None, {MASK: True}], "b": data["b"]}
    assert mask(data, "nothing of it") is data


def test_a_message_is_cut_only_after_its_secrets_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    for error in (ToolError("x" * 490 + SECRET), ProviderError("x" * 490 + SECRET)):
        assert SECRET[:4] not in str(error)


@pytest.mark.parametrize("spelling", ["\\\\", "%25", "&amp;", "sk-", "authorization: ", "A"])
def test_a_long_text_is_searched_in_linear_time(spelling: str) -> None:
    """Steps cannot be counted: what is quadratic here takes minutes, and the suite's time limit ends it."""
    redactor = Redactor({"A_TOKEN": '\\"/&%+ab\\"cd', "B_TOKEN": "&%&%abcd"})
    assert redactor.clean(spelling * 100_000 + "abcd")


def test_a_secret_that_contains_another_is_masked_whole() -> None:
    redactor = Redactor({"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefgh-and-more"})
    assert redactor.clean("abcdefgh-and-more") == MASK


def test_a_value_too_short_to_be_a_secret_is_left_alone() -> None:
    assert Redactor({"USE_TOKEN": "true"}).clean("this is true") == "this is true"


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer abc.def-123",
        "authorization: Basic YWRhOmxvdmVsYWNl",
        "{'Authorization': 'Bearer abc.def-123'}",
        '{"authorization": "abc.def-123"}',
        '{\\"authorization\\": \\"Token abc.def-123\\"}',
        "(b'authorization', b'Bearer abc.def-123')",
        "x-api-key=abc.def-123",
        "x-goog-api-key: abc.def-123",
        "\x1b[36mauthorization\x1b[0m=\x1b[35mBearer abc.def-123\x1b[0m",
        "curl -H 'Proxy-Authorization: abc.def-123'",
        "sent bearer abc.def-123 to it",
    ],
)
def test_credentials_in_headers_are_masked(header: str) -> None:
    cleaned = Redactor({}).clean(header)
    assert "abc.def-123" not in cleaned
    assert "YWRh" not in cleaned
    assert MASK in cleaned


def test_prose_about_authorization_stays() -> None:
    text = "authorization failed for the bearer of this message; an api key is missing"
    assert Redactor({}).clean(text) == text


def test_passwords_in_urls_are_masked_and_those_of_variables_wherever_they_stand() -> None:
    redactor = Redactor({"DATABASE": "postgres://sennit:hunter2222@db.example/sennit", "SHORT": "amqp://a:abc@mq"})
    cleaned = redactor.clean(
        'cannot connect to postgres://sennit:hunter2222@db.example/sennit: no user with "hunter2222"'
    )
    assert cleaned == f'cannot connect to postgres://sennit:{MASK}@db.example/sennit: no user with "{MASK}"'
    assert redactor.clean("see redis://:other@cache, abc and http://host:80/@x") == (
        f"see redis://:{MASK}@cache, abc and http://host:80/@x"
    )


def test_errors_of_tools_say_no_secret_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    failed = failure(ValueError(f"GET /orders?key={SECRET} failed"))
    assert (failed.message, failed.type) == (f"GET /orders?key={MASK} failed", "ValueError")


def test_a_key_of_several_lines_is_masked_line_by_line() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "short=="]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    redactor = Redactor({"SIGNING_KEY": key})
    assert redactor.clean(f"the key: {key}") == f"the key: {MASK}"
    for line in lines[:2]:
        assert redactor.clean(f"  {line}\n") == f"  {MASK}\n"
    assert redactor.clean("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_a_variable_may_vanish_while_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may have taken it away."""
    monkeypatch.setenv("SENNIT_TEST_VANISHES", "value")

    def vanish(_: str) -> bool:
        os.environ.pop("SENNIT_TEST_VANISHES", None)
        return False

    monkeypatch.setattr(redaction, "is_secret_name", vanish)
    assert redact("a message") == "a message"
