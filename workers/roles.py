"""The roles of workers: what each kind serves. Scaling a role scales its
queues and nothing else.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from sennit.workflows.messages import queues

QueueKind = Literal["workflows", "tools", "llm", "sandbox"]


@dataclass(frozen=True, slots=True)
class QueueBinding:
    """One Temporal worker: a task queue, the kind of work it serves there, and
    how many tasks at once.

    For workflows `slots` counts workflow tasks. They are few, because workflow tasks share one
    interpreter, and the server waits two seconds for each.
    """

    queue: str
    kind: QueueKind
    slots: int


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of worker process: the queues that it serves together."""

    name: str
    bindings: tuple[QueueBinding, ...]

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(binding.queue for binding in self.bindings)

    def without(self, kind: QueueKind) -> "Role":
        return replace(self, bindings=tuple(each for each in self.bindings if each.kind != kind))

    def serves(self, *kinds: QueueKind) -> bool:
        return any(binding.kind in kinds for binding in self.bindings)


_WORKFLOW = (QueueBinding(queues.WORKFLOW, "workflows", 16),)
_LLM = tuple(QueueBinding(queues.llm_queue(model), "llm", 100) for model in queues.PROVIDERS)
_TOOLS = (QueueBinding(queues.TOOLS, "tools", 100),)
_SANDBOX = (QueueBinding(queues.SANDBOX, "sandbox", 8),)

ROLES = MappingProxyType(
    {
        "all": Role("all", (*_WORKFLOW, *_LLM, *_TOOLS, *_SANDBOX)),
        "workflow": Role("workflow", _WORKFLOW),
        "llm": Role("llm", _LLM),
        "tools": Role("tools", _TOOLS),
        "sandbox": Role("sandbox", _SANDBOX),
    }
)


class UnknownRole(Exception):
    """A role that does not exist. The message is one line with the roles there are."""


def role_named(name: str) -> Role:
    if name in ROLES:
        return ROLES[name]
    raise UnknownRole(f"role {name!r} is unknown; there are {', '.join(ROLES)}")
