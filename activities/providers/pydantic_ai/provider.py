"""Models that pydantic-ai reaches and Sennit does not by itself: `pydantic-ai:google:NAME`,
Bedrock, Vertex, Mistral.

The library is the extra `pydantic-ai`. It is loaded when the first call needs it, and the other
modules of this folder have all that touches it. What it streams is read as the replies of Sennit's
own wire are: see `ReplyBuilder`.
"""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from sennit.activities.limits import MAX_REPLY_TOKENS
from sennit.activities.providers.booking import booked
from sennit.activities.providers.capabilities import Capabilities, Lesson
from sennit.activities.providers.earlier_turns import sendable
from sennit.activities.providers.errors import (
    CallRefused,
    ExtraMissing,
    ModelTimeout,
    SchemaMismatch,
    UnknownModel,
)
from sennit.activities.providers.http_provider import STREAM_BYTES_A_TOKEN, Limits
from sennit.activities.providers.media import refused_media
from sennit.activities.providers.model import (
    OPEN_REPLY_TOKENS,
    ModelReply,
    ModelRequest,
    ProviderError,
    tokens_of,
)
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.returned_fields import of_same_model
from sennit.activities.providers.settings import Server
from sennit.workflows.messages.queues import PYDANTIC_AI
from sennit.workflows.plan.language.limits import Usage

if TYPE_CHECKING:
    from sennit.activities.providers.pydantic_ai.calls import Library, LibraryModel

SCHEMA = "response_format"
"""What a refusal of schemas is remembered as: the name that Sennit's own wire has for it."""
_ALWAYS_WITH_REASON = frozenset(
    (
        "anthropic",
        "bedrock",
        "google",
        "google-cloud",
        "groq",
        "mistral",
        "openai",
        "openai-chat",
        "openai-responses",
    )
)
"""Makers whose whole replies all have a reason: one without it was cut,
however often that comes.
"""


class PydanticAI:
    """Serves model calls by pydantic-ai. Keys and addresses come from the
    variables of its providers.
    """

    lacks: tuple[str, ...] = ()
    """What a model does not take is known once it is called; the call then
    names what was not sent.
    """

    def __init__(self, server: Server, limits: Limits | None = None) -> None:
        self._limits = limits or Limits().of_server(server)
        self.known = Capabilities(server, SCHEMA)
        self._library: Library | None = None
        self._loading = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections of all models."""
        if self._library is not None:
            await self._library.close()

    async def default_model(self) -> str:
        """Raises UnknownModel: a bare `pydantic-ai` means no model."""
        todo = f"set SENNIT_MODEL={PYDANTIC_AI}:google:NAME, or the same of another maker"
        raise UnknownModel(f"`{PYDANTIC_AI}` alone is no model; {todo}")

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call within `request.seconds`. Raises ProviderError.

        A server that refuses a call with a schema is asked once more for JSON in words.
        Nothing else is left out.
        """
        ends = asyncio.get_running_loop().time() + request.seconds
        try:
            async with asyncio.timeout_at(ends):
                model = await self._model(request.model)
        except TimeoutError:  # nothing was sent, so nothing is charged
            why = "its SDK and credentials were not ready in time"
            raise ModelTimeout(f"{request.model}: {why}", retryable=True) from None
        request, notes = of_same_model(sendable(request))
        has_schema = model.takes_schemas and SCHEMA not in self.known.without(request)
        try:
            reply = await self._ask(model, request, ends, has_schema=has_schema)
        except CallRefused as refused:
            lacking = refused_media(request, str(refused), refused.text)
            if lacking is not None:
                raise lacking from None
            if not has_schema:
                raise
            request.on_restart(f"the model is asked again: {refused}")
            reply = await self._ask(model, request, ends, has_schema=False)
            self.known.learn(request, Lesson(frozenset({SCHEMA}), str(refused), refused.text))
        except SchemaMismatch:
            if has_schema:  # it was given, and not heeded: next time in words
                self.known.learn(request, Lesson(frozenset({SCHEMA}), "it did not keep to one"))
            raise
        return replace(reply, warnings=(*notes, *reply.warnings, *model.left_out(request)))

    async def _model(self, name: str) -> "LibraryModel":
        """Return the library's model of a name. Raises UnknownModel, KeyRefused or ExtraMissing."""
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(_loaded)
        return await self._library.model_of(name)

    async def _ask(
        self, model: "LibraryModel", request: ModelRequest, ends: float, *, has_schema: bool
    ) -> ModelReply:
        """Make one call, and read its reply."""
        sent = Usage(_tokens_in(request), calls=1)

        # Under a budget, the call asks for no more than it was granted.
        limit = request.max_output_tokens
        granted = request.account.room(sent, limit or OPEN_REPLY_TOKENS)
        if granted is not None:
            limit = granted if limit is None else min(limit, granted)
        request = replace(request, max_output_tokens=limit)

        builder = ReplyBuilder(request, 0, wrapped=has_schema, is_limited=True)
        if _maker_of(request.model) not in _ALWAYS_WITH_REASON:
            builder.unreasoned = self.known.gives_no_reason(request.model)
        async with booked(builder, sent, limit):
            await self._read(model, builder, ends, has_schema=has_schema)
        self.known.learn_reason(request.model, given=bool(builder.reason), ended=builder.closed)
        try:
            return builder.reply()
        except ProviderError as error:
            error.usage = builder.usage()
            raise

    async def _read(
        self, model: "LibraryModel", builder: ReplyBuilder, ends: float, *, has_schema: bool
    ) -> None:
        """Read a reply into its builder, as long as none of its silences is too long."""
        request, silence = builder.request, self._limits.of(builder.request)
        held = request
        if request.form is not None and has_schema:  # its reply is read as text all the same
            held = replace(request, system=request.form.system, output_schema=request.form.schema)
        most_bytes = self._limits.bytes + STREAM_BYTES_A_TOKEN * (
            request.max_output_tokens or MAX_REPLY_TOKENS
        )
        now = asyncio.get_running_loop().time
        first = now() + silence.first
        if request.first_token_timeout is None:
            first += builder.sent / self._limits.reading
        why = "no first piece of the reply in time"
        try:
            async with (
                asyncio.timeout_at(min(first, ends)) as patience,
                aclosing(model.pieces(held, builder, most_bytes, has_schema=has_schema)) as pieces,
            ):
                async for _ in pieces:
                    if builder.is_too_long():
                        break
                    builder.check_blanks(silence.idle)
                    why = f"no next piece of the reply within {silence.idle:g} s"
                    patience.reschedule(min(now() + silence.idle, ends))
        except TimeoutError:
            why = "the reply took too long" if now() >= ends else why
            raise ModelTimeout(f"{request.model}: {why}", retryable=True) from None


def _loaded() -> "Library":
    """Load the library, which takes seconds. Raises ExtraMissing where it is not
    installed, or too old.
    """
    try:
        from sennit.activities.providers.pydantic_ai.calls import Library
    except ImportError as missing:  # a release that is too old lacks names
        todo = f"install it where the workers run: pip install 'sennit[{PYDANTIC_AI}]'"
        raise ExtraMissing(
            f"models of `{PYDANTIC_AI}` need the extra of that name ({missing}); {todo}"
        ) from None
    return Library()


def _maker_of(name: str) -> str:
    """Return the maker in the name of a model such as `pydantic-ai:google:NAME`,
    whichever gateway is before it.
    """
    return name.partition(":")[2].partition(":")[0].removeprefix("gateway/")


def _tokens_in(request: ModelRequest) -> int:
    """Return about how many tokens a request has."""
    turns = (*request.history, *request.messages)
    texts = [request.system, request.prompt]
    for turn in turns:
        texts.append(turn.text)
        for call in turn.calls:
            texts.append(str(call.arguments))
    texts += map(str, request.callable)
    return tokens_of(*texts) + sum(media.tokens for media in request.shown)
