"""What a server's models take, learned from the real calls that were refused: remembered with the reason for as long as
the process lives.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from sennit.activities.limits import MAX_KEPT_CAPABILITIES_BYTES
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.settings import Server
from sennit.activities.providers.wire_format import Without
from sennit.workflows.plan.bounded_cache import BoundedCache

UNKNOWN = re.compile(
    r"support|unavailable|"
    r"\b(un|not )(known|recogni[sz]ed|expected|allowed|permitted|enabled)|\bextra (inputs|fields)|requires --"
)
NEVER = re.compile(r"support|requires --|\bnot (allowed|permitted|enabled)")
"""What an error of the server's own must say to be a refusal: all else may be of this moment."""
_OF_SCHEMA = re.compile(r"\bschema\b|propert|pattern|keyword|grammar|feature")
_SAYS_NOTHING = re.compile(
    r"(?:invalid|bad|request|error|type|param(?:eter)?s?|arguments?|value|input|un(?:supported|known|processable)"
    r"|entity|validation|http|in|the|an?|is|or|[\W\d_])*"
)
_LENGTHS = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
ONE_CALL = "parallel calls"
"""What a model lacks that makes one call a turn: a plan of calls ends at once."""
_CONSEQUENCES = {
    ONE_CALL: "makes one call a turn, so plans are written in lines",
    "tools": "takes no tools, so calls are written as text",
    "response_format": "takes no schema, so it is asked for JSON in words",
    "output_config": "takes no schema, so it is asked for JSON in words",
    "system": "takes no system role, so its instructions stand in the prompt",
    "stream": "does not stream, so nothing starts before its reply is whole",
    **{name: f"takes no `{name}`, so it was not sent" for name in ("temperature", "top_p", "stop", "seed", "effort")},
}


def says_nothing(text: str) -> bool:
    """Whether a refusal names nothing that could be left out of the call."""
    return _SAYS_NOTHING.fullmatch(text) is not None


def _nothing_known() -> BoundedCache[Any, Any]:
    return BoundedCache(MAX_KEPT_CAPABILITIES_BYTES)


@dataclass(slots=True)
class Capabilities:
    """What one server's models are known to refuse, by model, and how many tokens their context has."""

    server: Server
    schema: str
    _refused: BoundedCache[str, dict[str, str]] = field(default_factory=_nothing_known)
    _schemas: BoundedCache[tuple[str, bytes], str] = field(default_factory=_nothing_known)
    _contexts: BoundedCache[str, int] = field(default_factory=_nothing_known)
    _rooms: BoundedCache[str, int] = field(default_factory=_nothing_known)
    _longest: BoundedCache[str, int] = field(default_factory=_nothing_known)

    def without(self, request: ModelRequest) -> Without:
        """Return the parameters that the request's model is known to refuse, for any call or for this schema.

        No schema is sent where there is none, nor beside tools but to official servers: others hold the reply to it so
        tightly that the model can call no tool.
        """
        unknown = frozenset(self._refused.get(request.model) or ())
        unheld = request.output_schema is None or (bool(request.tools) and not self.server.official)
        in_words = unheld and request.form is None
        return unknown | {self.schema} if in_words or _schema_key(request) in self._schemas else unknown

    def learn(self, request: ModelRequest, refused: Set[str], reason: str, text: str = "") -> None:
        """Remember what was refused, and why. Of schemas it is this one, unless `text` is about unknown parameters."""
        if self.schema in refused and (not UNKNOWN.search(text) or _OF_SCHEMA.search(text)):
            self._schemas.put(_schema_key(request), reason)
            refused = refused - {self.schema}
        known = self._refused.get(request.model) or {}
        learned = {name: reason for name in sorted(refused) if name not in known}
        self._refused.put(request.model, {**known, **learned})

    def context(self, model: str) -> int:
        """Return how many tokens prompt and reply may have together; 0 where nobody has said so."""
        return self._contexts.get(model) or self.server.context

    def learn_context(self, model: str, tokens: int) -> None:
        """Remember the length of a model's context."""
        self._contexts.put(model, tokens)

    def room(self, model: str) -> int | None:
        """Return how many tokens to ask for: this server's own limit has cut a reply, or it wants to be told one."""
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
        """Return a sentence on each setting of the request that was not sent, with the reason if it was refused."""
        refused = self._refused.get(request.model) or {}
        reasons = {name: f" ({refused[name]})" if name in refused else "" for name in request.settings.names}
        names = [name for name in request.settings.names if name in without and name in _CONSEQUENCES]
        return tuple(f"{request.model} {_CONSEQUENCES[name]}{reasons[name]}" for name in names)

    def learn_listed(self, entries: list[Mapping[str, Any]]) -> None:
        """Take the lengths of contexts that a server's list of models has."""
        for entry in entries:
            meta = entry.get("meta")
            places = [entry, *([meta] if isinstance(meta, dict) else [])]
            lengths = [place[name] for place in places for name in _LENGTHS if isinstance(place.get(name), int)]
            if lengths and min(lengths) > 0:
                self._contexts.put(f"{self.server.provider}:{entry['id']}", min(lengths))

    def notes(self, model: str) -> list[str]:
        """Return a sentence for people on each thing that is done differently for a model, with the reason."""
        refused = self._refused.get(model) or {}
        found = [f"{model} {_CONSEQUENCES[name]} ({why})" for name, why in refused.items() if name in _CONSEQUENCES]
        context = self._contexts.get(model)
        return found + ([f"{model} has a context of {context:,} tokens, and prompts are cut to it"] if context else [])


def _schema_key(request: ModelRequest) -> tuple[str, bytes]:
    """Return what a refusal of the request's schema is remembered by."""
    schema = request.form.schema if request.form is not None else request.output_schema
    written = json.dumps(schema, sort_keys=True).encode()
    return request.model, hashlib.sha256(written).digest()
