"""What `HttpProvider` needs to know of a wire format."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from sennit.activities.limits import MAX_CALL_TOKENS, MAX_COST_USD
from sennit.activities.providers.model import ModelRequest
from sennit.activities.providers.reply_builder import ReplyBuilder
from sennit.activities.providers.settings import Server

LEAST_THINKING = 1_024
"""Tokens of thinking that a server takes at the least, where it is told their number."""
_NOT = r"(\bnot\b|n't|\bun|\bno\b|\bonly\b|disabled|unavailable|requires? --)"
_CAPABLE = (
    r"(support|enabled|implement|permitted|allowed|recogni[sz]ed|accept|available|known|expected"
    r"|require)"
)
_TOOLS = r"\b(?:tools|(?:tool|function)[ _](?:use|call(?:ing|s)?|choice))\b(?!\[|\.\d|\.\[)"
NO_SYSTEM = (
    r"system (role|message|prompt|instruction)|role\W+system|developer instruction"
    r"|only '?user'? and '?assistant'?"
    r"|roles must alternate|role\W{1,3} does not support\W+system"
)
NO_TOOLS = (
    rf"{_TOOLS}.{{0,60}}{_NOT}.{{0,25}}{_CAPABLE}|{_NOT}.{{0,25}}{_CAPABLE}.{{0,40}}{_TOOLS}"
    rf"|extra (inputs|fields).{{0,40}}{_TOOLS}|{_TOOLS}.{{0,40}}extra (inputs|fields)"
    rf"|{_TOOLS}\W.{{0,60}}requires --|invalid '?tools'?: empty"
)
"""What says that a model or a server takes no tools. Of one tool or one call in particular, such as
`tools[0]` or a part of a `functionCall`, nothing is said here.
"""
NO_STREAM = (
    rf"\bstream(ing)?\b.{{0,40}}{_NOT}.{{0,25}}{_CAPABLE}"
    rf"|{_NOT}.{{0,25}}{_CAPABLE}.{{0,40}}\bstream(ing)?\b"
    r"|to stream this"
)
NO_SCHEMA = (
    r"response_?format|json.schema|parse grammar|generate parser|structured outputs?"
    r"|guided (decoding|json)"
    r"|generationconfig.{0,60}schema|schema in generationconfig|schema grammar"
)


Without = frozenset[str]
"""Parameters that a server has refused; a call is put so that it does without them."""


class WireFormat(Protocol):
    """A wire format. `optional` maps each parameter that a call can do without to a pattern of
    what a refusal of it says in small letters, those that are missed least first. A setting
    has its own name there.

    `schema` is the parameter among them that carries the wanted schema. `lacks` are the settings
    that no model of this format takes. `fields` are those by which a piece of a reply is known.
    """

    path: ClassVar[str]
    models_path: ClassVar[str]
    schema: ClassVar[str]
    fields: ClassVar[frozenset[str]]
    optional: ClassVar[Mapping[str, str]]
    lacks: ClassVar[tuple[str, ...]]

    def headers(self, server: Server) -> dict[str, str]:
        """Return the headers of every request, with the key if there is one."""
        ...

    def limit_field(self, server: Server, without: Without) -> str:
        """Return what the longest reply is called in a body."""
        ...

    def longest(self, model: str) -> int | None:
        """Return the tokens that a model's reply may have at most, where every call
        must say so; else None.
        """
        ...

    def body(self, server: Server, request: ModelRequest, without: Without) -> dict[str, Any]:
        """Return the body of a request whose reply is to be streamed."""
        ...

    def take(self, reply: ReplyBuilder, data: Any) -> bool:
        """Take one event's data into the reply; return whether it was the last."""
        ...

    def take_whole(self, reply: ReplyBuilder, data: Any) -> None:
        """Take a reply that came in one piece although a stream was asked for."""
        ...


def count(value: Any, before: int | None) -> int | None:
    """Return a server's count of tokens if it is one, else what was known before."""
    if type(value) is int and 0 <= value < MAX_CALL_TOKENS:
        return value
    return before


def price(value: Any, before: float | None) -> float | None:
    """Return the dollars that a server says a call costs, itself or as the total of its parts."""
    if isinstance(value, dict):
        value = value.get("total_cost")
    if isinstance(value, int | float) and 0 <= value < MAX_COST_USD:
        return float(value)
    return before
