"""The registry of tools and the decorator that turns functions into tools."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter

from activities.toolbox.definition import NAME, Effect, JsonSchema, Preview, Tool, ToolContext
from activities.toolbox.errors import ToolDefinitionError, UnknownTool
from workflows.messages import queues
from workflows.plan.compile.resource_locks import slots_of
from workflows.plan.language.limits import parse_duration
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
            raise _misuse(new.function, f"{taken}; give this one another with @tool(name=...)")
        self._tools[new.name] = new

    def discard(self, name: str) -> None:
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
        return [self._tools[name].describe() for name in sorted(self._tools) if self._tools[name].in_catalogue]

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._tools


default_registry = Registry()
"""Where `@tool` registers without `registry`."""


def tool(
    *,
    effect: Effect,
    name: str | None = None,
    version: str = "1",
    timeout: str = "30s",
    queue: str = queues.TOOLS,
    resource: str | None = None,
    idempotent: bool = False,
    preview: Callable[[Any], Preview] | None = None,
    large: bool = False,
    in_catalogue: bool = True,
    registry: Registry = default_registry,
) -> Callable[[Function], Function]:
    """Register a function as a tool and return it unchanged.

    The function takes `(args: Model)` or `(args: Model, context: ToolContext)`, where Model is a pydantic model, and
    may be `async`. The first paragraph of its docstring tells planners what it does; its return annotation describes
    the result. `effect` is a promise: `pure` depends on the arguments alone, `read` changes nothing, `write` does.
    Raise `version` when equal arguments give another result than before. A `write` is `idempotent` if it honours
    `context.idempotency_key`; `preview` takes its arguments and says what it would do, for the person who approves it.
    A program has the result of a `large` tool as a `Ref`, which it reads in parts: for what may take 1 MB or more.
    `resource` names what the tool uses, such as `calendar:{owner}` or `calendar`: no node uses it while another writes
    it. Raises ToolDefinitionError on misuse.
    """

    def register(function: Function) -> Function:
        properties = {
            "version": version,
            "queue": queue,
            "idempotent": idempotent,
            "preview": preview,
            "large": large,
            "in_catalogue": in_catalogue,
        }
        registry.add(_define(function, name, effect, timeout, resource, properties))
        return function

    return register


def _define(
    function: Callable[..., Any],
    name: str | None,
    effect: Effect,
    timeout: str,
    resource: str | None,
    properties: Mapping[str, Any],
) -> Tool:
    """Return the tool that `function` describes; raises ToolDefinitionError naming function and module."""
    hints = _hints(function)
    model, wants_context = _parameters(function, hints)
    name = function.__name__ if name is None else name
    if not NAME.match(name):
        raise _misuse(function, f"{name!r} cannot be a tool's name; use a letter, then letters, digits and _")
    if effect not in get_args(Effect):
        raise _misuse(function, f"effect {effect!r} is not one of pure, read, write")
    for slot in slots_of(resource or ""):
        if slot not in model.model_fields:
            raise _misuse(function, f"resource {resource!r} names {slot!r}, which is no argument")
    if properties["large"] and effect == "write":
        raise _misuse(function, "a write is not large: have a tool that reads return what is large")
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise _misuse(function, f"timeout {error}") from None
    text = inspect.getdoc(function) or function.__name__.replace("_", " ")
    return Tool(
        name=name,
        description=" ".join(text.split("\n\n", 1)[0].split()),
        effect=effect,
        timeout=seconds,
        resource=resource,
        schema=_schema(function, model, "validation"),
        output_schema=_schema(function, hints["return"], "serialization") if "return" in hints else None,
        function=function,
        arguments_model=model,
        wants_context=wants_context,
        **properties,
    )


def _misuse(function: Callable[..., Any], problem: str) -> ToolDefinitionError:
    return ToolDefinitionError(f"{function.__module__}.{function.__qualname__}: {problem}")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    if not inspect.isfunction(function):
        raise ToolDefinitionError(f"@tool takes a function, not {type(function).__name__} {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _misuse(function, "a tool returns one value; this function yields")
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise _misuse(function, f"its annotations cannot be read: {error}") from None


def _parameters(function: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[type[BaseModel], bool]:
    """Return the model of the arguments, and whether the function takes the context too."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if len(parameters) not in (1, 2) or not positional:
        raise _misuse(function, "a tool takes (args: Model) or (args: Model, context: ToolContext)")
    model = hints.get(parameters[0].name)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise _misuse(function, f"annotate {parameters[0].name!r} with a pydantic model of the arguments")
    if len(parameters) == 2 and hints.get(parameters[1].name) is not ToolContext:
        raise _misuse(function, f"annotate {parameters[1].name!r} with ToolContext")
    return model, len(parameters) == 2


def _schema(function: Callable[..., Any], annotation: Any, mode: Literal["validation", "serialization"]) -> JsonSchema:
    try:
        return TypeAdapter(annotation).json_schema(mode=mode)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        name = getattr(annotation, "__name__", str(annotation))
        raise _misuse(function, f"{name} has no JSON schema: {error.message}") from None
