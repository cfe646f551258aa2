"""What a run may call early, as it is told: by names and numbers, without any value."""

from pydantic import Field

from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.plan.speculation.limits import (
    MAX_CHAIN,
    MAX_EARLY_TOOLS,
    MAX_FOLLOWERS,
)


class ReadCall(Frozen):
    """What is known of calls of a tool that only reads. `kind` is that of the resource which it
    reads, "" for an unknown one. Times are milliseconds.
    """

    millis: int = Field(default=0, ge=0)
    """How long a call usually takes; 0 where nobody knows."""
    kind: str = ""
    queue: str
    timeout: int = Field(gt=0)
    fresh_for: int = Field(ge=0)


class EarlyTool(ReadCall):
    """A tool whose calls may be made while the reply of the model that
    asks for them still comes.
    """

    name: str


class Follower(ReadCall):
    """A call of the tool `second` that has followed a call of `first`, with arguments made as the
    mapping at a `place` of the patterns says.
    """

    first: str
    second: str
    place: int = Field(ge=0)
    probability: float = Field(ge=0, le=1)


class Speculation(Frozen):
    """That a run may speculate. `patterns` names the artifact with the
    mappings of its followers.
    """

    patterns: str = ""
    followers: tuple[Follower, ...] = Field(default=(), max_length=MAX_FOLLOWERS)
    tools: tuple[EarlyTool, ...] = Field(default=(), max_length=MAX_EARLY_TOOLS)
    chain: int = Field(default=1, ge=1, le=MAX_CHAIN)
    """How many calls may be made early one behind the other. A run that was prepared without this
    field makes none behind an early one, so that it goes on as it has begun.
    """


class PastSpeculation(Speculated):
    """What the runs before this one in its chain have made early, and what
    of that still binds it.
    """

    used: Usage = NO_USAGE
    """What calls made early have used. They have one part of the budget in the whole chain."""
    unsure_writes: tuple[str, ...] = ()
    """The kinds of resources of writes that may still take effect."""
