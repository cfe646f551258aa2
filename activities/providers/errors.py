"""What can go wrong in a model call, by name, and the one function from a server's
refusal to its retry posture.

Messages quote the server in at most 200 characters, and never a key.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from sennit.activities.http.client import HttpError, retry_after
from sennit.activities.limits import MAX_WAIT_SECONDS
from sennit.activities.providers.model import ProviderError
from sennit.activities.providers.settings import Server
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.plan.language.text import cut

QUOTED = 200
NOT_IMPLEMENTED = 501
_RETRIED = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|prompt(?: is)? too long|input is too long|too many (input "
    r")?tokens|"
    r"reduce the length|exceed\w{0,3} .{0,40}context|maximum .{0,20}tokens .{0,60}(prompt"
    r"|messages)|"
    r"maximum allowed input length|range of input length|exceed\w{0,3} .{0,20}token limit|"
    r"(?:prompt|input)(?: length)? exceeds (?:the )?max(?:imum)? length|max_(?:seq|model)_len|"
    r"prompt ?\u8d85\u957f|\u4e0a\u4e0b\u6587.{0,6}\u8d85|\u957f\u5ea6\u8d85\u9650"
)
_NUMBER = r"(?<![\d,])(\d[\d,]*+)"
_CONTEXT = re.compile(
    rf"context (?:length|limit|window|size) ?(?:is|of|:)? ?(?:only )?\(?{_NUMBER}(?![\d,]* \+)"
    rf"|\bn_ctx\"?: ?{_NUMBER}"
    rf"|\d > {_NUMBER}|tokens > {_NUMBER} maximum|must be <= {_NUMBER}"
    rf"|input length of {_NUMBER}|token limit: {_NUMBER}|max_(?:seq|model)_len {_NUMBER}"
    rf"|input length should be \[1, {_NUMBER}"
)
_PROMPT = re.compile(
    rf"{_NUMBER} (?:in|from) the (?:input )?messages|{_NUMBER} input tokens|n_prompt_tokens\"?: "
    rf"?{_NUMBER}"
    rf"|request \({_NUMBER} tokens|resulted in {_NUMBER} tokens|given: {_NUMBER} `inputs`"
    rf"|{_NUMBER} \+ [\d,]+ > |{_NUMBER} tokens > |{_NUMBER} tokens from the input|\brequested: "
    rf"{_NUMBER}"
    rf"|input length \(?{_NUMBER}|too long: {_NUMBER} tokens"
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|model .{0,120}(not found|does not exist|not supported|unknown)|no "
    r"such model"
    r"|(unknown|invalid|unrecogni[sz]ed) model\b|model not exist|is not a valid model|model "
    r".{0,120}is not available"
)
_NO_TOOL_USE = re.compile(r"tool use|tool call|function call")
_USED_UP = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota")
_USED_UP_CODES = ("insufficient_quota", "exceeded_current_quota", "insufficient_balance")
_WRONG_KEY = re.compile(
    r"api key not valid|api_key_invalid|\b(?:invalid|incorrect|wrong|missing) api[ _-]?key"
)
_DECLINED = re.compile(
    r"\bflagged\b|moderation|content[_ ](filter|management policy)|usage polic"
    r"|data_inspection_failed"
)
_THROTTLED = re.compile(r"throttl|tokens, please wait|rate[_ ]limit|too many requests")
_TOO_LARGE = re.compile(r"request too large")
_SLIP = re.compile(
    r"tool_use_failed|json_validate_failed|failed to call a function|failed to generate json"
)
"""The model wrote what its server could not read: nothing is wrong with the call, and the
next reply may be right.
"""
_WAIT = re.compile(
    r"(?:try again|retry|retried|wait|available|reset\w{0,10}) ?(?:in|after|for)? (?:about |at "
    r"least )?"
    r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m(?!s))?(?P<number>\d+(?:\.\d+)?)? ?(?P<unit>ms|milli"
    r"|m(?!s)|s|h)?"
    r"|retry_?delay\W{1,4}(?P<delay>\d+(?:\.\d+)?)s"
)
_UNITS = {"ms": 0.001, "milli": 0.001, "m": 60.0, "h": 3600.0}
_MOST_OUTPUT = re.compile(
    r"max[_ ]\w{0,30}tokens.{0,60}"
    r"(?:less than or equal to|<=|at most|exceeds?(?: the)?(?: limit| maximum)?(?: of)?)"
    rf" {_NUMBER}"
    rf"|supports at most {_NUMBER} (?:completion|output) tokens|can only afford {_NUMBER}"
    rf"|{_NUMBER},? which is the maximum allowed number of output tokens"
)
_OF_PROMPT = re.compile(r"context|\binputs?\b|prompt")
_OWN_WORDS = re.compile(
    r"(?s)\b(?:raw|failed_generation|generated_text|got|received|input)['\"]?\s?[=:].*+"
    r"|(?<!\w)(['\"`])(?:(?!\1).){25,}\1(?!\w)"
)
"""What a refusal repeats of the prompt or of a model's reply: it names nothing that
the server does not take.
"""
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
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "tokens": 429,
    "requests": 429,
    "invalid_argument": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "resource_exhausted": 429,
    "unavailable": 503,
    "deadline_exceeded": 504,
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
}
"""Of OpenAI, Anthropic, llama.cpp, Google and Bedrock, in small letters."""
_STATUS_IN_WORDS = (
    (_WRONG_KEY, 401),
    (re.compile(r"insufficient (balance|credit|quota)"), 402),
    (re.compile(r"unexpected endpoint"), 404),
    (_THROTTLED, 429),
    (_TOO_LONG, 400),
)
"""Where an error in a stream has no status: what its words mean."""
_PLACES_OF_STATUS = (
    "code",
    "status",
    "status_code",
    "statusCode",
    "http_code",
    "error_code",
    "type",
)
_PLACES_OF_WORDS = (
    "message", "detail", "msg", "status_msg", "error_msg", "error_message", "errorMessage",
    "error_description", "reason", "description", "title", "error",
)  # fmt: skip
_ERROR_FIELDS = ("error", "errors", "exception", "fault", "Error")
_PLACES_OF_ERROR = frozenset((*_ERROR_FIELDS, "base_resp"))
_WORDS_OF_ERROR = (
    "message",
    "detail",
    "msg",
    "status_msg",
    "error_msg",
    "error_message",
    "errorMessage",
)


class KeyRefused(ProviderError):
    """There is no key, or the server does not take it. Names the variable."""


class UnknownModel(ProviderError):
    """The server has no model of that name, or it is not clear which is meant."""


class ContextTooLong(ProviderError):
    """Prompt and reply do not fit into the model's context. `context` and `prompt` are their
    tokens, 0 where the server has not said so.
    """

    context = 0
    prompt = 0


class CallRefused(ProviderError):
    """The server does not take the call as it is. `text` is its answer in lower case, without what
    it repeats of the call; `parameters` are those that it names in a field of its own.
    `most_output` is the longest reply that it allows, 0 where it has not said so.
    """

    most_output = 0

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.text = message.lower()
        self.parameters: tuple[str, ...] = ()


class ExtraMissing(ProviderError):
    """The worker has not what a model needs installed. Names the command that installs it."""


class MediaRefused(ProviderError):
    """The model takes no images, PDFs or audio of that kind. Names the model and what it does not
    take. `kinds` are those that the server says the model takes none of: none where it speaks of
    one file, such as a broken image.
    """

    kinds: tuple[str, ...] = ()


class QuotaUsedUp(ProviderError):
    """The account has no money or quota left: waiting does not help."""


class RateLimited(ProviderError):
    """Too many calls or tokens just now."""

    pressure = 2.0


class ServerFailed(ProviderError):
    """The server is overloaded or broken just now. `text` is its answer in lower case, without what
    it repeats of the call or of the reply.
    """

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
    """The reply ended at its token limit, and half of a reply is none. `written` is how many
    tokens had come, `limit` is what the call was sent with, and `growable` says that another call
    may be given more room.
    """

    written = 0
    limit: int | None = None
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
        case "proxy":
            todo = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
            return ServerUnreachable(f"{where} cannot be reached: {why}; {todo}")
        case "timeout":
            return ModelTimeout(f"{where}: {why}", retryable=True)
        case "cut":
            return ReplyCut(f"{where} ended the reply early ({why})", retryable=True)
        case "encoding":
            return BadReply(f"{where}: {why}", retryable=True)
        case "size":
            return ReplyTooLarge(f"{where} {why}")


def error_of(
    server: Server, model: str, status: int, headers: Mapping[str, str], body: str
) -> ProviderError:
    """Return what a refusal means: its type, one sentence with what to do, whether
    and when to try again.

    408, 409, 425, 429 and 5xx are tried again, unless the account is used up; every other status is
    final, unless the words say that the rate is limited, or that the model has slipped.
    """
    refusal = refusal_in(body)
    wait = retry_after(headers)
    if wait is None:
        wait = wait_in(body)
    code = refusal.code.lower()
    text = f"{refusal.code} {refusal.message}".lower()[:2000]
    quote = f": {quoted(refusal.message)}" if refusal.message else ""
    where = f"{server.provider} at {server.shown}"

    # What is about the account or the key comes first: nothing else of the call matters then.
    most_output = _most_output_in(text)
    if _used_up(status, code, text) and not (status == 402 and most_output):
        return QuotaUsedUp(f"{where} has no quota left for this account ({status}){quote}")
    if status in (400, 403, 422) and _DECLINED.search(text):
        return ModelRefused(f"{where} declined the call ({status}){quote}")
    if status in (401, 403) or (status == 400 and _WRONG_KEY.search(text)):
        todo = f"check {server.key_variable}" if server.key else f"set {server.key_variable}"
        return KeyRefused(f"{where} refuses the key ({status}); {todo}{quote}")

    # What is about the call, and never passes: it wants more than its rate gives in a minute.
    if status == 429 and _TOO_LARGE.search(text):
        return ContextTooLong(f"the call is too large for the rate of {model} ({status}){quote}")

    # What may pass.
    if status == 429 or (status == 400 and _THROTTLED.search(text)):
        return RateLimited(
            f"{where} limits the rate ({status}){quote}", retryable=True, retry_after=wait
        )
    if status in _RETRIED or (status >= 500 and status != NOT_IMPLEMENTED):
        failed = ServerFailed(f"{where} failed ({status}){quote}", retryable=True, retry_after=wait)
        failed.text = without_own_words(text)
        return failed
    if _SLIP.search(text):
        return BadReply(
            f"{where} could not read the model's words ({status}){quote}", retryable=True
        )

    # What is about the call.
    if status == 413 or (status in (400, 422) and not most_output and _TOO_LONG.search(text)):
        long = ContextTooLong(f"the call is too long for {model} ({status}){quote}")
        long.context = _tokens_in(_CONTEXT, body[:4000].lower())
        long.prompt = _tokens_in(_PROMPT, body[:4000].lower())
        return long
    name = model.partition(":")[2]
    is_of_address = status == 404 and name.lower() in text and not _NO_TOOL_USE.search(text)
    if is_of_address or names_no_model(text):
        todo = "change SENNIT_MODEL, or `model` in the plan"
        return UnknownModel(f"{where} has no model {name!r} ({status}); {todo}{quote}")
    if status in (404, 405) or 300 <= status < 400:
        refused = CallRefused(
            f"{where} has nothing at this address ({status}); check {server.url_variable}{quote}"
        )
        text = f"{status} not found {text}"
    else:
        refused = CallRefused(f"{where} refuses the call ({status}){quote}")
    refused.text = without_own_words(text)
    refused.parameters = refusal.parameters
    refused.most_output = most_output
    return refused


def names_no_model(text: str) -> bool:
    """Whether a refusal, in small letters, says that the server has no such model."""
    return _NO_MODEL.search(text) is not None and _NO_TOOL_USE.search(text) is None


def _used_up(status: int, code: str, text: str) -> bool:
    """Whether the account is empty. Of a 429 only its code says so: rate limits speak of
    quotas and billing too.
    """
    if status == 402:
        return True
    if status == 429:
        if "rate_limit" in code:
            return False
        return any(name in code for name in _USED_UP_CODES)
    return status < 404 and bool(_USED_UP.search(text))


def wait_in(body: str) -> float | None:
    """Return the seconds for which a refusal asks in words, at most a minute;
    None if it asks for none.
    """
    for found in _WAIT.finditer(body[:4000].lower()):
        if found["delay"]:
            seconds = float(found["delay"])
        elif found["number"] or found["minutes"] or found["hours"]:
            unit = _UNITS.get(found["unit"] or "s", 1.0)
            minutes = int(found["minutes"] or 0)
            hours = int(found["hours"] or 0)
            seconds = float(found["number"] or 0) * unit
            seconds += 60 * minutes + 3600 * hours
        else:
            continue
        return min(seconds, MAX_WAIT_SECONDS)
    return None


def without_own_words(text: str) -> str:
    """Return a refusal without what it repeats of the prompt or of a reply."""
    return _OWN_WORDS.sub(" ", text)


def is_error(data: Any, fields: Collection[str]) -> bool:
    """Whether an event, or a whole answer, is an error: it says so, or it has words for people and
    none of the `fields` of a reply. Other events without these fields are signs of life.
    """
    if not isinstance(data, dict):
        return False
    if "error" in (data.get("type"), data.get("object"), data.get("event")):
        return True
    for place in _places(data):
        if _error_in(place):
            return True
    if any(map(data.get, fields)):
        return False
    for name in _WORDS_OF_ERROR:
        words = data.get(name)
        if words and isinstance(words, str | list):
            return True
    return False


def _places(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an event, its choices and their messages: in each of them some
    gateway puts an error.
    """
    places = [data]
    choices = data.get("choices")
    if not isinstance(choices, list):
        return places
    for choice in choices:
        if not isinstance(choice, dict):
            continue
        places.append(choice)
        for name in ("delta", "message"):
            message = choice.get(name)
            if isinstance(message, dict):
                places.append(message)
    return places


def _error_in(place: dict[str, Any]) -> Any:
    """Return the error that stands in a part of an event, None if there is none."""
    if _PLACES_OF_ERROR.isdisjoint(place):  # as in nearly every event
        return None
    for name in _ERROR_FIELDS:
        if place.get(name):
            return place[name]
    told = place.get("base_resp")  # of MiniMax, in every answer
    if isinstance(told, dict) and told.get("status_code"):
        return told
    return None


def error_within(server: Server, model: str, data: Any) -> ProviderError:
    """Return what an error inside a stream means, which comes after a status of 200."""
    error = data
    if isinstance(data, dict):
        for place in _places(data):
            inner = _error_in(place)
            if inner is not None:
                error = inner
                break
    if isinstance(error, list) and error:
        error = error[0]
    body = error
    if not isinstance(body, str):
        body = json.dumps(error)
    return error_of(server, model, _status_within(error, body), {}, body)


def _status_within(error: Any, body: str) -> int:
    """Return the status that an error without one amounts to: by its codes,
    by its words, else 500.
    """
    kinds: list[str] = []
    if isinstance(error, dict):
        kinds += [str(error[name]).lower() for name in _PLACES_OF_STATUS if error.get(name)]
    for kind in kinds:
        has_three_digits = kind.isascii() and kind.isdecimal() and len(kind) == 3
        if has_three_digits and 400 <= int(kind) < 600:
            return int(kind)
    for kind in kinds:
        if kind in _STATUS_OF:
            return _STATUS_OF[kind]
    text = body.lower()
    for words, status in _STATUS_IN_WORDS:
        if words.search(text):
            return status
    return 500


def quoted(text: str) -> str:
    """Return what a server said on one line, short, with anything like a key masked."""
    return cut(redact(" ".join(text.split())), QUOTED)


def title_of(body: str) -> str:
    """Return what a web page or other text says: its title, or its words."""
    page = re.search(r"<title[^<>]*>([^<]+)", body, re.IGNORECASE)
    if page:
        return f"a web page, {page[1].strip()!r}"
    return re.sub(r"<[^<>]*>", " ", body).strip()


def _most_output_in(text: str) -> int:
    """Return how many tokens a refusal lets a reply have; 0 if it speaks of the
    prompt, or of something else.
    """
    if _OF_PROMPT.search(text):
        return 0
    return _tokens_in(_MOST_OUTPUT, text)


def _tokens_in(patterns: re.Pattern[str], text: str) -> int:
    """Return the first number of tokens that a refusal gives in one of these
    ways, 0 if there is none.
    """
    found = patterns.search(text)
    if not found:
        return 0
    number = next(filter(None, found.groups()))
    return int(number.replace(",", ""))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What an error body says: its codes, its words, and the parameters
    that a field of it names.
    """

    code: str = ""
    message: str = ""
    parameters: tuple[str, ...] = ()


def refusal_in(body: str) -> _Refusal:
    """Return what an error body of any of the usual forms says."""
    try:
        data = from_json(body)
    except ValueError:
        return _Refusal(message=title_of(body))
    if isinstance(data, list) and len(data) == 1:  # of Google
        data = data[0]
    error = data
    if isinstance(data, dict):
        error = data.get("error") or data.get("errors") or data
    if not isinstance(error, dict):
        return _Refusal(message=str(error), parameters=tuple(_located(error)))
    codes = [str(error[name]) for name in ("code", "type", "status", "param") if error.get(name)]
    message: Any = ""
    for name in _PLACES_OF_WORDS:
        if error.get(name):
            message = error[name]
            break
    parameters = _located(message)
    if isinstance(error.get("param"), str):
        parameters.insert(0, error["param"])
    if not isinstance(message, str):
        message = json.dumps(_without_input(message))
    behind = _refusal_behind(error)
    if behind.message:
        message = f"{message}: {behind.message}"
    if behind.code:
        codes.append(behind.code)
    return _Refusal(" ".join(codes), message, (*parameters, *behind.parameters))


def _refusal_behind(error: dict[str, Any]) -> _Refusal:
    """Return what the server behind a gateway has said: OpenRouter's own words are no more than
    "Provider returned error".
    """
    metadata = error.get("metadata")
    raw: Any = None
    if isinstance(metadata, dict):
        raw = metadata.get("raw")
    if not raw:
        return _Refusal()
    if not isinstance(raw, str):
        raw = json.dumps(raw)
    return refusal_in(raw)


def _located(problems: Any) -> list[str]:
    """Return the parameters in pydantic's list of problems: the name
    behind `body` of each place.
    """
    parameters: list[str] = []
    if not isinstance(problems, list):
        return parameters
    for problem in problems:
        if isinstance(problem, dict):
            place = problem.get("loc")
            if isinstance(place, list) and len(place) > 1 and place[0] == "body":
                parameters.append(str(place[1]))
    return parameters


def _without_input(problems: Any) -> Any:
    """Return pydantic's list of problems without the values that were sent."""
    if not isinstance(problems, list):
        return problems
    without: list[Any] = []
    for problem in problems:
        if isinstance(problem, dict):
            problem = {
                name: problem[name] for name in ("type", "loc", "msg", "message") if name in problem
            }
        without.append(problem)
    return without
