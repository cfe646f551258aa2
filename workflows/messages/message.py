"""What every value on the wire is, and the names that such values have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Digest = str
NodePath = str
RunName = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,100}$")]
"""What the artifacts of a run are below. One of another form could be a path into another namespace."""


class Message(BaseModel):
    """A value on the wire: frozen, strict about its fields; fields left at their default are not sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")
