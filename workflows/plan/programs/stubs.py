"""The types of what a script may call, as a `.pyi` text: for the check of its
types, and for editors.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from keyword import iskeyword
from typing import Any, get_args

from sennit.workflows.plan.language.call_settings import Effort
from sennit.workflows.plan.language.json_schema import definitions, resolve
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.vocabulary import ROLES

_LEVELS = 6
"""Types are written to so many levels; a type inside these is `Any`."""
_PARTS = 300
"""The types of a tool have so many parts; the types behind them are `Any`."""
_CHOICES = 20
"""A type with more choices is not written as a `Literal`."""
_DEFAULT_LETTERS = 40
"""A longer default is written as `...`."""
_LITERALS = (str, int, bool)
_SCALARS = (*_LITERALS, float)
_EFFECTS = {"pure": "Pure.", "read": "It only reads."}
"""What a tool does beside its answer, in words for who calls it."""
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_EFFORTS = ", ".join(map(repr, get_args(Effort)))
_LLM_PARAMETERS = (
    'role: _Role = "worker"',
    "model: str | None = None",
    "tools: list[str] = []",
    "max_turns: int = 8",
    (
        'turn: Literal["all", "first"] | dict[Literal["quorum"], int] | dict[Literal["after"], str] | '  # noqa: E501
        "None = None"
    ),
    "messages: list[dict[str, str]] = []",
    'instructions: str = ""',
    "media: Any = []",
    "max_tokens: int | None = None",
    "temperature: float | None = None",
    "top_p: float | None = None",
    "stop: str | list[str] | None = None",
    "seed: int | None = None",
    f"effort: Literal[{_EFFORTS}] | None = None",
    "system: str | None = None",
    "first_token_timeout: float | None = None",
    "idle_timeout: float | None = None",
    "timeout: float | None = None",
    "retry: int | None = None",
    "budget: dict[str, Any] | None = None",
)
_LLM = ", ".join(_LLM_PARAMETERS)
_TIMEOUT = "timeout: float | None = None"
_LIMIT = "limit: int | None = None"
_CALL_LIMITS = {"timeout": _TIMEOUT, "retry": "retry: int | None = None"}
"""What a call takes beside its arguments: how many seconds, and how often it is attempted."""
_ROLE_NAMES = ", ".join(f'"{role}"' for role in ROLES)
_WORDS = f'''\
import datetime as _datetime
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R", covariant=True)
_J = TypeVar("_J", bound=str | int | float | bool | list[Any] | dict[str, Any])
_Role = Literal[{_ROLE_NAMES}]

class Ticket(Generic[_R]):
    """A call that goes on by itself."""
    def __await__(self) -> Generator[Any, Any, _R]: ...
class Ref:
    """The result of a large tool: give it to `llm`, to tools and tasks, or return it, and it is given whole."""
    @property
    def size(self) -> int:
        """How many characters of text it has, items of a list, or else characters of JSON."""

@overload
async def llm(prompt: str, *material: Any, schema: None = None, {_LLM}) -> str:
    """Have a model answer; `material` are values it reads, `schema` is the type of its answer."""
@overload
async def llm(prompt: str, *material: Any, schema: type[_J], {_LLM}) -> _J: ...
@overload
async def llm(prompt: str, *material: Any, schema: Any, {_LLM}) -> Any: ...
async def agent(
    goal: str, *, tools: list[str] | None = None, budget: dict[str, Any] | None = None,
    workspace: dict[str, Any] | None = None, {_TIMEOUT}
) -> Any:
    """Have an agent of its own reach a goal; with a `workspace` it works in that folder and returns both, `answer` and
    `workspace`."""
@overload
async def ask(question: str, *material: Any, schema: type[_J], {_TIMEOUT}) -> _J:
    """Ask a person, and wait for the answer."""
@overload
async def ask(question: str, *material: Any, schema: Any = None, {_TIMEOUT}) -> Any: ...
async def part(ref: Ref, a: int = 0, b: int | None = None, *, {_TIMEOUT}) -> Any:
    """Return a slice of it: characters or items, from `a` up to `b`."""
async def sleep(seconds: float) -> None:
    """Wait, with nothing that runs."""
async def sleep_until(time: Any) -> None:
    """Wait until a datetime, or a time as an ISO text, in UTC if it names no zone."""
def task(function: Callable[_P, Coroutine[Any, Any, _T]], /, *args: _P.args, **arguments: _P.kwargs) -> Ticket[_T]:
    """Start a tool, or an `async def` of the script; give its arguments by name. With `timeout` it ends in so many
    seconds; the calls of a function may spend its `budget` of `tokens`, `cost_usd` and `calls`."""
async def parallel(tickets: Iterable[Ticket[_T]], *, {_LIMIT}, {_TIMEOUT}) -> list[_T]:
    """Return the values of all; raise what the first that fails raised. At most `limit` run at once."""
async def settled(tickets: Iterable[Ticket[Any]], *, {_LIMIT}, {_TIMEOUT}) -> list[dict[str, Any]]:
    """Return how each ended: `status`, and `value` or `error`."""
async def first(tickets: Iterable[Ticket[_T]], *, {_TIMEOUT}) -> _T:
    """Return the first value, and cancel the others."""
async def quorum(k: int, tickets: Iterable[Ticket[_T]], *, {_TIMEOUT}) -> list[_T]:
    """Return the first k values, in the order of their tickets, and cancel the others."""
async def next_of(tickets: Iterable[Ticket[_T]]) -> tuple[Ticket[_T], _T]:
    """Return the next ticket that ends with its value, or raise its error; each is given once."""
async def pipeline(
    items: Iterable[Any], *stages: Callable[..., Coroutine[Any, Any, Any]], {_LIMIT}, {_TIMEOUT}
) -> list[Any]:
    """Send each item through all stages; no item waits for another. At most `limit` are under way at once."""
def now() -> _datetime.datetime:
    """Return the time, in UTC without a zone, as datetime.now() does: it is recorded."""
def run_program(name: str, /, **arguments: Any) -> Ticket[Any]:
    """Start another program, by the name of its file: one beside the script, of SENNIT_PROGRAMS or of the library."""
def log(*values: Any, sep: str = " ") -> None:
    """Say something to who looks at the run, as `print` does."""
def cancel(ticket: Ticket[Any]) -> None:
    """Give up what nothing else waits for."""
def phase(name: str) -> None:
    """Begin a group of calls on the board."""
async def budget_left() -> dict[str, Any]:
    """Return what is left of `tokens`, `calls` and `cost_usd`; None is without a limit."""
async def load(role: Literal["worker", "critic", "judge"] = "worker") -> dict[str, Any]:
    """Return how many calls of a role's model are `running` in this run, and the `backlog` of its queue."""
async def width(*, per_agent_calls: int = 1, per_agent_tokens: int | None = None) -> int:
    """Return how many agents of so many model calls and tokens may run at once: by slots, budget and rate."""
'''  # noqa: E501


def stubs_of(catalogue: Iterable[Mapping[str, Any]]) -> str:
    """Return the stubs of the words, and of a catalogue's tools by name."""
    entries = sorted(catalogue, key=lambda entry: str(entry["name"]))
    return _WORDS + "".join(tool_stub(entry, has_limits=True) for entry in entries)


def tool_stub(
    entry: Mapping[str, Any],
    characters: int = 300,
    levels: int = _LEVELS,
    *,
    has_limits: bool = False,
) -> str:
    """Return the stub of a tool, "" for one that Python cannot name.

    `characters` bound its description, `levels` its types; without levels it takes any arguments.
    `has_limits` adds what any call takes.
    """
    name = entry["name"]
    if not _is_name(name):
        return ""

    parameters = "**arguments: Any"
    if levels:
        limits = _CALL_LIMITS if has_limits else {}
        parameters = ", ".join(_parameters(entry.get("schema") or {}, levels, limits))
    returned = _returned(entry, levels)

    # The description must not end the docstring that it becomes.
    about = one_line(str(entry.get("description", "")), characters)
    about = about.replace("\\", "/").replace('"""', "'")
    effect = _EFFECTS.get(str(entry.get("effect")), "It changes things.")
    docstring = f"{about} {effect}".strip()
    return f'async def {name}({parameters}) -> {returned}:\n    """{docstring}"""\n'


def _returned(entry: Mapping[str, Any], levels: int) -> str:
    """Return the type of a tool's result."""
    if entry.get("large"):
        return "Ref"
    output = entry.get("output_schema")
    if not output:
        return "Any"
    return type_of(output, definitions(output), levels)


def _parameters(schema: Schema, levels: int, limits: Mapping[str, str]) -> Iterator[str]:
    """Yield parameters in the order of the schema, and those of `limits` that the
    schema has not itself.
    """
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    names = [name for name in properties if _is_name(name)]

    # Python has no required parameter behind an optional one, unless both are given by
    # name alone, behind a `*`.
    named_only_from = _required_after_optional(names, required)
    types = _Types(definitions(schema))
    for name in names:
        if name == named_only_from:
            yield "*"
        written = f"{name}: {types.of(properties[name], levels)}"
        if name not in required:
            written += f" = {_default(properties[name])}"
        yield written

    # Limits are given by name alone too.
    own_limits: list[str] = []
    for limit, written in limits.items():
        if limit not in properties:
            own_limits.append(written)
    if own_limits and named_only_from is None:
        yield "*"
    yield from own_limits

    # Arguments that have no name in Python are given as `**{"a-b": 1}`.
    is_open = schema.get("additionalProperties", True) is not False
    if is_open or len(names) < len(properties):
        yield "**others: Any"


def _required_after_optional(names: Iterable[str], required: Collection[str]) -> str | None:
    """Return the first required parameter that stands behind an optional one."""
    has_optional = False
    for name in names:
        if name not in required:
            has_optional = True
        elif has_optional:
            return name
    return None


def _default(schema: Any) -> str:
    """Return the default of a parameter as Python writes it, `...` for none and for a long one."""
    if not isinstance(schema, dict):
        return "..."
    default = schema.get("default")
    if type(default) not in _SCALARS:
        return "..."
    written = repr(default)
    if len(written) > _DEFAULT_LETTERS:
        return "..."
    return written


def type_of(schema: Any, defs: dict[str, Any], levels: int = _LEVELS) -> str:
    """Return the type of a schema's values as Python writes it, `Any` for what it cannot
    say or only at length.
    """
    return _Types(defs).of(schema, levels)


class _Types:
    """Writes the types of one tool. It counts their parts: a schema that refers to
    itself would have too many.
    """

    def __init__(self, defs: dict[str, Any]) -> None:
        self._defs = defs
        self._parts_left = _PARTS

    def of(self, schema: Any, levels: int) -> str:
        """Return the type of a schema's values, `Any` where no levels or parts are left."""
        self._parts_left -= 1
        if not isinstance(schema, dict) or not levels or self._parts_left < 0:
            return "Any"
        schema = resolve(schema, self._defs)
        values = _choices(schema)
        if values:
            return f"Literal[{', '.join(map(repr, values))}]"

        kind = schema.get("anyOf") or schema.get("oneOf") or schema.get("type")
        inner_levels = levels - 1
        if isinstance(kind, list):
            return self._union(schema, kind, inner_levels)
        if kind == "array":
            item = self.of(schema.get("items"), inner_levels)
            return f"list[{item}]"
        if kind == "object":
            # Fields of one dict differ in their types, but for fields that may have any name.
            value_schema = None
            if not schema.get("properties"):
                value_schema = schema.get("additionalProperties")
            value = self.of(value_schema, inner_levels)
            return f"dict[str, {value}]"
        return _TYPES.get(str(kind), "Any")

    def _union(self, schema: Schema, alternatives: list[Any], levels: int) -> str:
        """Return the type of values that fit one of several schemas, or one of
        several names of types.
        """
        types = []
        for alternative in alternatives[: self._parts_left + 1]:
            if not isinstance(alternative, dict):
                alternative = {**schema, "type": alternative}
            types.append(self.of(alternative, levels))
        if "Any" in types:
            return "Any"
        return " | ".join(dict.fromkeys(types))


def _choices(schema: Schema) -> list[Any]:
    """Return the only values that a schema allows, none if it allows others or
    `Literal` cannot say them.
    """
    values = schema.get("enum")
    if "const" in schema:
        values = [schema["const"]]
    if not isinstance(values, list) or len(values) > _CHOICES:
        return []
    if any(type(value) not in _LITERALS for value in values):
        return []
    return values


def _is_name(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)
