"""What can go wrong in a model call, by name, and the one function from a server's refusal to its retry posture.

Messages quote the server in at most 200 characters, and never a key.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from sennit.activities.http.client import HttpError, retry_after
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.settings import Server
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.plan.language.text import cut

QUOTED = 200
_RETRIED = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|prompt is too long|input is too long|too many (input )?tokens|"
    r"reduce the length|exceed\w{0,3} .{0,40}context|maximum .{0,20}tokens .{0,60}(prompt|messages)"
)
_NUMBER = r"(?<![\d,])(\d[\d,]*+)"
_CONTEXT = re.compile(
    rf"context (?:length|limit|window|size) ?(?:is|of|:)? ?(?:only )?\(?{_NUMBER}(?![\d,]* \+)|\bn_ctx\"?: ?{_NUMBER}"
    rf"|\d > {_NUMBER}|tokens > {_NUMBER} maximum|must be <= {_NUMBER}"
)
_PROMPT = re.compile(
    rf"{_NUMBER} (?:in|from) the (?:input )?messages|{_NUMBER} input tokens|n_prompt_tokens\"?: ?{_NUMBER}"
    rf"|request \({_NUMBER} tokens|resulted in {_NUMBER} tokens|given: {_NUMBER} `inputs`"
    rf"|{_NUMBER} \+ [\d,]+ > |{_NUMBER} tokens > |{_NUMBER} tokens from the input"
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|model .{0,120}(not found|does not exist|not supported|unknown)|no such model"
    r"|(unknown|invalid|unrecogni[sz]ed) model\b|model not exist|is not a valid model|model .{0,120}is not available"
)
_USED_UP = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota")
_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class KeyRefused(ProviderError):
    """There is no key, or the server does not take it. Names the variable."""


class UnknownModel(ProviderError):
    """The server has no model of that name, or it is not clear which is meant."""


class ContextTooLong(ProviderError):
    """Prompt and reply do not fit into the model's context. `context` and `prompt` are their tokens, 0 where the server
    has not said so.
    """

    context = 0
    prompt = 0


class CallRefused(ProviderError):
    """The server does not take the call as it is. `text` is its answer in lower case."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.text = message.lower()


class QuotaUsedUp(ProviderError):
    """The account has no money or quota left: waiting does not help."""


class RateLimited(ProviderError):
    """Too many calls or tokens just now."""

    pressure = 2.0


class ServerFailed(ProviderError):
    """The server is overloaded or broken just now. `text` is its answer in lower case."""

    pressure = 1.0
    text = ""


class ServerUnreachable(ProviderError):
    """No connection."""

    pressure = 1.0


class ModelTimeout(ProviderError):
    """No reply, no next piece, or no end of it in time."""

    pressure = 1.0


class ReplyCut(ProviderError):
    """The connection ended before the reply did."""

    pressure = 1.0


class BadReply(ProviderError):
    """What came is no reply in the provider's format."""


class ReplyTooLarge(ProviderError):
    """The reply, unpacked, is larger than any that was asked for."""


class ModelRefused(ProviderError):
    """The model, or a filter, declined to answer."""


class OutputCut(ProviderError):
    """The reply ended at its token limit, and half of a reply is none. `written` is how many tokens had come, and
    `growable` says that another call may be given more room.
    """

    written = 0
    growable = False


class SchemaMismatch(ProviderError):
    """A model's output does not fit the schema it was asked for."""

    pressure = 0.5


def error_without_answer(server: Server, error: HttpError) -> ProviderError:
    """Return what it means that a server gave no usable answer."""
    where = f"{server.provider} at {server.shown}"
    why = quoted(str(error))
    match error.cause:
        case "unreachable" | "certificate":
            message = f"{where} cannot be reached: {why}; check {server.url_variable}"
            return ServerUnreachable(message, retryable=error.cause == "unreachable")
        case "timeout":
            return ModelTimeout(f"{where}: {why}", retryable=True)
        case "cut":
            return ReplyCut(f"{where} ended the reply early ({why})", retryable=True)
        case "encoding":
            return BadReply(f"{where}: {why}", retryable=True)
        case "size":
            return ReplyTooLarge(f"{where} {why}")


def error_of(server: Server, model: str, status: int, headers: Mapping[str, str], body: str) -> ProviderError:
    """Return what a refusal means: its type, one sentence with what to do, whether and when to try again.

    408, 409, 425, 429 and 5xx are tried again, unless the account is used up; every other status is final.
    """
    code, message = _code_and_message(body)
    wait = retry_after(headers)
    text = f"{code} {message}".lower()[:2000]
    quote = f": {quoted(message)}" if message else ""
    where = f"{server.provider} at {server.shown}"
    if _used_up(status, code.lower(), text):
        return QuotaUsedUp(f"{where} has no quota left for this account ({status}){quote}")
    if status in (401, 403):
        todo = f"check {server.key_variable}" if server.key else f"set {server.key_variable}"
        return KeyRefused(f"{where} refuses the key ({status}); {todo}{quote}")
    if status == 429:
        return RateLimited(f"{where} limits the rate ({status}){quote}", retryable=True, retry_after=wait)
    if status in _RETRIED or status >= 500:
        failed = ServerFailed(f"{where} failed ({status}){quote}", retryable=True, retry_after=wait)
        failed.text = text
        return failed
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(text)):
        long = ContextTooLong(f"the call is too long for {model} ({status}){quote}")
        long.context, long.prompt = (_tokens_in(words, body[:4000].lower()) for words in (_CONTEXT, _PROMPT))
        return long
    if _NO_MODEL.search(text) or (status == 404 and model.partition(":")[2].lower() in text):
        todo = "change SENNIT_MODEL, or `model` in the plan"
        return UnknownModel(f"{where} has no model {model.partition(':')[2]!r} ({status}); {todo}{quote}")
    if status in (404, 405) or 300 <= status < 400:
        refused = CallRefused(f"{where} has nothing at this address ({status}); check {server.url_variable}{quote}")
        refused.text = f"{status} not found {text}"
    else:
        refused = CallRefused(f"{where} refuses the call ({status}){quote}")
        refused.text = text
    return refused


def _used_up(status: int, code: str, text: str) -> bool:
    """Whether the account is empty. Of a 429 only its code says so: rate limits speak of quotas and billing too."""
    if status == 402:
        return True
    if status == 429:
        return "insufficient_quota" in code and "rate_limit" not in code
    return status < 404 and bool(_USED_UP.search(text))


def error_within(server: Server, model: str, data: Any) -> ProviderError:
    """Return what an error inside a stream means, which comes after a status of 200."""
    error = data.get("error", data) if isinstance(data, dict) else {}
    kinds = [error.get(name) for name in ("code", "type")] if isinstance(error, dict) else []
    status = next((kind for kind in kinds if isinstance(kind, int) and 400 <= kind < 600), None)
    known = next((_STATUS_OF[kind] for kind in kinds if isinstance(kind, str) and kind in _STATUS_OF), 500)
    return error_of(server, model, status or known, {}, error if isinstance(error, str) else json.dumps(error))


def quoted(text: str) -> str:
    """Return what a server said on one line, short, with anything like a key masked."""
    return cut(redact(" ".join(text.split())), QUOTED)


def title_of(body: str) -> str:
    """Return what a web page or other text says: its title, or its words."""
    page = re.search(r"<title[^<>]*>([^<]+)", body, re.IGNORECASE)
    return f"a web page, {page[1].strip()!r}" if page else re.sub(r"<[^<>]*>", " ", body).strip()


def _tokens_in(patterns: re.Pattern[str], text: str) -> int:
    """Return the first number of tokens that a refusal gives in one of these ways, 0 if there is none."""
    found = patterns.search(text)
    return int(next(filter(None, found.groups())).replace(",", "")) if found else 0


def _code_and_message(body: str) -> tuple[str, str]:
    """Return code and message of an error body of any of the usual forms."""
    try:
        data = from_json(body)
    except ValueError:
        return "", title_of(body)
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return "", str(error)
    code = " ".join(str(error[name]) for name in ("code", "type", "param") if error.get(name))
    message = next((error[name] for name in ("message", "detail", "error") if error.get(name)), "")
    return code, message if isinstance(message, str) else json.dumps(message)
