"""A provider behind HTTP: one request, streamed, read into a reply. Temporal owns retries; none are made here.

A call that a server refuses only for a parameter it does not know is put once more without it; such a refusal costs
nothing. What was refused is remembered for that server's model as long as the process lives; a schema that it does not
take is remembered for itself alone.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from activities.http.client import CONNECT_SECONDS, MOST_BYTES, Answer, HttpClient, HttpError, Request
from activities.providers.errors import (
    BadReply,
    CallRefused,
    KeyRefused,
    SchemaMismatch,
    UnknownModel,
    error_of,
    error_within,
    error_without_answer,
    quoted,
)
from activities.providers.model import ModelReply, ModelRequest, ProviderError
from activities.providers.prices import DEFAULTS, with_cost
from activities.providers.reply_builder import ReplyBuilder, tokens_in
from activities.providers.settings import Server
from activities.providers.sse import EventParser
from activities.providers.wire_format import WireFormat, Without
from workflows.plan.language.limits import NO_USAGE, Usage

ERROR_BYTES = 64 * 1024
BYTES_A_TOKEN = 1024  # an event of the stream around a few letters
LIST_SECONDS = 10.0
LAST_SECONDS = 2.0
SHOWN_MODELS = 8
MOST_SCHEMAS = 1000
"""Refused schemas that are remembered."""

_UNKNOWN = re.compile(r"support|\b(un|not )(known|recogni[sz]ed|expected|allowed|permitted)|\bextra (inputs|fields)")
_OF_SCHEMA = re.compile(r"\bschema\b|propert|pattern|keyword|grammar|feature")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect, and of silence: `first` before the first event, with the time for a prompt that is read at
    `reading` tokens a second, then `idle` from line to line. The bytes of a reply after decompression.
    """

    connect: float = CONNECT_SECONDS
    first: float = 60.0
    idle: float = 60.0
    reading: float = 50.0
    bytes: int = MOST_BYTES


class HttpProvider:
    """Serves model calls from one server in one wire format."""

    def __init__(self, wire: WireFormat, server: Server, limits: Limits | None = None) -> None:
        self._wire = wire
        self._server = server
        self._limits = limits or Limits()
        headers = {**wire.headers(server), "accept-encoding": "identity"}
        self._client = HttpClient(headers, proxies=not server.local, connect=self._limits.connect)
        self._unknown: dict[str, set[str]] = {}
        self._schemas: dict[tuple[str, bytes], None] = {}

    async def close(self) -> None:
        await self._client.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call within `request.seconds`. Raises ProviderError."""
        self._check_key()
        ends = asyncio.get_running_loop().time() + request.seconds
        without = self._known_refusals(request)
        while True:
            try:
                return await self._ask(request, without, ends)
            except CallRefused as refused:
                named = {
                    name for name, words in self._wire.optional.items() if any(word in refused.text for word in words)
                }
                if not named - without:
                    raise
                without |= named
                self._learn(request, named, refused.text)
            except SchemaMismatch:
                if self._wire.schema not in without:  # it was given, and not heeded: next time in words
                    self._learn(request, {self._wire.schema})
                raise

    def _held(self, request: ModelRequest, without: Without) -> ModelRequest:
        """Return the request as it asks for its form, if it has one that the server may take. Raises CallRefused."""
        if request.form is None:
            return request
        if self._wire.schema not in without:
            return replace(request, system=request.form.system, output_schema=request.form.schema)
        if request.form.required:
            todo = "set SENNIT_PLAN_FORMAT to auto or lines, or use a model that takes a JSON schema"
            raise CallRefused(
                f"{request.model} takes no schema for its replies, which SENNIT_PLAN_FORMAT=json needs; {todo}"
            )
        return request

    def _known_refusals(self, request: ModelRequest) -> Without:
        """Return the parameters that the request's model is known to refuse, for any call or for this schema.

        No schema is sent where there is none, nor beside tools but to official servers: others hold the reply to it so
        tightly that the model can call no tool.
        """
        unknown = frozenset(self._unknown.get(request.model, ()))
        unheld = request.output_schema is None or (bool(request.tools) and not self._server.official)
        in_words = unheld and request.form is None
        return unknown | {self._wire.schema} if in_words or _schema_key(request) in self._schemas else unknown

    def _learn(self, request: ModelRequest, refused: Set[str], text: str = "") -> None:
        """Remember what was refused. It is the schema that was, unless `text` is about an unknown parameter."""
        if not _UNKNOWN.search(text) or _OF_SCHEMA.search(text):
            if self._wire.schema in refused:
                self._schemas[_schema_key(request)] = None
            if len(self._schemas) > MOST_SCHEMAS:
                del self._schemas[next(iter(self._schemas))]
            refused = refused - {self._wire.schema}
        self._unknown.setdefault(request.model, set()).update(refused)

    async def default_model(self) -> str:
        """Return the model of the data file for the provider's own server, else the only one that the server has.

        Needs no key where the server wants none for that. Raises UnknownModel, naming some, when there are several.
        """
        provider = self._server.provider
        if self._server.official:
            return f"{provider}:{DEFAULTS[provider]}"
        names = await self._models()
        if len(names) == 1:
            return f"{provider}:{names[0]}"
        some = ", ".join(names[:SHOWN_MODELS]) + (
            f" and {len(names) - SHOWN_MODELS} more" if len(names) > SHOWN_MODELS else ""
        )
        has = f"has {len(names)} models ({some})" if names else "names no model"
        raise UnknownModel(f"{provider} at {self._server.shown} {has}; set SENNIT_MODEL={provider}:NAME")

    def _check_key(self) -> None:
        server = self._server
        if server.lacks_key:
            other = f", or {server.url_variable} for another server"
            raise KeyRefused(f"{server.provider} needs a key: set {server.key_variable} where the workers run{other}")

    async def _models(self) -> list[str]:
        ends = asyncio.get_running_loop().time() + LIST_SECONDS
        path = self._wire.models_path
        async with self._send("GET", path, deadline=ends, limit=self._limits.bytes) as answer:
            if answer.status != 200:
                raise await self._refusal(answer, self._server.provider, ends)
            data = self._json(await answer.read(ends))
        try:
            return [str(entry["id"]) for entry in data["data"]]
        except (KeyError, TypeError):
            raise BadReply(
                f"{self._server.shown}{path} is no list of models; check {self._server.url_variable}"
            ) from None

    async def _ask(self, request: ModelRequest, without: frozenset[str], ends: float) -> ModelReply:
        body = self._wire.body(self._server, self._held(request, without), without)
        written = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        sent = Usage(tokens_in(len(written)), calls=1)
        most = sent._replace(output_tokens=body.get("max_completion_tokens") or body["max_tokens"])
        await request.account.begin(with_cost(sent, request.model), with_cost(most, request.model))
        builder = ReplyBuilder(request, sent.input_tokens, wrapped=self._wire.schema not in without)
        first = asyncio.get_running_loop().time() + self._limits.first + sent.input_tokens / self._limits.reading
        try:
            await self._fill(builder, written, first, ends)
            reply = builder.reply()
        except ProviderError as error:
            used = builder.usage()
            error.usage = used if used.tokens or error.retryable else NO_USAGE  # a refusal for good was no call
            request.account.end(error.usage)
            raise
        request.account.end(reply.usage)
        return reply

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: bytes | None = None, *, deadline: float, limit: int
    ) -> AsyncIterator[Answer]:
        """Send a request and give the answer once its head is there. Whatever HTTP does wrong is a ProviderError."""
        kind = {"content-type": "application/json"} if body is not None else {}
        request = Request(method, f"{self._server.url}{path}", kind, body)
        try:
            async with self._client.send(request, limit=limit, deadline=deadline) as answer:
                yield answer
        except HttpError as error:
            raise error_without_answer(self._server, error) from None

    async def _fill(self, builder: ReplyBuilder, body: bytes, first: float, ends: float) -> None:
        limit = self._limits.bytes + BYTES_A_TOKEN * builder.request.max_output_tokens
        async with self._send("POST", self._wire.path, body, deadline=min(first, ends), limit=limit) as answer:
            if answer.status != 200:
                raise await self._refusal(answer, builder.request.model, ends)
            if answer.kind == "text/event-stream":
                await self._stream(answer, builder, first, ends)
            elif answer.kind == "application/json":
                self._take(builder, self._json(await answer.read(ends)), whole=True)
            else:
                kind = answer.kind or "nothing named"
                where = f"{self._server.shown}{self._wire.path}"
                raise BadReply(f"{where} sent {kind} instead of a stream; check {self._server.url_variable}")

    async def _stream(self, answer: Answer, builder: ReplyBuilder, first: float, ends: float) -> None:
        """Read events to the last; once the reply is complete, a missing end is no loss."""
        loop = asyncio.get_running_loop()
        parser, deadline, why = EventParser(), first, "no first piece of the reply in time"
        try:
            while chunk := await answer.chunk(
                min(deadline, ends), why if deadline < ends else "the reply took too long"
            ):
                lines = parser.lines
                for event in parser.feed(chunk):
                    if event.data == "[DONE]" or self._take(builder, self._json(event.data)) or builder.is_too_long():
                        return
                if builder.stop:
                    deadline = loop.time() + LAST_SECONDS
                elif parser.lines > lines and (soon := loop.time() + self._limits.idle) > deadline:
                    deadline, why = soon, f"no next piece of the reply within {self._limits.idle:g} s"
        except UnicodeDecodeError:
            raise BadReply(f"the reply of {builder.request.model} is not UTF-8", retryable=True) from None
        except HttpError as error:
            if builder.stop is None or error.cause not in ("timeout", "cut"):
                raise

    def _take(self, builder: ReplyBuilder, data: Any, *, whole: bool = False) -> bool:
        if isinstance(data, dict) and (data.get("error") or data.get("type") == "error"):
            raise error_within(self._server, builder.request.model, data)
        try:
            if not whole:
                return self._wire.take(builder, data)
            self._wire.take_whole(builder, data)
        except (AttributeError, KeyError, TypeError):
            shown = quoted(json.dumps(data, ensure_ascii=False))[:120]
            raise BadReply(f"{self._server.shown} sent what is no reply: {shown}", retryable=True) from None
        return True

    def _json(self, body: bytes | str) -> Any:
        try:
            return from_json(body)
        except ValueError:
            raise BadReply(f"{self._server.shown} sent what is no JSON", retryable=True) from None

    async def _refusal(self, answer: Answer, model: str, ends: float) -> ProviderError:
        """Return what a status other than 200 means; its body is read for a moment, as far as it comes."""
        soon = min(ends, asyncio.get_running_loop().time() + LIST_SECONDS)
        try:
            body = await answer.read(soon, ERROR_BYTES)
        except HttpError:
            body = b""
        text = body.decode("utf-8", "replace")
        return error_of(self._server, model, answer.status, answer.headers, text)


def _schema_key(request: ModelRequest) -> tuple[str, bytes]:
    """Return what a refusal of the request's schema is remembered by."""
    schema = request.form.schema if request.form is not None else request.output_schema
    written = json.dumps(schema, sort_keys=True).encode()
    return request.model, hashlib.sha256(written).digest()
