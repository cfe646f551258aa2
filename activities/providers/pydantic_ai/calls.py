"""pydantic-ai, as far as Sennit uses it: its models and connections, and one
streamed call of a model.

This module needs the extra `pydantic-ai`; `provider` imports it once a call needs it.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from sennit.activities.providers import structured
from sennit.activities.providers.call_arguments import CallArguments
from sennit.activities.providers.errors import ReplyTooLarge
from sennit.activities.providers.model import ModelRequest, Stop, parameters_of
from sennit.activities.providers.pydantic_ai.errors import mapped_errors, naming_errors
from sennit.activities.providers.pydantic_ai.messages import bytes_of, messages_of, stored
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.returned_fields import GatheredFields

_STOPS: dict[str, Stop] = {"stop": "end", "tool_call": "tools", "length": "length"}
"""What the library makes of a reason; its `error`, a pause or no reason at
all is no end of a reply.
"""
_NAMES = {
    "top_p": "top_p",
    "temperature": "temperature",
    "seed": "seed",
    "stop": "stop_sequences",
    "effort": "thinking",
}
"""How the library calls a setting."""


class Library:
    """The connections that a worker process has to the makers of models, one client each."""

    def __init__(self) -> None:
        self._providers: dict[str, Provider[Any]] = {}
        self._opened = AsyncExitStack()
        self._opening: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Close all connections."""
        for task in self._opening.values():
            task.cancel()
        self._opening.clear()
        self._providers.clear()
        await self._opened.aclose()

    async def model_of(self, name: str) -> "LibraryModel":
        """Return the model of a name such as `pydantic-ai:google:NAME`. Raises UnknownModel,
        KeyRefused or ExtraMissing.
        """
        own = name.partition(":")[2]
        maker, colon, _ = own.partition(":")
        with naming_errors(name):
            if colon and maker not in self._providers:
                await self._open(maker)
            model = await asyncio.to_thread(infer_model, own, self._providers.__getitem__)
        return LibraryModel(name, model)

    async def _open(self, maker: str) -> None:
        """Open the connections to a maker, once for all calls that wait for them.
        Other makers do not wait.
        """
        task = self._opening.get(maker)
        if task is None:
            task = asyncio.create_task(self._connect(maker))
            self._opening[maker] = task
            task.add_done_callback(lambda ended: self._opened_or_not(maker, ended))
        # A call whose time ends gives up alone: the others, and those after it,
        # wait for the same thread.
        await asyncio.shield(task)

    async def _connect(self, maker: str) -> None:
        # The first model of a maker loads its SDK, and may read files of credentials.
        provider = await asyncio.to_thread(_provider_of, maker)
        self._providers[maker] = await self._opened.enter_async_context(provider)

    def _opened_or_not(self, maker: str, ended: asyncio.Task[None]) -> None:
        """Let the next call try again where the connections could not be opened."""
        self._opening.pop(maker, None)
        if not ended.cancelled():
            # Calls that still wait raise it; asyncio need not report it where none does.
            ended.exception()


def _provider_of(maker: str) -> Provider[Any]:
    """Return the connections to a maker. Its SDK sends each call once, unless an
    operator says otherwise.
    """
    if maker == "bedrock":  # botocore takes no such setting with a call
        os.environ.setdefault("AWS_MAX_ATTEMPTS", "1")
    return infer_provider(maker)


@dataclass(frozen=True, slots=True)
class LibraryModel:
    """A model of the library, and the name that Sennit knows it by."""

    name: str
    model: Model

    @property
    def takes_schemas(self) -> bool:
        """Whether the library knows that replies of this model can be held to a schema."""
        return bool(self.model.profile.get("supports_json_schema_output"))

    def left_out(self, request: ModelRequest) -> tuple[str, ...]:
        """Return a sentence on each setting of a request that the model does not take,
        and that was not sent.
        """
        unsupported = self.model.unsupported_settings
        names = [name for name in request.settings.names if _NAMES.get(name) in unsupported]
        return tuple(f"{self.name} takes no `{name}`, so it was not sent" for name in names)

    async def pieces(
        self, request: ModelRequest, reply: ReplyBuilder, most_bytes: int, *, has_schema: bool
    ) -> AsyncGenerator[None]:
        """Make one call and take its reply. Gives a sign for each piece that has come. Raises
        ProviderError, and ReplyTooLarge once more than `most_bytes` have come in all pieces, those
        that are not of the reply too.

        The call is not retried below Temporal, but by Bedrock's SDK where an operator has set
        AWS_MAX_ATTEMPTS. The reply has no end unless the library has heard of one.
        """
        messages = messages_of(request, in_words=not has_schema)
        events = self._events(request, messages, has_schema=has_schema)
        # What the builder and its listeners raise is no error of the library,
        # and is not taken for one.
        came = 0
        async with aclosing(events):
            async for event in events:
                came += bytes_of(event)
                if came > most_bytes:
                    raise ReplyTooLarge(
                        f"{self.name} streams more than {most_bytes:,} bytes for one reply"
                    )
                if isinstance(event, ModelResponse):
                    _end(reply, event)
                else:
                    _take(reply, event)
                    yield

    async def _events(
        self, request: ModelRequest, messages: list[ModelMessage], *, has_schema: bool
    ) -> AsyncGenerator[ModelResponseStreamEvent | ModelResponse]:
        """Give the events of one call, and at last what has come of it in
        all. Raises ProviderError.
        """
        with mapped_errors(self.name, self.model.system):
            call = model_request_stream(
                self.model,
                messages,
                model_settings=self._settings(request),
                model_request_parameters=_parameters(request, has_schema=has_schema),
                instrument=False,
            )
            async with call as stream:
                async for event in stream:
                    yield event
                yield stream.get()

    def _settings(self, request: ModelRequest) -> ModelSettings:
        """Return the settings of a call, without those that the model does not take."""
        settings = request.settings
        wanted: dict[str, Any] = {
            # Temporal owns retries, and the silences are watched where the pieces are read.
            "max_retries": 0,
            "timeout": request.seconds,
            "max_tokens": request.max_output_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            "stop_sequences": None,
            "cache": {"messages": bool(request.callable or request.messages)},
        }
        if settings.stop is not None:
            wanted["stop_sequences"] = list(settings.stop)
        if settings.effort is not None:
            wanted["thinking"] = False if settings.effort == "none" else settings.effort
        if not request.callable and _called(request):
            wanted["tool_choice"] = "none"

        unsupported = self.model.unsupported_settings
        taken: dict[str, Any] = {}
        for name, value in wanted.items():
            if value is None or name in unsupported:
                continue
            taken[name] = value
        return cast("ModelSettings", taken)


def _called(request: ModelRequest) -> list[str]:
    """Return the names of the tools that earlier turns have called, each once."""
    names: dict[str, None] = {}
    for message in request.messages:
        for call in message.calls:
            names[call.name] = None
    return list(names)


def _definition(tool: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=tool["name"],
        description=tool.get("description"),
        parameters_json_schema=parameters_of(tool),
    )


def _parameters(request: ModelRequest, *, has_schema: bool) -> ModelRequestParameters:
    """Return the tools and the schema of a call. Tools of earlier turns are named even
    where none may be called.
    """
    tools = list(map(_definition, request.callable))
    if not tools:
        tools = [ToolDefinition(name=name) for name in _called(request)]
    if not has_schema or request.output_schema is None:
        return ModelRequestParameters(function_tools=tools)
    form = OutputObjectDefinition(structured.wrapped(request.output_schema), name="reply")
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=form)


def _take(reply: ReplyBuilder, event: ModelResponseStreamEvent) -> None:
    """Take an event of the stream; those of other kinds are signs of life."""
    if isinstance(event, PartStartEvent):
        _begin(reply, event.index, event.part)
    elif isinstance(event, PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, TextPartDelta):
            reply.add_text(delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            reply.add_thought(delta.content_delta or "")
        elif isinstance(delta, ToolCallPartDelta) and isinstance(delta.args_delta, str):
            reply.add_call(event.index, arguments=delta.args_delta)
    elif isinstance(event, PartEndEvent) and isinstance(event.part, ToolCallPart):
        _finish_call(reply, event.index, event.part)


def _begin(reply: ReplyBuilder, index: int, part: ModelResponsePart) -> None:
    if isinstance(part, TextPart):
        reply.add_text(part.content)
    elif isinstance(part, ThinkingPart):
        reply.add_thought(part.content)
    elif isinstance(part, ToolCallPart):
        arguments = part.args if isinstance(part.args, str) else ""
        reply.add_call(index, name=part.tool_name, arguments=arguments)


def _finish_call(reply: ReplyBuilder, index: int, part: ToolCallPart) -> None:
    """Take what is known of a call once it is whole: pieces may have completed its name,
    and objects come in one.
    """
    call = reply.calls[index]
    call.id, call.name = part.tool_call_id, part.tool_name
    if isinstance(part.args, dict):
        call.arguments = CallArguments()
        reply.add_call(index, arguments=json.dumps(part.args, ensure_ascii=False))


def _end(reply: ReplyBuilder, response: ModelResponse) -> None:
    """Take what the library says of a reply whose stream has ended: why, what it used, and
    what goes back with it.
    """
    usage, reason = response.usage, response.finish_reason
    if usage.has_values() and not usage.unmeasured_requests:
        reply.input_tokens, reply.output_tokens = usage.input_tokens, usage.output_tokens
        reply.cached_tokens, reply.kept_tokens = usage.cache_read_tokens, usage.cache_write_tokens
    reply.served_by(response.model_name)
    if reply.calls:
        reply.thinking[0] = GatheredFields(stored(response))
    if response.state != "complete":  # the library knows of more, or of a stream that was cut
        return
    reply.close()
    if reason == "content_filter":
        reply.refusal = reply.refusal or "stopped by the server's content filter"
    if reason is not None:
        reply.end(reason, _STOPS)
