"""A request as messages of pydantic-ai, and a reply of it as it goes back in the
next turn of a tool loop.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as LibraryRequest

from sennit.activities.providers import structured
from sennit.activities.providers.model import MediaPart, Message, ModelRequest, ToolRequest
from sennit.workflows.plan.language.text import text_bytes

_STORED = "pydantic_ai"
"""The field of a turn that holds the library's own record of it."""


def messages_of(request: ModelRequest, *, in_words: bool) -> list[ModelMessage]:
    """Return the turns of a request. Its schema stands in the prompt, if the
    server is not given it.
    """
    prompt = request.prompt
    if in_words and request.output_schema is not None:
        prompt = f"{prompt}\n\n{structured.schema_instruction(request.output_schema)}"
    asked = Message("user", prompt, media=request.media)
    names: dict[str, str] = {}
    for message in request.messages:
        for call in message.calls:
            names[call.id] = call.name

    # Neighbours that are not the model's are one turn: makers want the
    # results of parallel calls so.
    messages = list[ModelMessage]()
    open_turn = list[ModelRequestPart]()
    for message in (*request.history, asked, *request.messages):
        if message.role != "assistant":
            open_turn.append(_part(message, names))
            continue
        if open_turn:
            messages.append(LibraryRequest(parts=open_turn))
            open_turn = []
        messages.append(_response(message))
    messages.append(LibraryRequest(parts=open_turn, instructions=request.system or None))
    return messages


def stored(response: ModelResponse) -> dict[str, Any]:
    """Return a reply of a model as JSON, with all that its server has sent with it, such as
    signatures of thoughts, but no files: nobody asked for those.
    """
    parts = [part for part in response.parts if not isinstance(part, FilePart)]
    [dumped] = ModelMessagesTypeAdapter.dump_python([replace(response, parts=parts)], mode="json")
    return {_STORED: dumped}


def bytes_of(event: ModelResponseStreamEvent | ModelResponse) -> int:
    """Return how many bytes an event of a stream has brought. An event that ends a
    part brings nothing new.
    """
    if isinstance(event, PartStartEvent):
        return _bytes_in(event.part)
    if isinstance(event, PartDeltaEvent):
        return _bytes_in(event.delta)
    return 0


def _bytes_in(value: Any) -> int:
    """Return about how many bytes a value has: those of the texts and files in it."""
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_bytes_in, value.keys())) + sum(map(_bytes_in, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes_in, value))
    if is_dataclass(value):
        return sum(_bytes_in(getattr(value, place.name)) for place in fields(value))
    return 0


def _part(message: Message, names: dict[str, str]) -> ModelRequestPart:
    """Return a turn that is not the model's: words of a person, or the result of a call."""
    files = [_file(media) for media in message.media]
    if message.role == "tool":
        content: Any = message.text
        if files:
            content = [message.text, *files]
        return ToolReturnPart(names.get(message.call_id, ""), content, message.call_id)
    if not files:
        return UserPromptPart(message.text)
    words: Sequence[UserContent] = [message.text, *files]
    return UserPromptPart(words)


def _file(media: MediaPart) -> BinaryContent:
    return BinaryContent(base64.b64decode(media.data), media_type=media.content_type)


def _response(message: Message) -> ModelResponse:
    """Return a turn of the model as it came, if the library has given it and it still has
    the calls that were made.
    """
    calls = list(map(_call, message.calls))
    names = [call.tool_name for call in calls]
    for returned in message.thinking:
        if _STORED not in returned:
            continue
        [found] = ModelMessagesTypeAdapter.validate_python([returned[_STORED]])
        assert isinstance(found, ModelResponse)
        made = [part.tool_name for part in found.parts if isinstance(part, ToolCallPart)]
        if made == names:
            return replace(found, parts=_with_ids(found.parts, calls))
    parts: list[ModelResponsePart] = []
    if message.text:
        parts.append(TextPart(message.text))
    parts += calls
    return ModelResponse(parts=parts)


def _call(call: ToolRequest) -> ToolCallPart:
    if isinstance(call.arguments, dict):
        return ToolCallPart(call.name, call.arguments, call.id)
    return ToolCallPart(call.name, json.dumps(call.arguments, ensure_ascii=False), call.id)


def _with_ids(
    parts: Sequence[ModelResponsePart], calls: Sequence[ToolCallPart]
) -> list[ModelResponsePart]:
    """Return parts whose calls have the ids by which the results name them: a
    server may use one id twice.
    """
    ids = iter(calls)
    changed = list[ModelResponsePart]()
    for part in parts:
        if isinstance(part, ToolCallPart):
            part = replace(part, tool_call_id=next(ids).tool_call_id)
        changed.append(part)
    return changed
