"""A provider behind HTTP: one request, streamed, read into a reply. Temporal owns
retries; none are made here.

A call that a server refuses only for a parameter it does not know is put once more without it; such
a refusal costs nothing. What was refused is remembered for that server's model as long as the
process lives; a schema that it does not take is remembered for itself alone.
"""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from sennit.activities.http.client import (
    CONNECT_SECONDS,
    Answer,
    HttpClient,
    HttpError,
    Request,
    number_in,
)
from sennit.activities.http.turns import Turns
from sennit.activities.limits import (
    MAX_ANSWER_BYTES,
    MAX_BYTES_BEFORE_REPLY,
    MAX_ERROR_BYTES,
    MAX_KEPT_CAPABILITIES_BYTES,
    MAX_REPLY_TOKENS,
    MAX_TURNS,
)
from sennit.activities.providers.booking import booked
from sennit.activities.providers.capabilities import Capabilities, Lesson
from sennit.activities.providers.earlier_turns import sendable
from sennit.activities.providers.errors import (
    BadReply,
    CallRefused,
    ContextTooLong,
    KeyRefused,
    OutputCut,
    ReplyTooLarge,
    SchemaMismatch,
    ServerFailed,
    UnknownModel,
    error_of,
    error_within,
    error_without_answer,
    is_error,
    quoted,
    title_of,
)
from sennit.activities.providers.model import (
    OPEN_REPLY_TOKENS,
    REPLY_ROOM,
    ModelReply,
    ModelRequest,
    ProviderError,
)
from sennit.activities.providers.negotiation import LEAST_ROOM, Negotiation
from sennit.activities.providers.prices import DEFAULTS
from sennit.activities.providers.reply_builder import Counts, ReplyBuilder, cut_after
from sennit.activities.providers.returned_fields import of_same_model
from sennit.activities.providers.settings import Server
from sennit.activities.providers.sse import EventParser
from sennit.activities.providers.text_calls import in_text
from sennit.activities.providers.wire_format import LEAST_THINKING, WireFormat, Without, price
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.limits import Usage, tokens_in

STREAM_BYTES_A_TOKEN = 1024  # an event of the stream around a few letters
LIST_SECONDS = 10.0
LAST_SECONDS = 2.0
SHOWN_MODELS = 8
_TOO_LONG = "the reply took too long"
_NOTHING = "no first piece of the reply in time"
_EVENTS = "text/event-stream"
_BLANK = b" \t\r\n\xef\xbb\xbf"
_LAST_EVENTS = ("[DONE]", "DONE", '"[DONE]"')
_IS_ALIVE = re.compile(
    r"\s*+(:.*|\"\"|\W*+(ping|keep-?alive|heartbeat|processing)\W*+)?", re.IGNORECASE | re.DOTALL
)
"""Data of an event that says no more than that the server lives: none, or a comment that
a gateway has wrapped.
"""
MORE_ROOM = 4
"""How many times as long a reply may be as the one before, which was cut."""
_LONGEST = re.compile(
    r"max_(?:completion_)?tokens.{0,60}?(?:> |at most |less than or equal to |maximum (?:value )?"
    r"(?:is |of ))([\d,]+)"
)
_NEEDS_LIMIT = re.compile(
    r"max_(?:completion_)?tokens.{0,40}(?:required|missing|must be (?:set|given|specified))"
)


FIRST_TOKEN_SECONDS = 300.0
"""OpenAI's server and others send nothing while a model thinks, which may take minutes:
mezmo/aura#62, BlockRunAI/Franklin#74. A call that is given up has been paid for, and the
next one thinks as long.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect, and of silence: `first` before the first event, with the time for a
    prompt that is read at `reading` tokens a second, then `idle` from line to line. The bytes of a
    reply after decompression.
    """

    connect: float = CONNECT_SECONDS
    first: float = FIRST_TOKEN_SECONDS
    idle: float = 60.0
    reading: float = 50.0
    bytes: int = MAX_ANSWER_BYTES

    def of_server(self, server: Server) -> "Limits":
        """Return the limits as the operator has set them for a server. A limit that is
        set takes in the prompt.
        """
        limits = self
        if server.first_token_timeout is not None:
            limits = replace(limits, first=server.first_token_timeout, reading=math.inf)
        if server.idle_timeout is not None:
            limits = replace(limits, idle=server.idle_timeout)
        return limits

    def of(self, request: ModelRequest) -> "Limits":
        """Return the limits for a call, which may have its own. If the plan says how long it may
        take, that counts alone.
        """
        first, idle = self.first, self.idle
        if request.is_timed:  # the time to read the prompt is within it
            first = idle = request.seconds
        if request.first_token_timeout is not None:
            first = request.first_token_timeout
        if request.idle_timeout is not None:
            idle = request.idle_timeout
        return replace(self, first=first, idle=idle)


class HttpProvider:
    """Serves model calls from one server in one wire format."""

    def __init__(self, wire: WireFormat, server: Server, limits: Limits | None = None) -> None:
        self._wire = wire
        self._server = server
        self._limits = limits or Limits().of_server(server)
        headers = {**wire.headers(server), "accept-encoding": "identity"}
        self._client = HttpClient(headers, proxies=not server.local, connect=self._limits.connect)
        self.known = Capabilities(server, wire.schema)
        self._counts: BoundedCache[str, Counts] = BoundedCache(MAX_KEPT_CAPABILITIES_BYTES)

    @property
    def lacks(self) -> tuple[str, ...]:
        """The settings that no model of this server takes."""
        return self._wire.lacks

    async def close(self) -> None:
        await self._client.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call within `request.seconds`. Raises ProviderError."""
        self._check_key()
        ends = asyncio.get_running_loop().time() + request.seconds
        request, notes = of_same_model(sendable(request))
        call = Negotiation(request, self.known, self._wire, self._body)
        was_cut = False
        while True:
            try:
                reply = await self._ask(request, call.without, ends, call.room)
            except OutputCut as cut:
                if was_cut or not is_far_below_limit(cut):
                    self._give_more_room(request, cut)
                was_cut = True
                request.on_restart(f"the model is asked again: {cut}")
            except (ContextTooLong, CallRefused, ServerFailed) as refused:
                is_learned = isinstance(refused, CallRefused) and self._learns_limit(
                    request, call.room, refused
                )
                if not is_learned:
                    call.take(refused)
                request.on_restart(f"the model is asked again: {refused}")
            except SchemaMismatch:
                call.confirm()
                # It was given, and not heeded: next time in words.
                if self._wire.schema not in call.without:
                    self.known.learn(
                        request, Lesson(frozenset({self._wire.schema}), "it did not keep to one")
                    )
                raise
            else:
                call.confirm()
                # A planner's, which is asked once more by whoever reads it.
                if reply.stop == "length":
                    with suppress(OutputCut):
                        self._give_more_room(
                            request, cut_after(reply, self._limit(request, call.room))
                        )
                return self._finished(request, reply, call.without, notes)

    def _finished(
        self, request: ModelRequest, reply: ModelReply, without: Without, notes: Sequence[str]
    ) -> ModelReply:
        """Return a reply with what people are told of the call."""
        left_out = self.known.left_out(request, without | {*self._wire.lacks})
        return replace(reply, warnings=(*notes, *reply.warnings, *left_out))

    def _limit(self, request: ModelRequest, room: int = 0) -> int | None:
        """Return the tokens that a reply may have, or None where the server decides: what the call
        says, else what this server is known to need, as far as the model gives that and the
        context has the `room`.
        """
        model = request.model
        asked = request.max_output_tokens or self.known.room(model) or self._wire.longest(model)
        bounds = [tokens for tokens in (asked, room) if tokens]
        if not bounds:
            return None
        longest = self.known.longest(model)
        if longest:
            bounds.append(longest)
        return min(bounds)

    def _give_more_room(self, request: ModelRequest, cut: OutputCut) -> None:
        """Have a reply that was cut be longer when it is asked for again. Raises the error where
        the call has a limit of its own, and where the server gave less than it was asked for: it
        would be cut at the same place.
        """
        asked = cut.limit
        if request.max_output_tokens is not None or not cut.growable or is_far_below_limit(cut):
            raise cut
        most = (
            self._wire.longest(request.model)
            or self.known.context(request.model)
            or MAX_REPLY_TOKENS
        )
        # What a model gives at the most is no limit to raise: the reply would be cut there
        # again, and again be paid.
        most = min(most, self.known.longest(request.model) or most)
        room = min(max(cut.written * MORE_ROOM, REPLY_ROOM), most)
        if room <= (asked or cut.written):
            raise cut
        self.known.learn_room(request.model, room)
        request.progress(f"cut at {cut.written:,} tokens; asked again with room for {room:,}")

    def _learns_limit(self, request: ModelRequest, room: int, refused: CallRefused) -> bool:
        """Whether a refusal says that replies need a limit, or that the model
        gives no reply so long.
        """
        asked = self._limit(request, room)
        if asked is None:
            # Some servers take their own default for asked, and refuse that: as too long, or as
            # more than is paid for.
            if refused.most_output:
                self.known.learn_longest(request.model, refused.most_output)
                self.known.learn_room(request.model, refused.most_output)
                return True
            needs_one = _NEEDS_LIMIT.search(refused.text) is not None
            if needs_one:
                self.known.learn_room(request.model, REPLY_ROOM)
            return needs_one
        longest = refused.most_output
        if not longest:
            named = _LONGEST.search(refused.text)
            if named is not None:
                longest = int(named[1].replace(",", "") or 0)
        if not 0 < longest < asked:
            return False
        self.known.learn_longest(request.model, longest)
        return True

    def _held(self, request: ModelRequest, without: Without) -> ModelRequest:
        """Return the request as it asks for its form, if it has one that the server may take."""
        if request.form is None:
            return request
        if self._wire.schema not in without:
            return replace(request, system=request.form.system, output_schema=request.form.schema)
        return request

    async def default_model(self) -> str:
        """Return the model of the data file for the provider's own server, else the only
        one that the server has.

        Needs no key where the server wants none for that. Raises UnknownModel, naming some,
        when there are several.
        """
        provider = self._server.provider
        if self._server.official:
            return f"{provider}:{DEFAULTS[provider]}"
        names = await self._models()
        if len(names) == 1:
            return f"{provider}:{names[0]}"
        has = "names no model"
        if names:
            shown = ", ".join(names[:SHOWN_MODELS])
            if len(names) > SHOWN_MODELS:
                shown += f" and {len(names) - SHOWN_MODELS} more"
            has = f"has {len(names)} models ({shown})"
        raise UnknownModel(
            f"{provider} at {self._server.shown} {has}; set SENNIT_MODEL={provider}:NAME"
        )

    def _check_key(self) -> None:
        server = self._server
        if server.needs_key:
            other = f", or {server.url_variable} for another server"
            raise KeyRefused(
                f"{server.provider} needs a key: set {server.key_variable} where the workers "
                f"run{other}"
            )

    async def _models(self) -> list[str]:
        ends = asyncio.get_running_loop().time() + LIST_SECONDS
        path = self._wire.models_path
        async with self._send("GET", path, deadline=ends, limit=self._limits.bytes) as answer:
            if answer.status != 200:
                raise await self._refusal(answer, self._server.provider, ends)
            data = self._json(await answer.read(ends))
        try:
            names = [str(entry["id"]) for entry in data["data"]]
            self.known.learn_listed(data["data"])
            return names
        except (AttributeError, KeyError, TypeError):
            raise BadReply(
                f"{self._server.shown}{path} is no list of models; check "
                f"{self._server.url_variable}"
            ) from None

    def _body(self, request: ModelRequest, without: Without) -> dict[str, Any]:
        """Return the body of a call that does without these parameters."""
        request = self._held(request, without)
        if "tools" in without:
            request = in_text(request)
        if "system" in without and request.system:
            request = _with_system_in_turns(request)
        return self._wire.body(self._server, request, without)

    async def _ask(
        self, request: ModelRequest, without: Without, ends: float, room: int
    ) -> ModelReply:
        """Make one call, and those that go on with its reply; with `room`, it may have
        so many tokens at most.
        """
        is_limited = request.max_output_tokens is not None
        request = replace(request, max_output_tokens=self._limit(request, room))
        field = self._wire.limit_field(self._server, without)
        wrapped = self._wire.schema not in without
        builder = ReplyBuilder(request, 0, wrapped=wrapped, is_limited=is_limited)
        builder.unreasoned = self.known.gives_no_reason(request.model)
        turn = request
        for _ in range(MAX_TURNS):
            await self._fill(builder, self._body(turn, without), field, ends, room)
            if builder.stop != "pause":
                break
            # The server pauses a long turn: it is sent back as it is, and the model goes on.
            turn = replace(request, messages=(*request.messages, builder.turn()))
        self.known.learn_reason(request.model, given=bool(builder.reason), ended=builder.closed)
        try:
            return builder.reply()
        except ProviderError as error:
            error.usage = builder.usage()
            raise

    async def _fill(
        self, builder: ReplyBuilder, body: dict[str, Any], field: str, ends: float, room: int
    ) -> None:
        """Send a body, whose limit stands in `field`, and read what comes. The account is
        told before and after.
        """
        request = builder.request
        # A model does not read the base64 of an image, but the image.
        encoded = sum(len(media.data) for media in request.shown)
        read = sum(media.tokens for media in request.shown)
        sent = Usage(tokens_in(len(_written(body)) - encoded) + read, calls=1)
        context = self.known.context(request.model)
        limit = body.get(field)
        if limit is not None and context and not room:
            limit = min(limit, max(context - sent.input_tokens, LEAST_ROOM))
        # Under a budget, the call asks for no more than it was granted, whatever its
        # server gives by itself.
        wanted = OPEN_REPLY_TOKENS
        if builder.is_limited and limit is not None:
            wanted = limit
        granted = request.account.room(sent, wanted)
        if granted is not None:
            builder.is_granted = limit is None or granted < limit
            if builder.is_granted:
                limit = granted
            builder.is_limited = True
        builder.limit = limit
        if limit is not None:
            body = _with_limit(body, field, limit)
        builder.counts = self._counts.get_or_make(request.model, Counts)
        silence = self._limits.of(request)
        async with booked(builder, sent, limit):
            first = asyncio.get_running_loop().time() + silence.first
            if request.first_token_timeout is None:
                first += sent.input_tokens / self._limits.reading
            if not body.get("stream"):  # the whole reply comes at once
                first = ends
            await self._read(builder, _written(body), first, ends)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: bytes | None = None, *, deadline: float, limit: int
    ) -> AsyncIterator[Answer]:
        """Send a request and give the answer once its head is there. Whatever HTTP does
        wrong is a ProviderError.
        """
        headers: dict[str, str] = {}
        if body is not None:
            headers["content-type"] = "application/json"
        request = Request(method, self._server.address_of(path), headers, body)
        try:
            async with self._client.send(request, limit=limit, deadline=deadline) as answer:
                yield answer
        except HttpError as error:
            raise error_without_answer(self._server, error) from None

    async def _read(self, builder: ReplyBuilder, body: bytes, first: float, ends: float) -> None:
        """Send a request and read its answer: JSON if it begins like that, else a stream,
        whatever its type says.
        """
        tokens = builder.request.max_output_tokens or MAX_REPLY_TOKENS
        limit = self._limits.bytes + STREAM_BYTES_A_TOKEN * tokens
        async with self._send(
            "POST", self._wire.path, body, deadline=min(first, ends), limit=limit
        ) as answer:
            if answer.status != 200:
                raise await self._refusal(answer, builder.request.model, ends)
            builder.cost = price(number_in(answer.headers.get("x-litellm-response-cost")), None)
            begins = await self._beginning(answer, builder, min(first, ends))
            if begins.startswith((b"{", b"[")):
                builder.heard = True
                self._take(builder, self._json(begins + await answer.read(ends)), whole=True)
                # JSON that is whole has no end that could be missing.
                builder.closed = builder.unreasoned = True
            elif (
                not await self._stream(answer, begins, builder, first, ends)
                and answer.kind != _EVENTS
            ):
                kind = quoted(answer.kind) or "nothing named"
                page = quoted(title_of(begins.decode("utf-8", "replace")))
                where = f"{self._server.shown}{self._wire.path}"
                shown = f"{kind} instead of a reply: {page}; check {self._server.url_variable}"
                raise BadReply(f"{where} sent {shown}", retryable=True)

    async def _beginning(self, answer: Answer, builder: ReplyBuilder, deadline: float) -> bytes:
        """Return the first bytes of an answer that are not blank, nothing if it has
        none. Blanks are not kept.
        """
        blanks = 0
        while chunk := await answer.chunk(deadline, _NOTHING):
            begins = chunk.lstrip(_BLANK)
            if begins:
                return begins
            blanks += len(chunk)
            self._check_idle(builder, blanks)
        return b""

    def _check_idle(self, builder: ReplyBuilder, idle_bytes: int) -> None:
        """Raise ReplyTooLarge if a server has sent too much before the first piece of a reply."""
        if idle_bytes > MAX_BYTES_BEFORE_REPLY:
            sent = (
                f"sent over {MAX_BYTES_BEFORE_REPLY:,} bytes and no piece of the reply of "
                f"{builder.request.model}"
            )
            raise ReplyTooLarge(f"{self._server.shown} {sent}")

    async def _stream(
        self, answer: Answer, begins: bytes, builder: ReplyBuilder, first: float, ends: float
    ) -> bool:
        """Read events to the last; once the reply is complete, a missing end is no loss.
        Return whether one came.
        """
        loop = asyncio.get_running_loop()
        idle = self._limits.of(builder.request).idle
        parser = EventParser()
        turns = Turns()
        deadline = first
        why = _NOTHING
        chunk = begins
        try:
            while chunk:
                lines = parser.lines
                for data in parser.feed(chunk):
                    await turns.give_way()
                    if self._take_event(builder, data, is_error=parser.is_error):
                        return True
                if builder.in_progress:
                    builder.check_blanks(idle)
                else:
                    self._check_idle(builder, parser.idle_bytes)
                # A comment, or an event without data, shows that the server
                # lives: every line counts.
                now = loop.time()
                if not builder.may_go_on:
                    deadline = now + LAST_SECONDS
                elif parser.lines > lines and (builder.in_progress or now + idle > deadline):
                    deadline = now + idle
                    why = f"no next piece of the reply within {idle:g} s"
                late = why if deadline < ends else _TOO_LONG
                chunk = await answer.chunk(min(deadline, ends), late)
            for data in parser.close():
                if self._is_whole(data) and self._take_event(
                    builder, data, is_error=parser.is_error
                ):
                    return True
        except UnicodeDecodeError:
            raise BadReply(
                f"the reply of {builder.request.model} is not UTF-8", retryable=True
            ) from None
        except HttpError as error:
            if not builder.ended or error.cause not in ("timeout", "cut"):
                raise
        return builder.heard

    def _take_event(self, builder: ReplyBuilder, data: str, *, is_error: bool) -> bool:
        """Take an event; return whether nothing more is to be read."""
        builder.heard = True
        if is_error:
            raise error_within(self._server, builder.request.model, _json_or_text(data))
        if data.startswith("{"):
            for event in self._events(data):
                if event is None or self._take(builder, event):
                    builder.close()
                    return True
            return builder.is_too_long()
        if data.strip() in _LAST_EVENTS:
            builder.close()
            return True
        if _IS_ALIVE.fullmatch(data):
            return False
        self._take(builder, self._json(data))
        return False

    def _events(self, data: str) -> list[Any]:
        """Return the JSON of an event, None for the last one. Some servers send no empty
        line between two of them.
        """
        try:
            return [from_json(data)]
        except ValueError:
            pieces = [piece for piece in data.split("\n") if piece.strip()]
        if len(pieces) == 1:
            return [self._json(data)]
        events: list[Any] = []
        try:
            for piece in pieces:
                if piece.strip() in _LAST_EVENTS:
                    events.append(None)
                else:
                    events.append(self._json(piece))
        except BadReply:
            return [self._json(data)]
        return events

    def _is_whole(self, data: str) -> bool:
        """Whether the last event of a stream that was closed behind it came to its end."""
        return not data.startswith("{") or data.rstrip().endswith(("}", *_LAST_EVENTS))

    def _take(self, builder: ReplyBuilder, data: Any, *, whole: bool = False) -> bool:
        if is_error(data, self._wire.fields):
            raise error_within(self._server, builder.request.model, data)
        builder.in_event = False
        try:
            if not whole:
                return self._wire.take(builder, data)
            self._wire.take_whole(builder, data)
        except (AttributeError, KeyError, TypeError):
            shown = quoted(json.dumps(data, ensure_ascii=False))[:120]
            raise BadReply(
                f"{self._server.shown} sent what is no reply: {shown}", retryable=True
            ) from None
        return True

    def _json(self, body: bytes | str) -> Any:
        """Return JSON from the server. Halves of characters, which strict readers
        refuse, stay as they are.
        """
        try:
            return from_json(body)
        except ValueError:
            pass
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            text = body if isinstance(body, str) else body.decode("utf-8", "replace")
            raise BadReply(
                f"{self._server.shown} sent what is no JSON: {quoted(text)[:80]}", retryable=True
            ) from None

    async def _refusal(self, answer: Answer, model: str, ends: float) -> ProviderError:
        """Return what a status other than 200 means; its body is read for a
        moment, as far as it comes.
        """
        soon = min(ends, asyncio.get_running_loop().time() + LIST_SECONDS)
        try:
            body = await answer.read(soon, MAX_ERROR_BYTES)
        except HttpError:
            body = b""
        text = body.decode("utf-8", "replace")
        return error_of(self._server, model, answer.status, answer.headers, text)


def _with_limit(body: dict[str, Any], field: str, limit: int) -> dict[str, Any]:
    """Return a body whose reply may have so many tokens. Thinking that has a number of them
    stays below that: a server refuses more, and half is left to the answer as where the
    thinking was asked for.
    """
    body = {**body, field: limit}
    thinking = body.get("thinking")
    if not isinstance(thinking, dict):
        return body
    budget = thinking.get("budget_tokens")
    if budget is None or budget <= limit // 2:
        return body
    if limit <= LEAST_THINKING:
        del body["thinking"]
    else:
        body["thinking"] = {**thinking, "budget_tokens": max(LEAST_THINKING, limit // 2)}
    return body


def _with_system_in_turns(request: ModelRequest) -> ModelRequest:
    """Return a request whose system prompt stands above its first turn."""
    if not request.history:
        return replace(request, system="", prompt=f"{request.system}\n\n{request.prompt}")
    first, *later = request.history
    first = replace(first, text=f"{request.system}\n\n{first.text}")
    return replace(request, system="", history=(first, *later))


def _json_or_text(data: str) -> Any:
    try:
        return from_json(data)
    except ValueError:
        return data


def _written(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def is_far_below_limit(cut: OutputCut) -> bool:
    """Whether a reply was cut long before the limit that its call was sent with. The
    limit is not why, then.
    """
    return cut.limit is not None and cut.written * 2 < cut.limit
