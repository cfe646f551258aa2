"""Calls that usually follow another, as a run is told of them: by names and numbers, without any value."""

from pydantic import Field

from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.validation_messages import Frozen
from sennit.workflows.plan.speculation.limits import MAX_FOLLOWERS


class Follower(Frozen):
    """A call of the tool `second` that has followed a call of `first`, with arguments made as the mapping at a `place`
    of the patterns says. `kind` is that of the resource which it reads, "" for an unknown one. Times are milliseconds.
    """

    first: str
    second: str
    place: int = Field(ge=0)
    probability: float = Field(ge=0, le=1)
    millis: int = Field(default=0, ge=0)
    """How long the second call usually takes."""
    kind: str = ""
    queue: str
    timeout: int = Field(gt=0)
    fresh_for: int = Field(ge=0)


class Speculation(Frozen):
    """That a run may speculate. `patterns` names the artifact with the mappings of its followers."""

    patterns: str = ""
    followers: tuple[Follower, ...] = Field(default=(), max_length=MAX_FOLLOWERS)


class PastSpeculation(Speculated):
    """What the runs before this one in its chain have made early, and what of that still binds it."""

    used: Usage = NO_USAGE
    """What calls made early have used. They have one part of the budget in the whole chain."""
    unsure_writes: tuple[str, ...] = ()
    """The kinds of resources of writes that may still take effect."""
