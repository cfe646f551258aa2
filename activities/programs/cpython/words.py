"""The words of Sennit and the tools, as a script calls them: real functions, each of whose calls goes to the worker."""

import ast
import asyncio
import builtins
import collections.abc
import datetime as dt
import inspect
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final

from sennit.activities.programs.cpython.failures import Errors
from sennit.activities.programs.cpython.loop import ReplayLoop
from sennit.activities.programs.cpython.names import MODULE
from sennit.activities.programs.cpython.private_interfaces import running_loop
from sennit.activities.programs.cpython.typed_values import typed
from sennit.activities.programs.cpython.values import NotJson, Ref, json_of, schema_of, shown
from sennit.workflows.plan.programs.vocabulary import AWAITED, JOINS, LIMITS, NEXT_OF, OWN

Call = Callable[[str, list[Any], dict[str, Any], int, str], tuple[int, Any]]
"""Makes a call: word, arguments, line, call site. Returns its number, and what the worker says at once."""
CallLater = Callable[[str, list[Any], dict[str, Any], int, str], int]
"""Makes a call for whose end the script waits. Returns its number."""
_TYPED: Final = ("llm", "ask")
"""Words whose `schema` says what becomes of the answer."""
_STAYS_HERE: Final = ("task", "pipeline")
"""Words whose values go to another session of the script, and not outside."""
_IS_TOOL: Final = "__is_tool__"
_ONLY_DEFINES: Final = "the top of a script only defines things: put this into a function"


class Ticket(str):
    """What `task` returns: a text that may be awaited."""

    __slots__ = ("_words",)
    _words: "ScriptWords"

    @classmethod
    def of(cls, text: str, words: "ScriptWords") -> "Ticket":
        ticket = cls(text)
        ticket._words = words
        return ticket

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._words.wait_for_ticket(self).__await__()


class ScriptWords:
    """The words and tools of one session. `names` are those of its script."""

    loop: ReplayLoop

    def __init__(self, call: Call, call_later: CallLater, errors: Errors, names: dict[str, Any]) -> None:
        self._call = call
        self._call_later = call_later
        self._errors = errors
        self._names = names
        self._never_awaited: dict[object, tuple[str, int, Coroutine[Any, Any, Any]]] = {}
        """The word, the line and the coroutine of each call that was written down and not begun."""
        self._watched: dict[Any, asyncio.Future[Any] | None] = {}
        """The tickets that `next_of` waits for; None once it has given one."""
        self._ended_tickets: list[Any] = []

    @property
    def call_codes(self) -> tuple[types.CodeType, ...]:
        """The code of the coroutines that a call of a tool is."""
        return ScriptWords._begun_later.__code__, ScriptWords._typed.__code__

    def never_awaited(self) -> list[tuple[str, int]]:
        """Return the calls, by word and line, that the script has written down and never awaited or started."""
        found = []
        for word, line, coroutine in self._never_awaited.values():
            # A coroutine that was closed, or whose task was cancelled before it began, is not forgotten.
            if inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
                found.append((word, line))
        return found

    def close(self) -> None:
        """Let go of all calls."""
        self._never_awaited.clear()

    def define(self, tree: ast.Module) -> None:
        """Give the script what it names and does not define: words, errors that it catches, and tools."""
        names = _Names.of(tree)
        words: dict[str, Any] = {
            "task": self.task,
            "phase": self.phase,
            "cancel": self.cancel,
            "now": now,
            "log": log,
            NEXT_OF: self.next_of,
            "Ref": Ref,
            "Ticket": Ticket,
        }
        for name in names.read:
            if name.startswith("__") or name in names.bound:
                continue
            if name in words:
                self._names[name] = words[name]
            elif name in AWAITED:
                self._names[name] = self._function(name)
            elif hasattr(builtins, name):
                continue
            elif name in names.caught:
                self._names[name] = self._errors.catch(name)
            else:
                self._names[name] = self._function(name)

    def _function(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return what a script has of a tool, or of a word that waits."""

        def called(*args: Any, timeout: Any = None, retry: Any = None, **kwargs: Any) -> Coroutine[Any, Any, Any]:
            if running_loop() is None:
                raise RuntimeError(_ONLY_DEFINES)
            line = self.loop.line()
            # Values are copied when the script calls, and not when it waits.
            given = self._arguments(name, args, kwargs, {"timeout": timeout, "retry": retry})
            key = object()
            coroutine = self._begun_later(name, line, given, key)
            schema = kwargs.get("schema")
            if schema is not None and name in _TYPED:
                coroutine = self._typed(coroutine, schema)
            self._never_awaited[key] = (name, line, coroutine)
            return coroutine

        called.__name__ = called.__qualname__ = name
        setattr(called, _IS_TOOL, True)
        return called

    async def _begun_later(self, name: str, line: int, given: tuple[list[Any], dict[str, Any]], key: object) -> Any:
        """Begin a call when the script awaits it, as a coroutine begins, and wait for its end."""
        self._never_awaited.pop(key, None)
        args, kwargs = given
        number = self._call_later(name, args, kwargs, line, self.loop.site())
        return await self.loop.open_call(number)

    async def _typed(self, call: Coroutine[Any, Any, Any], schema: Any) -> Any:
        return typed(await call, schema, self._names)

    def _arguments(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], limits: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call as JSON. Raises NotJson."""
        places = list(args)
        is_read_outside = name not in _STAYS_HERE
        if name in JOINS:
            places = [_as_list(each) for each in places]
        elif name == "sleep_until" and places and isinstance(places[0], dt.datetime):
            places[0] = places[0].isoformat()
        elif name == "pipeline":
            items = [_as_list(each) for each in places[:1]]
            places = items + [_function_name(each, name) for each in places[1:]]
        sent = [json_of(each, name, is_read_outside=is_read_outside) for each in places]
        named = dict[str, Any]()
        for key, part in kwargs.items():
            if key == "schema":
                named[key] = schema_of(part, name)
            else:
                named[key] = json_of(part, name, is_read_outside=is_read_outside)
        for key, part in limits.items():
            if part is not None:
                named[key] = json_of(part, name)
        return sent, named

    def task(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Start a function of the script, or a tool, in a session of its own."""
        name = _function_name(function, "task")
        if _is_of_script(function):
            kwargs = _own_limits(function, kwargs)
        sent = [json_of(each, "task", is_read_outside=name == "llm") for each in args]
        named = dict[str, Any]()
        for key, part in kwargs.items():
            if key == "schema":
                named[key] = schema_of(part, name)
            else:
                named[key] = json_of(part, "task")
        found = self._at_once("task", [name, *sent], named)
        if isinstance(found, str):
            return Ticket.of(found, self)
        return found

    def phase(self, name: Any) -> None:
        self._at_once("phase", [json_of(name, "phase")], {})

    def cancel(self, ticket: Any) -> None:
        self._at_once("cancel", [json_of(ticket, "cancel")], {})

    def _at_once(self, word: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if running_loop() is None:
            raise RuntimeError(_ONLY_DEFINES)
        _, found = self._call(word, args, kwargs, self.loop.line(), self.loop.site())
        return found

    async def wait_for_ticket(self, ticket: Ticket) -> Any:
        """Return what a task returned."""
        number = self._call_later("await", [[str(ticket)]], {}, self.loop.line(), self.loop.site())
        values = await self.loop.open_call(number)
        return values[0]

    async def next_of(self, tickets: Any) -> tuple[Any, Any]:
        """Return the next of some tickets that ends, with its value. Each is given once."""
        if not isinstance(tickets, list | tuple) or not tickets:
            raise ValueError("next_of takes a list of tickets that task(...) has returned; this has none")
        for ticket in tickets:
            self._watch(ticket)
        while True:
            for ticket in self._ended_tickets:
                if ticket in tickets:
                    self._ended_tickets.remove(ticket)
                    watched, self._watched[ticket] = self._watched[ticket], None
                    assert watched is not None
                    return ticket, watched.result()
            waiting = [self._watched[ticket] for ticket in tickets]
            open_ones = [future for future in waiting if future is not None]
            if not open_ones:
                raise ValueError("next_of has given each of these tickets: each is given once")
            await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)

    def _watch(self, ticket: Any) -> None:
        if not isinstance(ticket, Ticket | asyncio.Task):
            raise TypeError(f"next_of takes a list of tickets that task(...) has returned; {ticket!r} is none")
        if ticket in self._watched:
            return
        watched = asyncio.ensure_future(ticket)
        self._watched[ticket] = watched
        watched.add_done_callback(lambda _: self._ended_tickets.append(ticket))


def now() -> dt.datetime:
    return dt.datetime.now()  # noqa: DTZ005 - a script has the time of the run, in UTC


def log(*values: Any, sep: str = " ") -> None:
    print(*values, sep=sep)  # noqa: T201 - what a script prints is its log


def _as_list(value: Any) -> Any:
    """Return what may be gone through as a list: tickets and items may come from a generator."""
    if isinstance(value, str | int | list) or not isinstance(value, collections.abc.Iterable):
        return value
    return list(value)


def _is_of_script(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__module__ == MODULE


def _function_name(function: Any, word: str) -> str:
    """Return the name of a function of the script, or of a tool. Raises NotJson."""
    is_tool = getattr(function, _IS_TOOL, False) is True
    if not (_is_of_script(function) or is_tool) or function.__name__ == "<lambda>":
        message = "name a function of the script or a tool, without calling it"
        raise NotJson(f"{word}: {message}; this is {shown(function)}")
    return str(function.__name__)


def _own_limits(function: types.FunctionType, given: dict[str, Any]) -> dict[str, Any]:
    """Mark `timeout` and `retry` where a function takes them itself, so that they are no limits of its task."""
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    marked = {}
    for key, part in given.items():
        if key in LIMITS and key in own:
            key = f"{OWN}{key}"
        marked[key] = part
    return marked


class _Names:
    """The names of a script: those that it reads, in order, those that it binds, and those in its `except` clauses."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: set[str] = set()
        self.caught: set[str] = set()

    @classmethod
    def of(cls, tree: ast.Module) -> "_Names":
        names = cls()
        for statement in tree.body:
            names._bind_at_top(statement)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.read[node.id] = None
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                inside = [each for each in ast.walk(node.type) if isinstance(each, ast.Name)]
                names.caught.update(each.id for each in inside)
        return names

    def _bind_at_top(self, statement: ast.stmt) -> None:
        """Note what the module binds: a name of a function hides a word only inside of that."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.bound.add(statement.name)
            return
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.bound.add(node.id)
            elif isinstance(node, ast.alias):
                self.bound.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.bound.add(node.name)
