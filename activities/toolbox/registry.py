"""The registry of tools and the decorator that turns functions into tools."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter

from sennit.activities.toolbox.definition import (
    NAME,
    Effect,
    JsonSchema,
    Preview,
    Tool,
    ToolContext,
)
from sennit.activities.toolbox.errors import McpUnavailable, UnknownTool
from sennit.activities.toolbox.signature import hints_of, misuse, read_signature
from sennit.workflows.messages import queues
from sennit.workflows.plan.compile.resource_locks import slots_of
from sennit.workflows.plan.language.limits import parse_duration
from sennit.workflows.plan.language.problems import no_such_tool

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry:
    """Tools by name; a name belongs to one tool. Tools may come later, from any thread.

    `absences` says why tools are not here now, by the beginning of their names, and `left_out` why
    some are not offered, and never will be, by name.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self.absences: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        for each in tools:
            self.add(each)

    def add(self, new: Tool) -> None:
        """Register `new`; raises ToolDefinitionError when its name is taken."""
        if new.name in self._tools:
            other = self._tools[new.name].function
            taken = f"the name {new.name!r} is taken by {other.__module__}.{other.__qualname__}"
            raise misuse(new.function, f"{taken}; give this one another with @tool(name=...)")
        self._tools = {**self._tools, new.name: new}

    def discard(self, name: str) -> None:
        self.exchange([name], [])

    def exchange(self, old: Collection[str], new: Iterable[Tool]) -> None:
        """Put tools in the place of others in one step, so that no reader misses one that is among
        both. Their names must be free, or among the old ones.
        """
        tools = {name: tool for name, tool in self._tools.items() if name not in old}
        for tool in new:
            tools[tool.name] = tool
        self._tools = tools

    def set_absent(self, prefix: str, reason: str) -> None:
        """Say why the tools whose names begin with `prefix` are not here now;
        with no reason they are.
        """
        absences = {name: why for name, why in self.absences.items() if name != prefix}
        if reason:
            absences[prefix] = reason
        self.absences = absences

    def leave_out(self, reasons: Mapping[str, str], prefix: str | None = None) -> None:
        """Say why tools that somebody declares are not offered; with a `prefix`, of
        all whose names begin so.
        """
        left_out = dict(self.left_out)
        if prefix is not None:
            left_out = {name: why for name, why in left_out.items() if not name.startswith(prefix)}
        self.left_out = left_out | dict(reasons)

    def get(self, name: str) -> Tool:
        """Return the tool of that name. Raises McpUnavailable if it may come, else
        UnknownTool with the nearest.
        """
        try:
            return self._tools[name]
        except KeyError:
            reason = absence_of(name, self.absences)
            if reason:
                raise McpUnavailable(f"{name}: unavailable: {reason}", retryable=True) from None
            raise UnknownTool(no_such_tool(name, self._tools)) from None

    def catalogue(self) -> list[dict[str, Any]]:
        """Return what planners and validators need to know of every tool, sorted by name."""
        in_catalogue = [tool for tool in self._tools.values() if tool.in_catalogue]
        return [tool.describe() for tool in sorted(in_catalogue, key=attrgetter("name"))]

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def absence_of(name: str, absences: Mapping[str, str]) -> str:
    """Return why the tool of that name is not there now; nothing if no tool of that
    name is known to come.
    """
    found = [prefix for prefix in absences if name.startswith(prefix)]
    if not found:
        return ""
    return absences[max(found, key=len)]


default_registry = Registry()
"""Where `@tool` registers without `registry`."""


def tool(
    *,
    effect: Effect,
    name: str | None = None,
    version: str = "1",
    timeout: str = "30s",
    typical: str = "",
    queue: str = queues.TOOLS,
    resource: str | None = None,
    idempotent: bool = False,
    preview: Callable[..., Preview] | None = None,
    large: bool = False,
    batch: Callable[..., Any] | None = None,
    batch_size: int = 100,
    early: bool = False,
    fresh_for: str = "60s",
    in_catalogue: bool = True,
    registry: Registry = default_registry,
) -> Callable[[Function], Function]:
    """Register a function as a tool and return it unchanged.

    The parameters of the function are the arguments of the tool, with their names, types and
    defaults. Or it has one, `(args: Model)`, and the fields of that pydantic model are. Besides,
    one may be a `ToolContext`. The function may be `async`. The first paragraph of its docstring
    tells planners what it does; its return annotation describes the result. `effect` is a promise:
    `pure` depends on the arguments alone, `read` changes nothing, `write` does. Raise `version`
    when equal arguments give another result than before. A `write` is `idempotent` if it honours
    `context.idempotency_key`; `preview`, which takes the same arguments without the context, says
    what it would do, for the person who approves it. `typical` is how long a call usually takes,
    such as `50ms`: several calls that only read and take up to a second share an activity, so that
    1,000 of them take little longer than one. Without it, what workers have measured counts. A
    program has the result of a `large` tool as a `Ref`, which it reads in parts: for what may take
    1 MB or more. `batch` makes up to `batch_size` calls at once, for a `pure` or `read` tool whose
    function is `async`: calls that are ready together in one activity go to it together. It takes a
    list of what the function takes, `args` or an object with the arguments as its attributes, has
    no context, and returns a list with a result or an exception for each call. If it raises, each
    of these calls has failed, and may be tried again. A call that is `pure`, or that reads, may be
    made before it is asked for (docs/speculation.md); its output is used within `fresh_for`. With
    `early` that also holds while a person still has to decide. `resource` names what the tool uses,
    such as `calendar:{owner}` or `calendar`: no node uses it while another writes it. Raises
    ToolDefinitionError on misuse.
    """

    def register(function: Function) -> Function:
        properties = {
            "version": version,
            "queue": queue,
            "idempotent": idempotent,
            "preview": preview,
            "large": large,
            "batch": batch,
            "batch_size": batch_size,
            "early": early,
            "fresh_for": fresh_for,
            "in_catalogue": in_catalogue,
        }
        registry.add(_define(function, name, effect, timeout, typical, resource, properties))
        return function

    return register


def _define(
    function: Callable[..., Any],
    name: str | None,
    effect: Effect,
    timeout: str,
    typical: str,
    resource: str | None,
    properties: Mapping[str, Any],
) -> Tool:
    """Return the tool that `function` describes; raises ToolDefinitionError
    naming function and module.
    """
    hints = hints_of(function)
    signature = read_signature(function, ToolContext)
    schema = _schema(function, signature.model, "validation")
    name = function.__name__ if name is None else name
    if not NAME.match(name):
        raise misuse(
            function, f"{name!r} cannot be a tool's name; use a letter, then letters, digits and _"
        )
    if effect not in get_args(Effect):
        raise misuse(function, f"effect {effect!r} is not one of pure, read, write")
    for slot in slots_of(resource or ""):
        if slot not in schema.get("properties", {}):
            raise misuse(function, f"resource {resource!r} names {slot!r}, which is no argument")
    if properties["batch"] is not None and (
        effect == "write" or not inspect.iscoroutinefunction(function)
    ):
        raise misuse(function, "only an async function that is pure or reads has a batch form")
    if properties["batch"] is not None and not inspect.iscoroutinefunction(properties["batch"]):
        raise misuse(function, "its batch form is no async function")
    if properties["batch_size"] < 1:
        raise misuse(function, f"batch_size is {properties['batch_size']}; write at least 1")
    if properties["large"] and effect == "write":
        raise misuse(function, "a write is not large: have a tool that reads return what is large")
    if properties["early"] and effect == "write":
        raise misuse(function, "a write is never made early")
    text = inspect.getdoc(function) or function.__name__.replace("_", " ")
    return Tool(
        name=name,
        description=" ".join(text.split("\n\n", 1)[0].split()),
        effect=effect,
        timeout=_seconds(function, "timeout", timeout),
        typical=_seconds(function, "typical", typical) if typical else 0.0,
        resource=resource,
        schema=schema,
        output_schema=_schema(function, hints["return"], "serialization")
        if "return" in hints
        else None,
        function=function,
        signature=signature,
        **{**properties, "fresh_for": _seconds(function, "fresh_for", properties["fresh_for"])},
    )


def _seconds(function: Callable[..., Any], name: str, text: str) -> float:
    """Return a duration that somebody has written. Raises ToolDefinitionError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise misuse(function, f"{name} {error}") from None


def _schema(
    function: Callable[..., Any], annotation: Any, mode: Literal["validation", "serialization"]
) -> JsonSchema:
    try:
        return TypeAdapter(annotation).json_schema(mode=mode)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        name = getattr(annotation, "__name__", str(annotation))
        raise misuse(function, f"{name} has no JSON schema: {error.message}") from None
