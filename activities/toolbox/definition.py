"""What a tool is: a typed function that a plan can call by name."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sennit.activities.limits import MAX_KEPT_TYPES_BYTES
from sennit.activities.toolbox.batch import seat
from sennit.activities.toolbox.errors import BadOutput, ToolArgumentError, ToolExit, ToolResultError
from sennit.activities.toolbox.isolation import run_isolated
from sennit.activities.toolbox.redaction import mask
from sennit.activities.toolbox.signature import Signature
from sennit.activities.toolbox.threads import tool_threads
from sennit.activities.toolbox.workspaces import NO_WORKSPACES, Workspaces
from sennit.workflows.messages import queues
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.problems import place_of
from sennit.workflows.plan.language.validation_messages import first_error
from sennit.workflows.plan.language.workspaces import mentions_workspace

FRESH_SECONDS: Final = 60.0
Effect = Literal["pure", "read", "write"]
JsonSchema = dict[str, Any]

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")
_DESCRIBED: Final = (
    "name", "description", "effect", "version", "timeout", "queue", "resource", "idempotent",
    "schema", "output_schema",
)  # fmt: skip


_JSON: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def _say_nothing(_: str) -> None:
    """Report no progress."""


class Spend(Protocol):
    """Books what a call has used."""

    def __call__(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """Raises ValueError for an amount below zero, or one that is no number."""


def _spend_nothing(*, tokens: int = 0, cost: float = 0.0) -> None:
    """Book nothing."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The surroundings of one call; the same for every attempt of a node, except `attempt`.

    `idempotency_key` is equal for all attempts of one generation of a node, so a tool that writes
    can pass it to a service that honours such keys.
    """

    docs: Path | None
    """Root of the documents, or None when the run has none."""
    cache: Path
    """A writable folder that outlives the call; anything in it may vanish
    and must be rebuildable.
    """
    run_id: str
    node: str
    """Path of the node, such as `n7` or `n5[17]`."""
    generation: int
    attempt: int
    idempotency_key: str
    progress: Callable[[str], None]
    """Reports one line of progress; cheap, may be called often and from any thread."""
    warn: Callable[[str], None] = _say_nothing
    """Adds a warning to the run, from any thread; the same one counts once."""
    spent: Spend = _spend_nothing
    """Books tokens, and a cost in US dollars, that the call has used elsewhere: for the run's
    budget and its report. From any thread, and as often as there is something to add. It counts
    also if the call fails or its worker dies.
    """
    workspaces: Workspaces = NO_WORKSPACES
    """Opens the workspaces that the call is given, and keeps those that it returns."""
    agents_above: int = 0
    """How many agents have asked each other before this run: for a tool that `asks_agents`."""


class Preview(NamedTuple):
    """What a write would do, for the person who approves it: `text` to read, and the digest of
    what it would replace.

    If that has another digest when the write is to run, the person is asked again.
    """

    text: str
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A typed function that a plan can call by name."""

    name: str
    description: str
    effect: Effect
    version: str = "1"
    timeout: float
    """Seconds that one attempt may take; the caller enforces it."""
    typical: float = 0.0
    """Seconds that a call usually takes; 0 where nobody says."""
    queue: str = queues.TOOLS
    """The task queue whose workers run it."""
    resource: str | None = None
    """What a call uses and no write may touch meanwhile: `kind:key` with arguments
    as `{name}`, or a kind.
    """
    idempotent: bool = False
    """Whether a write honours `ToolContext.idempotency_key`, so that a
    second attempt does no harm.
    """
    schema: JsonSchema
    """JSON Schema of the arguments."""
    output_schema: JsonSchema | None
    """JSON Schema of the result, or None when the function has no return annotation."""
    function: Callable[..., Any] = field(repr=False)
    signature: Signature | None = field(default=None, repr=False)
    """How the function takes the arguments; None if it takes an object that fits the
    schema, and the context.
    """
    preview: Callable[..., Preview] | None = field(default=None, repr=False)
    """Says what a write would do; takes the arguments as the function does. Without it a
    person is shown these.
    """
    batch: Callable[[list[Any]], Awaitable[Any]] | None = field(default=None, repr=False)
    """Makes several calls at once: takes their arguments, and returns a result or an
    exception for each, in order.
    """
    batch_size: int = 100
    """How many calls `batch` takes at most."""
    hint: str = ""
    """What the operator may want to change about it."""
    large: bool = False
    """Whether a program gets a reference to its result, and reads it in parts."""
    may_change: bool = False
    """Whether its definition is that of a server, which may change it while a run goes on."""
    early: bool = False
    """Whether a call that only reads may be made before a person has decided
    on what comes before it.
    """
    fresh_for: float = FRESH_SECONDS
    """Seconds for which the output of a call that was made early may be used."""
    asks_agents: bool = False
    """Whether it asks agents that may ask this one again."""
    in_catalogue: bool = True
    """False for a tool that only the engine gives to models."""

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function. A plain one needs a thread of its own."""
        return iscoroutinefunction(self.function)

    async def call(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,
        limit: asyncio.Timeout | None = None,
        *,
        isolated: bool = False,
    ) -> Any:
        """Check the arguments, run the function and return its result as a JSON
        value without secrets.

        A tool with a batch form is called by that, with the calls of other nodes that are ready in
        the same activity. All of that happens in the threads of tools, or for a user's tool in a
        process of its own if it is to be `isolated`. A plain function in a thread cannot be
        stopped: cancelling its call only gives up its thread. While another tool blocks the loop of
        a coroutine function, the time of `limit` stops, and the call may begin again if its effect
        allows that. Raises ToolArgumentError before anything ran, ToolResultError or BadOutput
        after it, ToolExit, LoopBlocked and WorkerLost as `threads` and `isolation` say, and
        whatever the function raises.
        """
        place = seat()
        if place is not None and self.batch is not None and not isolated:
            return await place.call(self, self.check(arguments))
        if place is not None:
            place.leave()
        if isolated and self._can_be_sent and not self._works_in_folders:
            quiet = replace(
                context,
                progress=_say_nothing,
                warn=_say_nothing,
                spent=_spend_nothing,
                workspaces=NO_WORKSPACES,
            )
            sent = replace(self, preview=None, batch=None)
            return await run_isolated(
                partial(sent._run_anywhere, dict(arguments), quiet), self.name, limit
            )
        if not self.is_async:
            return await tool_threads.run(partial(self._run, arguments, context), self.name)
        node = f"node {context.node} of run {context.run_id}"
        work = partial(self._run_async, arguments, context)
        repeatable = self.effect != "write" or self.idempotent
        return await tool_threads.run_async(work, self.name, node, limit, repeatable=repeatable)

    async def call_batch(self, calls: list[Any]) -> list[Any]:
        """Return for each of these checked arguments the result as a JSON value, or the
        exception it failed with.

        Raises what the batch form raises, and ToolResultError if it does not return
        a result for each call.
        """
        return await tool_threads.run_async(
            partial(self._run_batch, calls),
            self.name,
            f"a batch of {len(calls)} calls",
            repeatable=True,
        )

    async def _run_batch(self, calls: list[Any]) -> list[Any]:
        assert self.batch is not None
        results = await self.batch(calls)
        if not isinstance(results, list) or len(results) != len(calls):
            what = f"a {type(results).__name__}"
            if isinstance(results, list):
                what = f"{len(results)} results"
            raise ToolResultError(
                f"the batch form of {self.name} returned {what} for {len(calls)} calls"
            )
        return [self._end(result) for result in results]

    def _end(self, result: Any) -> Any:
        if isinstance(result, StopIteration):  # no future can carry it
            return ToolExit(f"it returned {result!r}")
        try:
            if isinstance(result, Exception):
                return result
            return self._value(result)
        except Exception as error:  # noqa: BLE001  of the code behind its type; the other calls have their results
            return error

    @property
    def _can_be_sent(self) -> bool:
        """Whether another process finds the function by its name. Ours can stay; they do
        not end their process.
        """
        home = self.function.__module__
        found = getattr(sys.modules.get(home), self.function.__qualname__, None)
        return found is self.function and not home.startswith("sennit.activities.")

    @property
    def _works_in_folders(self) -> bool:
        """Whether it is given or returns workspaces: another process has no artifact store."""
        return mentions_workspace(self.schema) or mentions_workspace(self.output_schema)

    def _run_anywhere(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        if self.is_async:
            return asyncio.run(self._run_async(arguments, context))
        return self._run(arguments, context)

    def _run(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        positional, named = self.passed(self.check(arguments), context)
        return self._value(self.function(*positional, **named))

    async def _run_async(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        positional, named = self.passed(self.check(arguments), context)
        return self._value(await self.function(*positional, **named))

    def passed(
        self, checked: Any, context: ToolContext | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the function is called with, or without a context its preview,
        for checked arguments.
        """
        if self.signature is not None:
            return self.signature.passed(checked, context)
        if context is None:
            return (checked,), {}
        return (checked, context), {}

    def _value(self, result: Any) -> Any:
        returned = _type_of(self.function)
        if returned is None:
            return self._json(result)
        try:
            typed = returned.validate_python(result)
        except ValidationError as error:
            place, problem = first_error(error, ())
            where = ""
            if place:
                where = f"{place}: "
            what = "None"
            if result is not None:
                what = f"a value of type {type(result).__name__}"
            message = (
                f"{self.name} returned {what}, which is not what it declares: {where}{problem}"
            )
            raise BadOutput(message, self._json(result)) from None
        return self._json(typed)

    def _json(self, result: Any) -> Any:
        try:
            value = to_jsonable_python(result)
            written = _JSON.encode(value)
            written.encode()
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            message = (
                f"{self.name} returned a {type(result).__name__} that JSON cannot carry: {error}"
            )
            raise ToolResultError(message) from error
        return mask(value, written)

    def describe(self) -> dict[str, Any]:
        """Return the catalogue entry of this tool: JSON, the same for the same definition."""
        entry = {name: getattr(self, name) for name in _DESCRIBED}
        extra = {
            "hint": self.hint,
            "large": self.large,
            "typical": self.typical,
            "early": self.early,
        }
        entry |= {name: value for name, value in extra.items() if value}
        if self.fresh_for != FRESH_SECONDS:
            entry["fresh_for"] = self.fresh_for
        return entry

    def check(self, arguments: Mapping[str, Any]) -> BaseModel | dict[str, Any]:
        """Return the arguments as the function, or its signature, takes them.
        Raises ToolArgumentError.
        """
        if self.signature is None:
            for path, problem in violations(dict(arguments), self.schema):
                raise ToolArgumentError(problem, tool=self.name, field=place_of(path))
            return dict(arguments)
        try:
            return self.signature.model.model_validate(arguments)
        except ValidationError as error:
            place, problem = first_error(error, self.schema.get("properties", ()))
            raise ToolArgumentError(problem, tool=self.name, field=place) from None


_TYPE_BYTES: Final = 32_768
"""Of the type of a result, with what checks it; 5 to 30 KB were measured for
a model of ten fields.
"""
_TYPES = BoundedCache[Callable[..., Any], TypeAdapter[Any] | None](
    MAX_KEPT_TYPES_BYTES, lambda _: _TYPE_BYTES
)


def _type_of(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    """Return the type that a function declares for its result; None without one, and for
    `Any`, `object` and `dict`.
    """
    return _TYPES.get_or_make(function, lambda: _declared_type(function))


def _declared_type(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    returned = get_type_hints(function, include_extras=True).get("return", Any)
    if returned in (Any, object, dict):
        return None
    return TypeAdapter(returned)
