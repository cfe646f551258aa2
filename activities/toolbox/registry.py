"""The registry of tools and the decorator that fills it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from activities.toolbox.definition import Effect, Tool, define, misuse
from activities.toolbox.errors import UnknownTool
from workflows.messages import queues
from workflows.plan.language.text import nearest_or_known

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry:
    """Tools by name; a name belongs to one tool."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            self.add(each)

    def add(self, new: Tool) -> None:
        """Register `new`; raises ToolDefinitionError when its name is taken."""
        if new.name in self._tools:
            other = self._tools[new.name].function
            taken = f"the name {new.name!r} is taken by {other.__module__}.{other.__qualname__}"
            raise misuse(new.function, f"{taken}; give this one another with @tool(name=...)")
        self._tools[new.name] = new

    def discard(self, name: str) -> None:
        """Forget the tool of that name, if there is one."""
        self._tools.pop(name, None)

    def get(self, name: str) -> Tool:
        """Return the tool of that name; raises UnknownTool with the nearest name."""
        try:
            return self._tools[name]
        except KeyError:
            message = f"no tool is called {name[:80]!r}{nearest_or_known(name, sorted(self._tools))}"
            raise UnknownTool(message) from None

    def catalogue(self) -> list[dict[str, Any]]:
        """Return what planners and validators need to know of every tool, sorted by name."""
        return [self._tools[name].describe() for name in sorted(self._tools) if self._tools[name].listed]

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


default_registry = Registry()
"""Where `@tool` registers unless told otherwise."""


def tool(
    *,
    effect: Effect,
    name: str | None = None,
    version: str = "1",
    timeout: str = "30s",
    queue: str = queues.TOOLS,
    resource: str | None = None,
    idempotent: bool = False,
    listed: bool = True,
    registry: Registry = default_registry,
) -> Callable[[Function], Function]:
    """Register a function as a tool and return it unchanged.

    The function takes `(args: Model)` or `(args: Model, context: ToolContext)`, where Model is a pydantic
    model, and may be `async`. The first paragraph of its docstring tells planners what it does, and its return
    annotation what comes out. `effect` is a promise: `pure` depends on the arguments alone, `read` changes
    nothing, `write` does. Raise `version` when equal arguments give another result than before. A `write` is
    `idempotent` if it honours `context.idempotency_key`. `resource` names what the tool uses, such as
    `calendar:{owner}` or `calendar`: no node runs while another writes the same. One that is not `listed` is in no
    catalogue. Raises ToolDefinitionError on misuse.
    """

    def register(function: Function) -> Function:
        made = define(
            function,
            name=name,
            effect=effect,
            version=version,
            timeout=timeout,
            queue=queue,
            resource=resource,
            idempotent=idempotent,
            listed=listed,
        )
        registry.add(made)
        return function

    return register
