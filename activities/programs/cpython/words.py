"""The words of Sennit and the tools, as a script calls them: real functions, each of whose
calls goes to the worker.
"""

import ast
import builtins
import datetime as dt
import importlib
import inspect
import types
from collections.abc import Callable, Coroutine
from typing import Any, Final

from sennit.activities.programs.cpython.failures import Errors
from sennit.activities.programs.cpython.loop import ReplayLoop, Ticket
from sennit.activities.programs.cpython.modules import ScriptModules
from sennit.activities.programs.cpython.private_interfaces import running_loop
from sennit.activities.programs.cpython.tickets import IS_TOOL, CallLater, Tickets
from sennit.activities.programs.cpython.typed_values import typed
from sennit.activities.programs.cpython.values import Ref, json_of, schema_of
from sennit.workflows.plan.programs.vocabulary import AWAITED

Call = Callable[[str, list[Any], dict[str, Any], int, str], tuple[int, Any]]
"""Makes a call: word, arguments, line, call site. Returns its number, and what
the worker says at once.
"""
_TYPED: Final = ("llm", "ask")
"""Words whose `schema` says what becomes of the answer."""
_ONLY_DEFINES: Final = "the top of a script only defines things: put this into a function"


class ScriptWords:
    """The words and tools of one session. `names` are those of its script."""

    loop: ReplayLoop
    _modules: ScriptModules
    _own_name: str

    def __init__(
        self, call: Call, call_later: CallLater, errors: Errors, names: dict[str, Any]
    ) -> None:
        self._call = call
        self._call_later = call_later
        self._errors = errors
        self._names = names
        self._never_awaited: dict[object, tuple[str, int, Coroutine[Any, Any, Any]]] = {}
        """The word, the line and the coroutine of each call that was written down and not begun."""

    @property
    def call_codes(self) -> tuple[types.CodeType, ...]:
        """The code of the coroutines that a call of a tool is."""
        return ScriptWords._begun_later.__code__, ScriptWords._typed.__code__

    def begin_on(self, loop: ReplayLoop) -> None:
        """Have the words begin what they begin on this loop."""
        self.loop = loop
        self._tickets = Tickets(loop, self._call_later, self._at_once, self._begin, self._errors)

    @property
    def running_tasks(self) -> int:
        """How many tasks of the script have begun and not ended."""
        return self._tickets.running

    def never_awaited(self) -> list[tuple[str, int]]:
        """Return the calls, by word and line, that the script has written down and
        never awaited or started.
        """
        found = []
        for word, line, coroutine in self._never_awaited.values():
            # A coroutine that was closed, or whose task was cancelled before it
            # began, is not forgotten.
            if inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
                found.append((word, line))
        return found

    def close(self) -> None:
        """Let go of all calls."""
        self._never_awaited.clear()

    def run_programs_of(self, modules: ScriptModules, own_name: str) -> None:
        """Have `run_program` find its programs among these modules, and the script
        itself by its own name.
        """
        self._modules = modules
        self._own_name = own_name

    def define(self, tree: ast.Module, module: dict[str, Any]) -> None:
        """Give a module of the script what it names and does not define: words, errors that
        it catches, and tools.
        """
        names = _Names.of(tree)
        words: dict[str, Any] = {
            **self._tickets.words(),
            "phase": self.phase,
            "run_program": self.run_program,
            "now": now,
            "log": log,
            "Ref": Ref,
            "Ticket": Ticket,
        }
        for name in names.read:
            if name.startswith("__") or name in names.bound:
                continue
            if name in words:
                module[name] = words[name]
            elif name in AWAITED:
                module[name] = self._function(name)
            elif hasattr(builtins, name):
                continue
            elif name in names.caught:
                module[name] = self._errors.catch(name)
            else:
                module[name] = self._function(name)

    def _function(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return what a script has of a tool, or of a word that waits."""

        def called(
            *args: Any, timeout: Any = None, retry: Any = None, **kwargs: Any
        ) -> Coroutine[Any, Any, Any]:
            if timeout is not None:
                kwargs["timeout"] = timeout
            if retry is not None:
                kwargs["retry"] = retry
            schema = None
            if name in _TYPED:
                schema = kwargs.get("schema")
            return self._begin(name, args, kwargs, schema)

        called.__name__ = called.__qualname__ = name
        setattr(called, IS_TOOL, True)
        return called

    def _begin(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], schema: Any = None
    ) -> Coroutine[Any, Any, Any]:
        """Return the coroutine of a call, which returns what its `schema` says. Its arguments are
        copied now, and not when the script waits. Raises NotJson.
        """
        if running_loop() is None:
            raise RuntimeError(_ONLY_DEFINES)
        line = self.loop.line()
        names = self.loop.module_names() or self._names
        key = object()
        arguments = self._arguments(name, args, kwargs, names)
        coroutine = self._begun_later(name, line, arguments, key)
        if schema is not None:
            coroutine = self._typed(coroutine, schema, names)
        self._never_awaited[key] = (name, line, coroutine)
        return coroutine

    async def _begun_later(
        self, name: str, line: int, given: tuple[list[Any], dict[str, Any]], key: object
    ) -> Any:
        """Begin a call when the script awaits it, as a coroutine begins, and wait for its end."""
        self._never_awaited.pop(key, None)
        args, kwargs = given
        number = self._call_later(name, args, kwargs, line, self.loop.site())
        return await self.loop.open_call(number)

    async def _typed(
        self, call: Coroutine[Any, Any, Any], schema: Any, names: dict[str, Any]
    ) -> Any:
        return typed(await call, schema, names)

    def _arguments(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call as JSON; types in texts have these
        names. Raises NotJson.
        """
        places = list(args)
        if name == "sleep_until" and places and isinstance(places[0], dt.datetime):
            places[0] = places[0].isoformat()
        sent = [json_of(each, name, is_read_outside=True) for each in places]
        named = dict[str, Any]()
        for key, part in kwargs.items():
            if key == "schema":
                named[key] = schema_of(part, name, names)
            else:
                named[key] = json_of(part, name, is_read_outside=True)
        return sent, named

    def phase(self, name: Any) -> None:
        """Have the names of all further calls of `main`, or of a task, begin with this."""
        found = self._at_once("phase", [json_of(name, "phase")], {})
        self.loop.branch().phase = found

    def run_program(self, name: Any, /, **arguments: Any) -> Ticket:
        """Start another program of the script, or the script itself, as a task."""
        if running_loop() is None:
            raise RuntimeError(_ONLY_DEFINES)
        names = self._names
        if self._modules.has(name):
            names = importlib.import_module(name).__dict__
        elif name != self._own_name:
            raise ModuleNotFoundError(
                f"run_program: the script has no program {name!r:.60}: give it its file again"
            )
        return self._tickets.task(names["main"], **arguments)

    def _at_once(self, word: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if running_loop() is None:
            raise RuntimeError(_ONLY_DEFINES)
        _, found = self._call(word, args, kwargs, self.loop.line(), self.loop.site())
        return found


def now() -> dt.datetime:
    return dt.datetime.now()  # noqa: DTZ005 - a script has the time of the run, in UTC


def log(*values: Any, sep: str = " ") -> None:
    print(*values, sep=sep)  # noqa: T201 - what a script prints is its log


class _Names:
    """The names of a script: those that it reads, in order, those that it binds, and those
    in its `except` clauses.
    """

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
                for part in ast.walk(node.type):
                    if isinstance(part, ast.Name):
                        names.caught.add(part.id)
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
