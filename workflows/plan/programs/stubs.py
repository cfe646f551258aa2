"""The types of what a script may call, as a `.pyi` text: for the check of its types, and for editors."""

from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword
from typing import Any, get_args

from sennit.workflows.plan.language.call_settings import Effort
from sennit.workflows.plan.language.json_schema import definitions, resolve
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.vocabulary import ROLES

_LEVELS = 6
_PARTS = 300
"""So many parts of the types of a tool are written; what comes after them is `Any`."""
_CHOICES = 20
_WIDTH = 40
_LITERALS = (str, int, bool)
_SCALARS = (*_LITERALS, float)
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_LLM = 'role: _Role = "worker", model: str | None = None, tools: list[str] = [], max_turns: int = 8, '
_LLM += 'turn: Literal["all", "first"] | dict[Literal["quorum"], int] | dict[Literal["after"], str] | None = None, '
_LLM += 'messages: list[dict[str, str]] = [], instructions: str = "", media: Any = [], '
_LLM += "max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None, "
_LLM += "stop: str | list[str] | None = None, seed: int | None = None, "
_LLM += f"effort: Literal[{', '.join(map(repr, get_args(Effort)))}] | None = None, system: str | None = None, "
_LLM += "first_token_timeout: float | None = None, idle_timeout: float | None = None, "
_LLM += "timeout: float | None = None, retry: int | None = None, budget: dict[str, Any] | None = None"
_TIMEOUT, _LIMIT = "timeout: float | None = None", "limit: int | None = None"
_CALL = {"timeout": _TIMEOUT, "retry": "retry: int | None = None"}
"""What a call takes beside its arguments: how many seconds, and how often it is attempted."""
_WORDS = f'''\
import datetime as _datetime
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R", covariant=True)
_J = TypeVar("_J", bound=str | int | float | bool | list[Any] | dict[str, Any])
_Role = Literal[{", ".join(f'"{role}"' for role in ROLES)}]

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
'''


def stubs_of(catalogue: Iterable[Mapping[str, Any]]) -> str:
    """Return the stubs of the words, and of a catalogue's tools by name."""
    entries = sorted(catalogue, key=lambda entry: str(entry["name"]))
    return _WORDS + "".join(tool_stub(entry, has_limits=True) for entry in entries)


def tool_stub(
    entry: Mapping[str, Any], characters: int = 300, levels: int = _LEVELS, *, has_limits: bool = False
) -> str:
    """Return the stub of a tool, "" for one that Python cannot name.

    `characters` bound its description, `levels` its types; without levels it takes any arguments. `has_limits` adds
    what any call takes.
    """
    if not _is_name(entry["name"]):
        return ""
    output = {} if entry.get("large") else entry.get("output_schema")
    returned = type_of(output, definitions(output), levels) if output else "Ref" if entry.get("large") else "Any"
    about = one_line(str(entry.get("description", "")), characters).replace("\\", "/").replace('"""', "'")
    effect = {"pure": "Pure.", "read": "It only reads."}.get(str(entry.get("effect")), "It changes things.")
    limits = _CALL if has_limits else {}
    parameters = ", ".join(_parameters(entry.get("schema") or {}, levels, limits)) if levels else "**arguments: Any"
    return f'async def {entry["name"]}({parameters}) -> {returned}:\n    """{f"{about} {effect}".strip()}"""\n'


def _parameters(schema: Schema, levels: int, limits: Mapping[str, str]) -> Iterator[str]:
    """Yield parameters in the order of the schema: by name alone from where an optional one precedes a required one;
    and those of `limits` that it has not itself.
    """
    properties, required, defs = schema.get("properties") or {}, schema.get("required") or (), definitions(schema)
    left = [_PARTS]
    names = [name for name in properties if _is_name(name)]
    optional = next((place for place, name in enumerate(names) if name not in required), len(names))
    star = next((name for name in names[optional:] if name in required), None)
    for name in names:
        if name == star:
            yield "*"
        default = "" if name in required else _default(properties[name])
        yield f"{name}: {type_of(properties[name], defs, levels, left)}{default}"
    others = [written for name, written in limits.items() if name not in properties]
    yield from ["*", *others] if others and star is None else others
    if schema.get("additionalProperties", True) is not False or len(names) < len(properties):
        yield "**others: Any"


def _default(schema: Any) -> str:
    default = schema.get("default") if isinstance(schema, dict) else None
    return f" = {default!r}" if type(default) in _SCALARS and len(repr(default)) <= _WIDTH else " = ..."


def type_of(schema: Any, defs: dict[str, Any], levels: int = _LEVELS, left: list[int] | None = None) -> str:
    """Return the type of a schema's values as Python writes it, `Any` for what it cannot say, or not in as many parts
    as are `left`.
    """
    left = [_PARTS] if left is None else left
    left[0] -= 1
    if not isinstance(schema, dict) or not levels or left[0] < 0:
        return "Any"
    schema = resolve(schema, defs)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= _CHOICES and all(type(value) in _LITERALS for value in values):
        return f"Literal[{', '.join(map(repr, values))}]"
    parts = schema.get("anyOf") or schema.get("oneOf") or schema.get("type")
    if isinstance(parts, list):
        each = (part if isinstance(part, dict) else {**schema, "type": part} for part in parts[: left[0] + 1])
        types = dict.fromkeys(type_of(part, defs, levels - 1, left) for part in each)
        return "Any" if "Any" in types else " | ".join(types)
    if parts == "array":
        return f"list[{type_of(schema.get('items'), defs, levels - 1, left)}]"
    if parts == "object":
        others = None if schema.get("properties") else schema.get("additionalProperties")
        return f"dict[str, {type_of(others, defs, levels - 1, left)}]"
    return _TYPES.get(str(parts), "Any")


def _is_name(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)
