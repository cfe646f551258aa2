"""What `HttpProvider` needs to know of a wire format."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from activities.providers.model import ModelRequest
from activities.providers.reply_builder import ReplyBuilder
from activities.providers.settings import Server

Without = frozenset[str]
"""Parameters that a server has refused; a call is put so that it does without them."""


class WireFormat(Protocol):
    """A wire format. `optional` maps each parameter that a call can do without to the words that a refusal of it has.

    `schema` is the parameter among them that carries the wanted schema.
    """

    path: ClassVar[str]
    models_path: ClassVar[str]
    schema: ClassVar[str]
    optional: ClassVar[Mapping[str, tuple[str, ...]]]

    def headers(self, server: Server) -> dict[str, str]:
        """Return the headers of every request, with the key if there is one."""
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
    return value if isinstance(value, int) and value >= 0 else before
