"""What a model call is, whichever provider serves it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from workflows.plan.model import Role


class ProviderError(Exception):
    """A model call that failed. `retryable` says whether the same call may succeed later.

    The class name is the error type that people see; the message is at most 500 characters, useful words first.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message[:500])
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call used; `cost` in millionths of a US dollar."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `prompt` is the bound text; `template` is the same before references were replaced.

    `inputs` maps each referenced node id to its whole output, in the order of the references. `tools` is the
    catalogue that a planner may use.
    """

    role: Role
    model: str
    goal: str
    prompt: str
    template: str
    inputs: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`output` is the JSON value the node gets: text, or an object when the role or a schema asks for one."""

    output: Any
    usage: Usage = Usage()


class Provider(Protocol):
    """Serves model calls. Never retries by itself: Temporal owns retries."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises ProviderError."""
        ...
