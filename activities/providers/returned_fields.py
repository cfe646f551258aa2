"""Fields of a model's turn that go back to it as they came.

A server gives more with a turn than text and calls: thoughts, or signatures of them. Some refuse
the next turn of a tool loop without these fields, others refuse it with them. Fields of a call go
back to whoever gave them. Fields of the message, which hold its thoughts, go back to the servers
below. To any other they go once a refusal has asked for them.

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
"""The fields of a message that a server wants back, by host. The table in
docs/models.md has the sources.
"""

_JOINED = re.compile(r"reasoning|thinking|thought|text|summary|data", re.IGNORECASE)
_WHOLE = re.compile(r"signature|\bid\b|type|format|index", re.IGNORECASE)


class Gathered:
    """A value of a field while its pieces arrive. A stream has one piece a token, so that none of
    them may copy what came before it: the value is put together once, when it is asked for.
    """

    __slots__ = ("_fields", "_parts", "_places", "_texts", "_value")

    def __init__(self, value: Any) -> None:
        self._replace(value)

    def _replace(self, value: Any) -> None:
        """Forget what has come, and begin with this."""
        self._value = value
        self._texts: list[str] | None = None
        self._fields: GatheredFields | None = None
        self._parts: list[Gathered] | None = None
        self._places: dict[tuple[Any, Any], int] = {}
        if isinstance(value, str):
            self._texts = [value]
        elif isinstance(value, dict):
            self._fields = GatheredFields(value)
        elif isinstance(value, list):
            self._parts = []
            for part in value:
                self._append(part)

    def add(self, piece: Any, name: str = "") -> None:
        """Take the next piece: texts of thoughts are joined, objects by their fields, and parts of
        a list by their index. Any other value stands in the place of the one before.
        """
        if self._texts is not None and isinstance(piece, str):
            if _JOINED.search(name) and not _WHOLE.search(name):
                self._texts.append(piece)
            elif piece:
                self._texts = [piece]
        elif self._fields is not None and isinstance(piece, dict):
            self._fields.add_all(piece)
        elif self._parts is not None and isinstance(piece, list):
            for part in piece:
                self._add_part(part)
        else:
            self._replace(piece)

    def join(self, piece: str) -> None:
        """Take the next piece of a text, whatever the field is called."""
        if self._texts is None:
            self._replace(piece)
        else:
            self._texts.append(piece)

    def value(self) -> Any:
        """Return what the pieces so far are."""
        if self._texts is not None:
            self._texts = ["".join(self._texts)]
            return self._texts[0]
        if self._fields is not None:
            return self._fields.value()
        if self._parts is not None:
            return [part.value() for part in self._parts]
        return self._value

    def _add_part(self, part: Any) -> None:
        place: int | None = None
        key = _key_of(part)
        if key is not None:
            place = self._places.get(key)
        if place is None:
            self._append(part)
        else:
            assert self._parts is not None
            self._parts[place].add(part)

    def _append(self, part: Any) -> None:
        assert self._parts is not None
        key = _key_of(part)
        if key is not None:
            self._places.setdefault(key, len(self._parts))
        self._parts.append(Gathered(part))


class GatheredFields:
    """The fields of a turn, of a call or of a block while their pieces arrive."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        self._fields: dict[str, Gathered] = {}
        self.add_all(fields or {})

    def __bool__(self) -> bool:
        return bool(self._fields)

    def add_all(self, pieces: Mapping[str, Any]) -> None:
        """Take the next pieces of several fields."""
        for name, piece in pieces.items():
            self.add(name, piece)

    def add(self, name: str, piece: Any) -> None:
        """Take the next piece of a field."""
        if name in self._fields:
            self._fields[name].add(piece, name)
        else:
            self._fields[name] = Gathered(piece)

    def join(self, name: str, piece: str) -> None:
        """Take the next piece of a field that is one text."""
        self._fields.setdefault(name, Gathered("")).join(piece)

    def value(self) -> dict[str, Any]:
        """Return the fields as their pieces make them so far."""
        return {name: field.value() for name, field in self._fields.items()}


def _key_of(part: Any) -> tuple[Any, Any] | None:
    """Return what later pieces of a part of a list are known by: its index and
    type, if it has an index.
    """
    if not isinstance(part, dict) or not isinstance(part.get("index"), int | str):
        return None
    kind = part.get("type")
    return part["index"], kind if isinstance(kind, str) else None


def unreturned(url: str, messages: Iterable[Message]) -> frozenset[str]:
    """Return the fields of these messages for which this server has not asked."""
    wanted = RETURNED.get(urlsplit(url).hostname or "", frozenset())
    given: set[str] = set()
    for message in messages:
        for fields in message.thinking:
            given.update(fields)
    return frozenset(given - wanted)


def field_names(messages: Iterable[Message]) -> dict[str, str]:
    """Return the fields that messages and their calls have, each by its own name and by
    the names inside of it.
    """
    names = dict[str, str]()
    for message in messages:
        fields_of_calls = [call.fields for call in message.calls]
        for fields in (*message.thinking, *fields_of_calls):
            for name, value in fields.items():
                names |= dict.fromkeys((name, *_inner_names(value)), name)
    return names


def _inner_names(value: Any) -> list[str]:
    """Return the names of the objects in a field, without those that say
    nothing, such as `text`.
    """
    names: list[str] = []
    if isinstance(value, list):
        for item in value:
            names += _inner_names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if "_" in key:
                names.append(key)
            names += _inner_names(item)
    return names


def of_same_model(request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
    """Return the request without the fields that another model has given, and what
    people should know of it.
    """
    messages: list[Message] = []
    others: dict[str, None] = {}
    for message in request.messages:
        if message.origin in ("", request.model) or not _has_fields(message):
            messages.append(message)
            continue
        others[message.origin] = None
        calls = tuple(ToolRequest(call.id, call.name, call.arguments) for call in message.calls)
        messages.append(replace(message, calls=calls, thinking=()))
    if not others:
        return request, ()
    note = (
        f"{request.model} goes on with turns of {', '.join(others)}, without the thoughts of these"
    )
    return replace(request, messages=tuple(messages)), (note,)


def _has_fields(message: Message) -> bool:
    if message.thinking:
        return True
    return any(call.fields for call in message.calls)
