"""A trajectory: what one run has called, in which order, and where the arguments came from.

It holds no values. A constant is a mark, which tells equal values from others for whoever has the
key of the store, and from nobody's text can anything be read back. What lies in a store may be cut
off or made up, so that every field has a form and a bound.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.workflows.plan.learning.limits import (
    MAX_GOAL_WORDS,
    MAX_NOTED_CALLS,
    MAX_PLAN_LINES,
    MAX_SHAPE_CHARACTERS,
    MAX_SOURCES,
    MAX_TRAJECTORY_BYTES,
)

VERSION_CHARACTERS: Final = 12
Mark = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
"""What stands for a value: the first 64 bits of its HMAC."""
Name = Annotated[str, Field(pattern=r"^[\w.:/-]{1,120}$")]
"""The name of a tool, or of a role of models."""
Version = Annotated[str, Field(pattern=r"^[0-9a-f]{0,12}$")]
"""The schemas of a tool, by their digest; "" for a role."""
Place = Annotated[str, Field(pattern=r"^[^\x00-\x1f]{0,200}$")]
"""A path into a value: `items[0].path`, with `[*]` for each item of a list. "" is the whole."""
Origin = Literal["constant", "goal", "input", "output", "argument", "text"]
"""Where a value came from: it stands in the plan; it is the goal or an input; it is a part of what
an earlier call has returned, or was given; or it is a text with such parts in it.
"""
Millis = Annotated[int, Field(ge=0, le=10**13)]
Count = Annotated[int, Field(ge=0, le=10**12)]
Index = Annotated[int, Field(ge=0, lt=MAX_NOTED_CALLS)]


class _Kept(BaseModel):
    """A part of what is kept: without a doubtful field, and unchanged once it is there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Source(_Kept):
    """Where the value at one place of a call's arguments came from."""

    argument: Place
    origin: Origin
    call: Index | None = None
    """Of an earlier call its number in the run."""
    path: Place = ""
    """The place in what that call has returned, or was given, or in the inputs of the run."""
    mark: Mark | None = None
    """Of a constant."""


class NotedCall(_Kept):
    """One call. Times are milliseconds since the first call of the run has begun."""

    name: Name
    kind: Literal["tool", "model"]
    version: Version = ""
    model: str = Field(default="", max_length=200)
    began: Millis
    millis: Millis
    took: Millis = 0
    """How long the early call took whose output this one has taken over; 0 without one."""
    attempts: Count = 1
    tokens: Count = 0
    failure: str = Field(default="", max_length=20)
    """The class of its failure; "" for none."""
    sources: tuple[Source, ...] = Field(default=(), max_length=MAX_SOURCES)
    uses: tuple[Index, ...] = Field(default=(), max_length=MAX_NOTED_CALLS)
    """The calls whose outputs it was given, wholly or in part."""
    after: tuple[Index, ...] = Field(default=(), max_length=MAX_NOTED_CALLS)
    """The calls for which it waited because of `needs` alone."""

    @property
    def key(self) -> str:
        """What patterns know the tool by, with its schemas: `search@1f3a5b7c9d0e`."""
        return key_of(self.name, self.version)

    @property
    def ended(self) -> int:
        return self.began + self.millis


class PlanShape(_Kept):
    """A plan without its literals, and the tools that it calls, by their keys."""

    lines: tuple[Annotated[str, Field(max_length=MAX_SHAPE_CHARACTERS)], ...] = Field(
        max_length=MAX_PLAN_LINES
    )
    tools: tuple[str, ...] = Field(max_length=MAX_PLAN_LINES)


class Trajectory(_Kept):
    """One run: how and when it ended, its calls in the order in which they began, and
    the shape of its plan.

    `words` are marks of the words of its goal, by which goals are compared.
    """

    form: Literal[1] = 1
    run: str = Field(pattern=r"^[0-9A-Za-z-]{1,100}$")
    status: Literal["done", "partial", "failed"]
    ended: Millis
    calls: tuple[NotedCall, ...] = Field(max_length=MAX_NOTED_CALLS)
    left_out: Count = 0
    """Calls beyond the most that are kept."""
    words: tuple[Mark, ...] = Field(default=(), max_length=MAX_GOAL_WORDS)
    plan: PlanShape | None = None


def version_of(entry: Mapping[str, Any]) -> str:
    """Return the digest of what a tool takes and gives, by its entry in a catalogue:
    patterns hold for that alone.
    """
    parts = [entry.get("version"), entry.get("schema"), entry.get("output_schema")]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:VERSION_CHARACTERS]


def keys_of(catalogue: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return by its name what patterns know each tool of a catalogue by."""
    keys: dict[str, str] = {}
    for entry in catalogue:
        name = str(entry["name"])
        keys[name] = key_of(name, version_of(entry))
    return keys


def key_of(name: str, version: str) -> str:
    """Return what patterns know a tool or a role by."""
    if not version:
        return name
    return f"{name}@{version}"


def name_in(key: str) -> str:
    """Return the name in a key."""
    return key.partition("@")[0]


def read_trajectory(body: bytes) -> Trajectory | None:
    """Return the trajectory in what lies in a store; None if it is cut off, or of any other form,
    or tells of calls that came before those which they are said to follow.
    """
    if len(body) > MAX_TRAJECTORY_BYTES:
        return None
    try:
        trajectory = Trajectory.model_validate_json(body)
    except ValidationError:
        return None
    for number, call in enumerate(trajectory.calls):
        named = [*call.uses, *call.after]
        for source in call.sources:
            if source.call is not None:
                named.append(source.call)
        if max(named, default=-1) >= number:
            return None
    return trajectory
