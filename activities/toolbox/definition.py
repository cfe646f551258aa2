"""Turns a Python function into a `Tool`, and refuses what cannot be one."""

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args, get_type_hints

from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from activities.toolbox.context import ToolContext
from activities.toolbox.errors import ToolArgumentError, ToolDefinitionError, ToolResultError
from workflows.plan.compile.resource_locks import slots_of
from workflows.plan.language.json_schema import violations
from workflows.plan.language.limits import parse_duration
from workflows.plan.language.problems import place_of
from workflows.plan.language.text import nearest_or_known

Effect = Literal["pure", "read", "write"]
JsonSchema = dict[str, Any]

_EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Tool:
    """A typed function that a plan can call by name."""

    name: str
    description: str
    effect: Effect
    version: str
    timeout: float
    """Seconds one attempt may take; whoever runs the call enforces it."""
    queue: str
    """The task queue whose workers run it."""
    resource: str | None
    """What it uses and a write must not meet: `kind:key` with arguments as `{name}`, or a kind; see plan/resources."""
    idempotent: bool
    """Whether a write honours `ToolContext.idempotency_key`, so that a second attempt does no harm."""
    schema: JsonSchema
    """JSON Schema of the arguments."""
    output_schema: JsonSchema | None
    """JSON Schema of the result, or None when the function does not say."""
    function: Callable[..., Any] = field(repr=False)
    arguments_model: type[BaseModel] | None = field(repr=False)
    """What the arguments are made into; None: they stay an object that fits the schema."""
    wants_context: bool = field(repr=False)
    listed: bool = True
    """Whether catalogues have it; a tool that only the engine gives to models is in none."""

    @property
    def harmful(self) -> bool:
        """Whether a second attempt may do what the first has done already."""
        return self.effect == "write" and not self.idempotent

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Check the arguments, run the function once and return its result as a JSON value.

        A synchronous function runs in a worker thread: cancelling the call abandons that thread, it does not
        stop it. Raises ToolArgumentError before anything ran, ToolResultError after it, and whatever the
        function itself raises.
        """
        checked = self._check(arguments)
        inputs = (checked, context) if self.wants_context else (checked,)
        if inspect.iscoroutinefunction(self.function):
            result = await self.function(*inputs)
        else:
            result = await asyncio.to_thread(self.function, *inputs)
        return self._json_value(result)

    def describe(self) -> dict[str, Any]:
        """Return the entry of this tool in a catalogue: JSON, the same for the same definition."""
        return {
            "name": self.name,
            "description": self.description,
            "effect": self.effect,
            "version": self.version,
            "timeout": self.timeout,
            "queue": self.queue,
            "resource": self.resource,
            "idempotent": self.idempotent,
            "schema": self.schema,
            "output_schema": self.output_schema,
        }

    def _check(self, arguments: Mapping[str, Any]) -> BaseModel | dict[str, Any]:
        if self.arguments_model is None:
            for path, problem in violations(dict(arguments), self.schema):
                place = place_of(path)
                raise ToolArgumentError(f"{self.name}: {place}: {problem}", field=place, problem=problem)
            return dict(arguments)
        try:
            return self.arguments_model.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            problem = first["msg"].removeprefix("Value error, ")
            if first["type"] == "extra_forbidden":
                known = sorted(self.schema.get("properties", ()))
                problem = f"not an argument of {self.name}{nearest_or_known(place, known)}"
            more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
            where = f"{place}: " if place else ""
            message = f"{self.name}: {where}{problem}{more}"
            raise ToolArgumentError(message, field=place, problem=problem) from None

    def _json_value(self, result: object) -> Any:
        try:
            value = to_jsonable_python(result)
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            message = f"{self.name} returned a {type(result).__name__} that JSON cannot carry: {error}"
            raise ToolResultError(message) from error
        return value


def define(
    function: Callable[..., Any],
    *,
    name: str | None,
    effect: str,
    version: str,
    timeout: str,
    queue: str,
    resource: str | None,
    idempotent: bool,
    listed: bool = True,
) -> Tool:
    """Return the tool that `function` describes; raises ToolDefinitionError naming function and module."""
    hints = _hints(function)
    model, wants_context = _parameters(function, hints)
    chosen = function.__name__ if name is None else name
    if not NAME.match(chosen):
        raise misuse(function, f"{chosen!r} cannot be a tool's name; use a letter, then letters, digits and _")
    known = next((each for each in _EFFECTS if each == effect), None)
    if known is None:
        raise misuse(function, f"effect {effect!r} is not one of pure, read, write")
    for slot in slots_of(resource or ""):
        if slot not in model.model_fields:
            raise misuse(function, f"resource {resource!r} names {slot!r}, which is no argument")
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise misuse(function, f"timeout {error}") from None
    return Tool(
        name=chosen,
        description=_description(function),
        effect=known,
        version=version,
        timeout=seconds,
        queue=queue,
        resource=resource,
        idempotent=idempotent,
        schema=_schema(function, model, "validation"),
        output_schema=_schema(function, hints["return"], "serialization") if "return" in hints else None,
        function=function,
        arguments_model=model,
        wants_context=wants_context,
        listed=listed,
    )


def misuse(function: Callable[..., Any], problem: str) -> ToolDefinitionError:
    """Return the error that names `function`, its module and the problem."""
    return ToolDefinitionError(f"{function.__module__}.{function.__qualname__}: {problem}")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    if not inspect.isfunction(function):
        kind = type(function).__name__
        raise ToolDefinitionError(f"@tool takes a function, not {kind} {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise misuse(function, "a tool returns one value; this function yields")
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise misuse(function, f"its annotations cannot be read: {error}") from None


def _parameters(function: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[type[BaseModel], bool]:
    parameters = list(inspect.signature(function).parameters.values())
    if not 1 <= len(parameters) <= 2 or any(
        p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters
    ):
        raise misuse(function, "a tool takes (args: Model) or (args: Model, context: ToolContext)")
    first = hints.get(parameters[0].name)
    if not (isinstance(first, type) and issubclass(first, BaseModel)):
        raise misuse(function, f"annotate {parameters[0].name!r} with a pydantic model of the arguments")
    if len(parameters) == 2 and hints.get(parameters[1].name) is not ToolContext:
        raise misuse(function, f"annotate {parameters[1].name!r} with ToolContext")
    return first, len(parameters) == 2


def _description(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or function.__name__.replace("_", " ")
    return " ".join(text.split("\n\n", 1)[0].split())


def _schema(function: Callable[..., Any], annotation: Any, mode: Literal["validation", "serialization"]) -> JsonSchema:
    try:
        return TypeAdapter(annotation).json_schema(mode=mode)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        shown = getattr(annotation, "__name__", str(annotation))
        raise misuse(function, f"{shown} has no JSON schema: {error.message}") from None
