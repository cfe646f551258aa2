"""What a server's models take, learned from calls that were refused.

A refusal teaches only what it says: of this server, this model and this parameter. It is believed
once a call without the parameter has gone through. After an hour it is forgotten, so that a
server that was changed, or a refusal that was about something else after all, costs one more
refused call and nothing else.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sennit.activities.limits import MAX_KEPT_CAPABILITIES_BYTES
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.returned_fields import unreturned
from sennit.activities.providers.settings import Server
from sennit.activities.providers.wire_format import Without
from sennit.workflows.plan.bounded_cache import BoundedCache

UNKNOWN = re.compile(
    r"support|unavailable"
    r"|\b(un|not )(known|recogni[sz]ed|expected|allowed|permitted|enabled)|\bextra (inputs|fields)"
    r"|requires --"
)
NEVER = re.compile(
    r"\bnot (currently )?(supported|allowed|permitted|enabled|implemented)|unsupported"
    r"|n[o']t support|requires --"
    r"|(role|roles) must alternate|failed to compile \w* ?(schema|grammar)"
    r"|\bno endpoints\b.{0,40}support"
)
"""What an error of the server's own must say to be a refusal: all else may be of this moment."""
FORGOTTEN_AFTER = 3600.0
"""Seconds for which a refusal counts."""
_OF_SCHEMA = re.compile(r"\bschema\b|propert|pattern|keyword|grammar|feature")
_SAYS_NOTHING = re.compile(
    r"(?:invalid|bad|request|error|type|param(?:eter)?s?|arguments?|value|input|un(?:supported"
    r"|known|processable)"
    r"|entity|validation|http|in|the|an?|is|or|[\W\d_])*"
)
_LENGTHS = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
_OF_VALUE = re.compile(
    r"\b(?:unsupported|invalid)[ _]value|\b(?:supported|allowed|valid|permitted) values\b"
    r"|\bdoes not support ['\"\d]"
    r"|\bmust be (?:one of|between|below|above|at (?:most|least)|(?:less|greater|smaller|larger)"
    r"|in\b)|\bout of range\b"
    r"|\bshould be (?:one of|between|less|greater|at (?:most|least))|\binput should be\b"
    r"|\bunknown variant\b"
)
"""How a refusal says that it is about the value of a setting, and not about the setting."""
_MOST_VALUES = 8
"""Of so many values of a setting each may be refused: after that the model is
asked without the setting.
"""
_CONSEQUENCES = {
    "tools": "takes no tools, so calls are written as text",
    "response_format": "takes no schema, so it is asked for JSON in words",
    "output_config": "takes no schema, so it is asked for JSON in words",
    "system": "takes no system role, so its instructions stand in the prompt",
    "stream": "does not stream, so nothing starts before its reply is whole",
}
_SETTINGS = ("temperature", "top_p", "stop", "seed", "effort")


def says_nothing(text: str) -> bool:
    """Whether a refusal names nothing that could be left out of the call."""
    return _SAYS_NOTHING.fullmatch(text) is not None


def _nothing_known() -> BoundedCache[Any, Any]:
    return BoundedCache(MAX_KEPT_CAPABILITIES_BYTES)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a refusal says: these parameters are not taken, or, if `wanted`, may not be left out.
    `reason` is for people, `text` the refusal in small letters.
    """

    refused: frozenset[str] = frozenset()
    reason: str = ""
    text: str = ""
    wanted: bool = False

    def applied(self, without: Without) -> Without:
        """Return what the next call does without."""
        if self.wanted:
            return without - self.refused
        return without | self.refused


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one parameter of one model, and since when; of a setting it may
    be of one `value` alone.
    """

    parameter: str
    reason: str
    wanted: bool
    since: float
    value: Any = None

    @property
    def consequence(self) -> str:
        """What is done without the parameter, in words; "" if nobody need know."""
        if self.parameter not in _SETTINGS:
            return _CONSEQUENCES.get(self.parameter, "")
        of_value = ""
        if self.value is not None:
            of_value = f" of {self.value}"
        return f"takes no `{self.parameter}`{of_value}, so it was not sent"

    def applies_to(self, request: ModelRequest) -> bool:
        """Whether the parameter of this request is meant."""
        return self.value is None or self.value == getattr(request.settings, self.parameter)


@dataclass(frozen=True, slots=True)
class _Ends:
    """How a model's replies have ended."""

    with_reason: bool = False
    without_reason: int = 0


@dataclass(slots=True)
class Capabilities:
    """What one server's models are known to refuse, by model, and how many
    tokens their context has.
    """

    server: Server
    schema: str
    clock: Callable[[], float] = time.monotonic
    _known: BoundedCache[str, dict[str, _Known]] = field(default_factory=_nothing_known)
    _schemas: BoundedCache[tuple[str, bytes], float] = field(default_factory=_nothing_known)
    _contexts: BoundedCache[str, int] = field(default_factory=_nothing_known)
    _rooms: BoundedCache[str, int] = field(default_factory=_nothing_known)
    _longest: BoundedCache[str, int] = field(default_factory=_nothing_known)
    _ends: BoundedCache[str, _Ends] = field(default_factory=_nothing_known)

    def without(self, request: ModelRequest) -> Without:
        """Return the parameters that the request's model is known to refuse, for any call or for
        this schema, and the fields of earlier turns that its server has not asked for.

        No schema is sent where there is none, nor beside tools but to official servers: others hold
        the reply to it so tightly that the model can call no tool.
        """
        wanted: set[str] = set()
        refused: set[str] = set()
        for entry in self._of(request.model).values():
            if entry.applies_to(request):
                parameters = wanted if entry.wanted else refused
                parameters.add(entry.parameter)
        left_out = frozenset(refused | (unreturned(self.server.url, request.messages) - wanted))

        has_schema = request.output_schema is not None and (
            self.server.official or not request.tools
        )
        if not has_schema and request.form is None:
            return left_out | {self.schema}
        refused_at = self._schemas.get(_schema_key(request))
        if refused_at is not None and not self._is_past(refused_at):
            return left_out | {self.schema}
        return left_out

    def _of(self, model: str) -> dict[str, _Known]:
        """Return what is known of a model, without what is forgotten by now. A setting has
        an entry for each value.
        """
        known = self._known.get(model) or {}
        return {name: entry for name, entry in known.items() if not self._is_past(entry.since)}

    def _is_past(self, since: float) -> bool:
        """Whether something was learned too long ago."""
        return self.clock() - since >= FORGOTTEN_AFTER

    def learn(self, request: ModelRequest, lesson: Lesson) -> None:
        """Remember what was refused, and why. Of schemas it is this one, unless the text is about
        unknown parameters. Of a setting it is its value, if the text is about values.
        """
        refused = lesson.refused
        now = self.clock()
        if self.schema in refused and (
            not UNKNOWN.search(lesson.text) or _OF_SCHEMA.search(lesson.text)
        ):
            self._schemas.put(_schema_key(request), now)
            refused = refused - {self.schema}
        known = self._of(request.model)
        is_of_value = _OF_VALUE.search(lesson.text) is not None
        for name in sorted(refused):
            earlier = sum(entry.parameter == name for entry in known.values())
            value = None
            if name in _SETTINGS and is_of_value and earlier < _MOST_VALUES:
                value = getattr(request.settings, name)
            place = name
            if value is not None:
                place = f"{name}={value}"
            known[place] = _Known(name, lesson.reason, lesson.wanted, now, value)
        if refused:
            self._known.put(request.model, known)

    def gives_no_reason(self, model: str) -> bool:
        """Whether the server's replies of this model end without a reason: none has had one,
        and it was asked again.
        """
        ends = self._ends.get(model)
        return ends is not None and ends.without_reason > 0 and not ends.with_reason

    def learn_reason(self, model: str, *, given: bool, ended: bool) -> None:
        """Note how a reply ended: with a reason, or with the last event alone."""
        ends = self._ends.get(model) or _Ends()
        if given and not ends.with_reason:
            self._ends.put(model, replace(ends, with_reason=True))
        elif ended and not given:
            self._ends.put(model, replace(ends, without_reason=ends.without_reason + 1))

    def context(self, model: str) -> int:
        """Return how many tokens prompt and reply may have together; 0 where nobody has said so."""
        return self._contexts.get(model) or self.server.context

    def learn_context(self, model: str, tokens: int) -> None:
        """Remember the length of a model's context."""
        self._contexts.put(model, tokens)

    def room(self, model: str) -> int | None:
        """Return how many tokens to ask for: this server's own limit has cut a reply, or
        it wants to be told one.
        """
        return self._rooms.get(model)

    def learn_room(self, model: str, tokens: int) -> None:
        """Remember how many tokens to ask for where a call has no limit."""
        self._rooms.put(model, tokens)

    def longest(self, model: str) -> int | None:
        """Return the longest reply that may be asked for; None where nobody has said so."""
        return self._longest.get(model)

    def learn_longest(self, model: str, tokens: int) -> None:
        """Remember the longest reply that may be asked for."""
        self._longest.put(model, tokens)

    def left_out(self, request: ModelRequest, without: Without) -> tuple[str, ...]:
        """Return a sentence on each setting of the request that was not sent, with the
        reason if it was refused.
        """
        entries = self._of(request.model).values()
        known = {entry.parameter: entry for entry in entries if entry.applies_to(request)}
        notes: list[str] = []
        for name in request.settings.names:
            if name in without and name in _SETTINGS:
                consequence = f"takes no `{name}`, so it was not sent"
                entry = known.get(name)
                if entry:
                    consequence = f"{entry.consequence} ({entry.reason})"
                notes.append(f"{request.model} {consequence}")
        return tuple(notes)

    def learn_listed(self, entries: list[Mapping[str, Any]]) -> None:
        """Take the lengths of contexts that a server's list of models has."""
        for entry in entries:
            places = [entry]
            meta = entry.get("meta")
            if isinstance(meta, dict):
                places.append(meta)
            lengths: list[int] = []
            for place in places:
                lengths += [place[name] for name in _LENGTHS if isinstance(place.get(name), int)]
            if lengths and min(lengths) > 0:
                self._contexts.put(f"{self.server.provider}:{entry['id']}", min(lengths))

    def notes(self, model: str) -> list[str]:
        """Return a sentence for people on each thing that is done differently for a
        model, with the reason.
        """
        notes = list[str]()
        for entry in self._of(model).values():
            if entry.consequence:
                notes.append(f"{model} {entry.consequence} ({entry.reason})")
            elif entry.wanted:
                notes.append(f"{model} is given its `{entry.parameter}` back ({entry.reason})")
        context = self._contexts.get(model)
        if context:
            notes.append(f"{model} has a context of {context:,} tokens, and prompts are cut to it")
        return notes


def _schema_key(request: ModelRequest) -> tuple[str, bytes]:
    """Return what a refusal of the request's schema is remembered by."""
    schema = request.form.schema if request.form is not None else request.output_schema
    written = json.dumps(schema, sort_keys=True).encode()
    return request.model, hashlib.sha256(written).digest()
