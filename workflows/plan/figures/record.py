"""The record of a run from which its figures are made: what was under way when, and behind what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from sennit.workflows.plan.figures.speculated import Speculated
from sennit.workflows.plan.language.limits import NO_USAGE, Usage

PartKind = Literal["call", "subagent", "container"]
"""A call of a tool or a model; a sub-agent, which stands for the calls in its own run; or
what only holds calls.
"""


@dataclass(slots=True, frozen=True)
class Part:
    """One part of a run, with the places of the parts `after` which it came.

    `began` and `ended` are milliseconds, equal for what took no time. `retries` are the attempts
    after the first one, also those for which a person has started it over. `error` is the type of
    its own failure, "" for none, and for one that it has only inherited.
    """

    name: str
    kind: PartKind
    began: int = 0
    ended: int = 0
    after: tuple[int, ...] = ()
    branch: str = ""
    queue: str = ""
    retries: int = 0
    used: Usage = NO_USAGE
    error: str = ""

    @property
    def millis(self) -> int:
        """How long it was under way; nothing for a container."""
        if self.kind == "container":
            return 0
        return max(0, self.ended - self.began)


@dataclass(slots=True, frozen=True)
class Record:
    """A run. `window` is the most activities that it had under way at once, `waited` for what its
    calls have waited in milliseconds, and `asked` the times in which it waited for a person, in
    order. `speculated` is what has become of its calls made early, if it has made any.
    """

    parts: tuple[Part, ...]
    window: int
    waited: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    asked: tuple[tuple[int, int], ...] = ()
    speculated: Speculated | None = None
