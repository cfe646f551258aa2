"""An HTTP endpoint as a tool."""

import asyncio
import json
import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import quote, urlencode, urlsplit

from pydantic import AfterValidator, BaseModel, Field, JsonValue, TypeAdapter, model_validator

from sennit.activities.http.client import Request, declared_headers
from sennit.activities.http.download import Download, exchange
from sennit.activities.limits import MAX_MESSAGE_CHARACTERS, MAX_URL_CHARACTERS
from sennit.activities.toolbox.configuration import Resource, Secrets, Strict, without_credentials
from sennit.activities.toolbox.definition import Effect, Tool, ToolContext
from sennit.activities.toolbox.errors import (
    ContentRefused,
    FetchFailed,
    HttpStatusError,
    ToolArgumentError,
    ToolError,
    UnknownOutcome,
)
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.language.limits import Duration
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.text import one_line

_SLOT: Final = re.compile(r"\{(\w+)\}")
_IN_URL: Final = ("GET", "HEAD", "DELETE")


class Endpoint(Strict):
    """One endpoint. `{name}` in path or query of `url` stands for an argument; the other arguments
    go into the query, or for POST, PUT and PATCH into a JSON body. Those in `query` go into the
    query with any method, and the one called `body` is the whole body.

    In `headers` `$NAME` stands for a variable of the worker. `idempotency_header` names the header
    in which the server takes an idempotency key; with it, a write may be tried again. `resource`
    says what no other node may use meanwhile.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    description: Annotated[str, Field(min_length=1, max_length=2_000)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Annotated[
        str,
        Field(pattern=r"^https?://[^/?#{}]+([/?#]|$)", max_length=MAX_URL_CHARACTERS),
        AfterValidator(without_credentials),
    ]
    arguments: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    query: tuple[str, ...] = ()
    body: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    effect: Effect
    timeout: Duration = 30.0
    max_bytes: Annotated[int, Field(ge=1, le=8_000_000)] = 1_000_000
    idempotency_header: str | None = None
    resource: Resource | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for where, problem in unknown_keywords(self.arguments, ("arguments",)):
            raise ValueError(f"{place_of(where)}: {problem}")
        if "{" in _SLOT.sub("", self.url):
            raise ValueError("url: write arguments as {name}")
        required = self.arguments.get("required", [])
        missing = [slot for slot in _SLOT.findall(self.url) if slot not in required]
        if self.arguments.get("type") != "object" or missing:
            names = ""
            if missing:
                names = f" and list {', '.join(missing)} under `required`"
            raise ValueError(f"arguments must be a schema of type object{names}")
        if self.body is not None and self.method in _IN_URL:
            raise ValueError(f"body: {self.method} has none; use POST, PUT or PATCH")
        return self

    @property
    def safe(self) -> bool:
        """Whether a second attempt does no harm."""
        return self.effect != "write" or self.idempotency_header is not None


class HttpAnswer(BaseModel):
    """The answer: `data` is JSON where the server sends JSON, else text. `location` is where a redirect points to."""  # noqa: E501 - models read it

    status: int
    content_type: str
    data: JsonValue
    truncated: bool
    location: str


def endpoint_tool(endpoint: Endpoint, secrets: Secrets, where: str) -> Tool:
    """Return the tool that calls an endpoint, declared at `where`. Raises ToolSetupError
    naming what to correct.
    """
    headers = declared_headers(secrets, endpoint.headers, f"{where}.headers")

    async def call(arguments: dict[str, Any], context: ToolContext) -> HttpAnswer:
        url, body = _filled(endpoint, arguments)
        sent = dict(headers)
        if body is not None:  # an operator may have named another type
            sent = {"Content-Type": "application/json", **headers}
        if endpoint.idempotency_header:
            sent[endpoint.idempotency_header] = context.idempotency_key
        request = Request(endpoint.method, url, sent, body)
        try:
            async with asyncio.timeout(endpoint.timeout):
                answer = await exchange(request, endpoint.max_bytes)
        except (TimeoutError, FetchFailed, HttpStatusError, ContentRefused) as error:
            raise _failure(endpoint, error) from None
        return _answer(answer)

    return Tool(
        name=endpoint.name,
        description=one_line(endpoint.description, MAX_MESSAGE_CHARACTERS),
        effect=endpoint.effect,
        timeout=endpoint.timeout + 5,
        resource=endpoint.resource,
        idempotent=endpoint.idempotency_header is not None,
        schema={"additionalProperties": False, **endpoint.arguments},
        output_schema=TypeAdapter(HttpAnswer).json_schema(mode="serialization"),
        function=call,
    )


def _filled(endpoint: Endpoint, arguments: dict[str, Any]) -> tuple[str, bytes | None]:
    """Return the URL and the body. An argument cannot leave its place in the path: it is
    quoted, and `..` refused.
    """
    in_path = set(_SLOT.findall(endpoint.url))

    def value(found: re.Match[str]) -> str:
        text = _text(arguments[found[1]])
        if text in ("", ".", "..") and "?" not in endpoint.url[: found.start()]:
            problem = f"{text!r} cannot stand in a path"
            raise ToolArgumentError(problem, tool=endpoint.name, field=found[1])
        return quote(text, safe="")

    url = _SLOT.sub(value, endpoint.url)

    # What is not in the path is in the query, or in the body; a list stands in the
    # query once for each value.
    rest = {name: argument for name, argument in arguments.items() if name not in in_path}
    in_query: list[tuple[str, str]] = []
    in_body: dict[str, Any] = {}
    for name, argument in rest.items():
        if endpoint.method in _IN_URL or name in endpoint.query:
            values = argument if isinstance(argument, list) else [argument]
            for single in values:
                in_query.append((name, _text(single)))
        else:
            in_body[name] = argument
    if in_query:
        url += "&" if urlsplit(url).query else "?"
        url += urlencode(in_query)

    if endpoint.method in _IN_URL:
        return url, None
    if endpoint.body is None:
        return url, json.dumps(in_body).encode()
    if endpoint.body not in rest:
        return url, None
    return url, json.dumps(rest[endpoint.body]).encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _failure(endpoint: Endpoint, error: Exception) -> ToolError:
    """Return the error as it is, or UnknownOutcome where a write may have happened."""
    late = isinstance(error, TimeoutError)
    reason = f"no answer within {endpoint.timeout:g} s" if late else str(error)
    message = f"{endpoint.name}: {reason}"
    status = error.status if isinstance(error, HttpStatusError) else 0
    # The server did what it was asked; only its answer cannot be read.
    unread = isinstance(error, ContentRefused)
    cut_off = isinstance(error, FetchFailed) and error.sent
    failed = status >= 500 or status == 408
    unknown = late or unread or cut_off or failed
    if unknown and not endpoint.safe:
        return UnknownOutcome(f"{message}; whether it took effect is not known")
    if isinstance(error, HttpStatusError):
        return HttpStatusError(
            message, status=status, retryable=error.retryable, retry_after=error.retry_after
        )
    if unread:
        return ContentRefused(message)
    return FetchFailed(
        message, retryable=late or (isinstance(error, FetchFailed) and error.retryable)
    )


def _answer(answer: Download) -> HttpAnswer:
    kind = answer.content_type.partition(";")[0].strip().lower()
    text = answer.body.decode("utf-8", "replace")
    data: Any = text
    if (kind == "application/json" or kind.endswith("+json")) and not answer.truncated:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = text
    return HttpAnswer(
        status=answer.status,
        content_type=answer.content_type[:200],
        data=data,
        truncated=answer.truncated,
        location=answer.location[:MAX_URL_CHARACTERS],
    )
