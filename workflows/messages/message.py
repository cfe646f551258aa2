"""What every value on the wire is, and the names that such values have in common."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.workflows.plan.language.text import text_bytes

Digest = str
NodePath = str
RunName = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,100}$")]
"""What the artifacts of a run are below. One of another form could be a path
into another namespace.
"""


class Message(BaseModel):
    """A value on the wire: frozen, strict about its fields; fields left at
    their default are not sent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


Signalled = TypeVar("Signalled", bound=Message)


def message_in(kind: type[Signalled], request: object, *more: object) -> Signalled | None:
    """Return the message that a signal brings; None for anything else that somebody sends."""
    if more:
        return None
    try:
        return kind.model_validate(request)
    except ValidationError:
        return None


def message_bytes(
    message: BaseModel, *, exclude_defaults: bool = False, exclude_unset: bool = False
) -> int:
    """Return how many bytes a value takes on the wire: JSON in UTF-8. Limits of payloads count by
    this alone, because a Chinese character is one character and three bytes.
    """
    return text_bytes(
        message.model_dump_json(exclude_defaults=exclude_defaults, exclude_unset=exclude_unset)
    )
