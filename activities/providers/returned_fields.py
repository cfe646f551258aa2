"""Fields of a model's turn that go back to it as they came.

A server gives more with a turn than text and calls: thoughts, or signatures of them. Some refuse the next turn of a
tool loop without these fields, others refuse it with them. Fields of a call go back to whoever gave them. Fields of the
message, which hold its thoughts, go back to the servers below. To any other they go once a refusal has asked for them.

They go to the model that gave them alone: no other can read them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from sennit.activities.providers.model import Message, ModelRequest, ToolRequest

RETURNED: Mapping[str, frozenset[str]] = {
    "api.deepseek.com": frozenset(("reasoning_content",)),
    "api.moonshot.ai": frozenset(("reasoning_content",)),
    "api.moonshot.cn": frozenset(("reasoning_content",)),
    "api.minimax.io": frozenset(("reasoning_details",)),
    "openrouter.ai": frozenset(("reasoning_details",)),
    "generativelanguage.googleapis.com": frozenset(("extra_content",)),
}
"""The fields of a message that a server wants back, by host. The table in docs/models.md has the sources."""

_JOINED = re.compile(r"reasoning|thinking|thought|text|summary|data", re.IGNORECASE)
_WHOLE = re.compile(r"signature|\bid\b|type|format|index", re.IGNORECASE)


def merged(before: Any, piece: Any, name: str = "") -> Any:
    """Return a field as its pieces make it so far: texts of thoughts are joined, and parts of a list by their index."""
    if before is None:
        return piece
    if isinstance(before, str) and isinstance(piece, str):
        if _JOINED.search(name) and not _WHOLE.search(name):
            return before + piece
        return piece or before
    if isinstance(before, dict) and isinstance(piece, dict):
        whole = dict(before)
        for key, value in piece.items():
            whole[key] = merged(before.get(key), value, key)
        return whole
    if isinstance(before, list) and isinstance(piece, list):
        return _merged_parts(before, piece)
    return piece


def _merged_parts(before: list[Any], pieces: list[Any]) -> list[Any]:
    parts = list(before)
    for piece in pieces:
        place = _place_of(parts, piece)
        if place is None:
            parts.append(piece)
        else:
            parts[place] = merged(parts[place], piece)
    return parts


def _place_of(parts: list[Any], piece: Any) -> int | None:
    """Return which part a piece goes on with: the one of its type and index."""
    if not isinstance(piece, dict) or piece.get("index") is None:
        return None
    for place, part in enumerate(parts):
        if isinstance(part, dict) and (part.get("index"), part.get("type")) == (piece["index"], piece.get("type")):
            return place
    return None


def unreturned(url: str, messages: Iterable[Message]) -> frozenset[str]:
    """Return the fields of these messages for which this server has not asked."""
    wanted = RETURNED.get(urlsplit(url).hostname or "", frozenset())
    return frozenset(name for message in messages for fields in message.thinking for name in fields) - wanted


def field_names(messages: Iterable[Message]) -> dict[str, str]:
    """Return the fields that messages and their calls have, each by its own name and by the names inside of it."""
    names = dict[str, str]()
    for message in messages:
        for fields in (*message.thinking, *(call.fields for call in message.calls)):
            for name, value in fields.items():
                names |= dict.fromkeys((name, *_inner_names(value)), name)
    return names


def _inner_names(value: Any) -> list[str]:
    """Return the names of the objects in a field, without those that say nothing, such as `text`."""
    if isinstance(value, list):
        return [name for item in value for name in _inner_names(item)]
    if not isinstance(value, dict):
        return []
    return [name for key, item in value.items() for name in ((key,) if "_" in key else ()) + tuple(_inner_names(item))]


def of_same_model(request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
    """Return the request without the fields that another model has given, and what people should know of it."""
    messages, others = list[Message](), dict[str, None]()
    for message in request.messages:
        if message.origin in ("", request.model) or not _has_fields(message):
            messages.append(message)
            continue
        others[message.origin] = None
        calls = tuple(ToolRequest(call.id, call.name, call.arguments) for call in message.calls)
        messages.append(replace(message, calls=calls, thinking=()))
    if not others:
        return request, ()
    note = f"{request.model} goes on with turns of {', '.join(others)}, without the thoughts of these"
    return replace(request, messages=tuple(messages)), (note,)


def _has_fields(message: Message) -> bool:
    return bool(message.thinking or any(call.fields for call in message.calls))
