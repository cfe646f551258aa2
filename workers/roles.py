"""The role table: what each kind of worker serves. Scaling a role scales its queues and nothing else."""

from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Literal

from activities.providers.settings import PROVIDERS
from workflows import queues

Serves = Literal["runs", "tools", "llm"]


@dataclass(frozen=True, slots=True)
class Seat:
    """One Temporal worker: a queue, what is served on it, and how many tasks at once.

    Slots of `runs` count workflow tasks. They are few, because workflow tasks share one interpreter and the server's
    patience with each of them is two seconds.
    """

    queue: str
    serves: Serves
    slots: int


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of worker process: the seats it takes together."""

    name: str
    seats: tuple[Seat, ...]

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues it polls, in table order."""
        return tuple(seat.queue for seat in self.seats)

    def serves(self, *kinds: Serves) -> bool:
        """Whether any seat serves one of `kinds`."""
        return any(seat.serves in kinds for seat in self.seats)


_BUILT = {
    "workflow": (Seat(queues.WORKFLOW, "runs", 16),),
    "llm": tuple(Seat(queues.llm_queue(model), "llm", 100) for model in PROVIDERS),
    "tools": (Seat(queues.TOOLS, "tools", 100),),
}
_NOT_BUILT = ("sandbox",)

ROLES = MappingProxyType(
    {name: Role(name, seats) for name, seats in (("all", tuple(chain(*_BUILT.values()))), *_BUILT.items())}
)


class UnknownRole(Exception):
    """A role nobody built. The message is one line with the roles there are."""


def role_named(name: str) -> Role:
    """Return the role called `name`; raises UnknownRole."""
    if name in ROLES:
        return ROLES[name]
    why = "is not built yet" if name in _NOT_BUILT else "is unknown"
    raise UnknownRole(f"role {name!r} {why}; there are {', '.join(ROLES)}")
