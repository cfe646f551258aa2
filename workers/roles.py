"""The role table: what each kind of worker serves. Scaling a role scales its queues and nothing else."""

from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Literal

from activities.providers.settings import PROVIDERS
from workflows.messages import queues

Serves = Literal["runs", "tools", "llm", "sandbox"]


@dataclass(frozen=True, slots=True)
class QueueBinding:
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
    seats: tuple[QueueBinding, ...]

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues it polls, in table order."""
        return tuple(seat.queue for seat in self.seats)

    def without(self, kind: Serves) -> "Role":
        """Return the role without its seats of that kind."""
        return replace(self, seats=tuple(seat for seat in self.seats if seat.serves != kind))

    def serves(self, *kinds: Serves) -> bool:
        """Whether any seat serves one of `kinds`."""
        return any(seat.serves in kinds for seat in self.seats)


_BUILT = {
    "workflow": (QueueBinding(queues.WORKFLOW, "runs", 16),),
    "llm": tuple(QueueBinding(queues.llm_queue(model), "llm", 100) for model in PROVIDERS),
    "tools": (QueueBinding(queues.TOOLS, "tools", 100),),
    "sandbox": (QueueBinding(queues.SANDBOX, "sandbox", 8),),
}

ROLES = MappingProxyType(
    {name: Role(name, seats) for name, seats in (("all", tuple(chain(*_BUILT.values()))), *_BUILT.items())}
)


class UnknownRole(Exception):
    """A role nobody built. The message is one line with the roles there are."""


def role_named(name: str) -> Role:
    """Return the role called `name`; raises UnknownRole."""
    if name in ROLES:
        return ROLES[name]
    raise UnknownRole(f"role {name!r} is unknown; there are {', '.join(ROLES)}")
