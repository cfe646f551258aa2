"""What differs between two runs of CPython, made equal: time, random numbers, UUIDs,
`id`, hashes and addresses.

`settle` changes the process for good, before its script. `State` is what the
script's session goes by.
"""

import asyncio
import builtins
import contextlib
import ctypes
import dataclasses
import datetime as dt
import gc
import hashlib
import logging
import random
import sys
import time
import types
import uuid
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

from sennit.activities.programs.cpython.imports import guard_imports
from sennit.activities.programs.cpython.loop import ReplayLoop, as_completed, wait_for
from sennit.activities.programs.cpython.modules import is_own
from sennit.activities.programs.cpython.names import FILE, identity_of
from sennit.activities.programs.cpython.private_interfaces import frame_above
from sennit.activities.programs.cpython.values import ORDINAL

PROCESSOR_SECONDS: Final = time.process_time
"""The real clock of this process, which scripts do not see."""
_ID: Final = builtins.id
_BUILD_CLASS: Final = builtins.__build_class__
_PROCESS_CLASS: Final = dataclasses._process_class  # type: ignore[attr-defined]
_SEED: Final = random.Random.seed
_UUID_BITS: Final = 32
_BEGIN_RECORD: Final = logging.LogRecord.__init__
_PROCESS_NUMBER: Final = 1
"""Of every process and its only thread, as logs have it."""


class State:
    """What the functions go by that this module has changed."""

    def __init__(
        self, seed: str = "", runs: tuple[tuple[int, str], ...] = (), loop: ReplayLoop | None = None
    ) -> None:
        self.seed = seed
        self.runs = runs
        self.loop = loop
        self.began = self.milliseconds
        """The time at which the session began."""
        self.uuids: dict[str, int] = {}
        """How many UUIDs each call site has made."""
        self.random_bytes = 0
        self.instances = 0
        self.ids: dict[int, tuple[int, Any]] = {}
        """By address: the number that `id` has given, and the object, so that nothing
        else gets that address.
        """

    @property
    def milliseconds(self) -> int:
        return self.loop.clock if self.loop is not None else 0

    def enter(self) -> None:
        """Have this process go by it from now on."""
        global _state
        _state = self
        random.seed(self.seed)


_state = State()


def settle() -> None:
    """Change this process so that equal scripts do equal things."""
    _settle_clock()
    _settle_random()
    _settle_classes()
    _refuse_the_outside()
    guard_imports(is_own)
    sys.setrecursionlimit(1_000)


def _settle_clock() -> None:
    for kind in (dt.datetime, dt.date):
        names = gc.get_referents(kind.__dict__)[0]
        if kind is dt.datetime:
            names["now"] = classmethod(_now)
            names["utcnow"] = classmethod(lambda cls: _now(cls))
        names["today"] = classmethod(_today)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, lambda: _state.milliseconds / 1_000)
        setattr(time, f"{name}_ns", lambda: _state.milliseconds * 1_000_000)
    time.clock_gettime = lambda _: time.time()
    time.clock_gettime_ns = lambda _: time.time_ns()
    logging.LogRecord.__init__ = _settled_record  # type: ignore[method-assign, assignment]
    for name in ("gmtime", "localtime", "ctime"):
        setattr(time, name, _at(getattr(time, name)))
    time.strftime = _with_moment(time.strftime)
    time.asctime = _with_moment(time.asctime)
    time.sleep = _refusal("time.sleep", "write await sleep(seconds)")


def _settled_record(record: logging.LogRecord, *given: Any, **named: Any) -> None:
    """Begin a record of a log with the session's own time, and without the
    numbers of this process.
    """
    _BEGIN_RECORD(record, *given, **named)
    record.relativeCreated = float(_state.milliseconds - _state.began)
    record.process = record.thread = _PROCESS_NUMBER


def _now(cls: Any, tz: Any = None) -> Any:
    seconds = _state.milliseconds / 1_000
    if tz is None:
        return cls.fromtimestamp(seconds, dt.UTC).replace(tzinfo=None)
    return cls.fromtimestamp(seconds, tz)


def _today(cls: Any) -> Any:
    now = _now(dt.datetime)
    if cls is dt.datetime:
        return now
    return cls(now.year, now.month, now.day)


def _at(function: Callable[..., Any]) -> Callable[..., Any]:
    def at(seconds: float | None = None) -> Any:
        if seconds is None:
            seconds = _state.milliseconds / 1_000
        return function(seconds)

    return at


def _with_moment(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of a moment that it may leave out the script's own."""
    takes = 1 if function is time.strftime else 0

    def at(*values: Any) -> Any:
        if len(values) == takes:
            values = (*values, time.localtime())
        return function(*values)

    return at


def _settle_random() -> None:
    import os

    def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None:
            a = _random_bytes(16)
        _SEED(generator, a, version)

    os.urandom = _random_bytes
    random._urandom = _random_bytes  # type: ignore[attr-defined]
    random.Random.seed = seed  # type: ignore[assignment]
    # The module has the method of its own generator, as it was.
    generator: random.Random = random.random.__self__  # type: ignore[attr-defined]
    random.seed = generator.seed
    uuid.uuid4 = _uuid4
    uuid.uuid1 = _refusal("uuid1", "write uuid4()")
    uuid.getnode = _refusal("getnode", "write uuid4()")


def _random_bytes(count: int) -> bytes:
    found = b""
    while len(found) < count:
        _state.random_bytes += 1
        found += hashlib.sha256(f"{_state.seed} bytes {_state.random_bytes}".encode()).digest()
    return found[:count]


def _uuid4() -> uuid.UUID:
    """Return a UUID that comes from the session, the call site and its number there, and
    the run of that moment.
    """
    state = _state
    site = ""
    if state.loop is not None:
        site = identity_of(state.loop.site())
    number = state.uuids.get(site, 0) + 1
    state.uuids[site] = number
    # A fork tells the same UUIDs as its origin for as long as it does the same, and then its own.
    run = ""
    for since, name in state.runs:
        if since <= state.milliseconds:
            run = name
    digest = hashlib.sha256(f"{state.seed} {run} {site} {number}".encode()).hexdigest()
    return uuid.UUID(digest[:_UUID_BITS], version=4)


def _settle_classes() -> None:
    """Have instances of a script's classes hashed by number, and shown without their addresses."""
    builtins.__build_class__ = _build_class  # type: ignore[assignment]
    builtins.id = _number_of
    dataclasses._process_class = _process_class  # type: ignore[attr-defined]


def _build_class(function: Any, name: str, *bases: Any, **options: Any) -> Any:
    return _settled(_BUILD_CLASS(function, name, *bases, **options))


def _settled(made: Any) -> Any:
    if isinstance(made, type):
        with contextlib.suppress(TypeError):
            names: Any = made
            if names.__hash__ is object.__hash__:
                names.__hash__ = _hash
            if names.__repr__ is object.__repr__:
                names.__repr__ = _repr
    return made


def _process_class(cls: Any, *given: Any, **options: Any) -> Any:
    """Let `dataclass` write the methods that `_settled` has put in the
    place of those of `object`.
    """
    for name, ours in (("__repr__", _repr), ("__hash__", _hash)):
        if cls.__dict__.get(name) is ours:
            delattr(cls, name)
    made = _settled(_PROCESS_CLASS(cls, *given, **options))
    # What a model answers is read as a dict, too, as it is without a type.
    if is_own(made.__module__):
        if "__getitem__" not in made.__dict__:
            made.__getitem__ = _field
        if not hasattr(made, "keys"):
            made.keys = _field_names
    return made


def _field(instance: Any, name: str) -> Any:
    if name not in _field_names(instance):
        raise KeyError(name)
    return getattr(instance, name)


def _field_names(instance: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(instance)]


def _hash(instance: Any) -> int:
    try:
        return int(object.__getattribute__(instance, ORDINAL))
    except AttributeError:
        pass
    _state.instances += 1
    try:
        object.__setattr__(instance, ORDINAL, _state.instances)
    except AttributeError:
        return _number_of(instance)  # it has __slots__
    return _state.instances


def _repr(instance: Any) -> str:
    return f"<{type(instance).__qualname__} object>"


def _number_of(thing: Any) -> int:
    """Number objects in the order in which a script asks for their `id`. One
    that has a number is kept.
    """
    known = _state.ids.get(_ID(thing))
    if known is None:
        known = _state.ids[_ID(thing)] = (len(_state.ids) + 1, thing)
    return known[0]


def _refuse_the_outside() -> None:
    # Who forgets an `await` reads so before the run, and scripts print what is theirs.
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited")
    for name in ("open", "breakpoint", "input", "exit", "quit"):
        instead = "return from main" if name != "open" else "use a tool, or an argument of `main`"
        setattr(builtins, name, _refusal(name, instead))
    # Text that a script makes is text: a quote, and whoever approves a script, cannot read it.
    for name in ("eval", "exec", "compile"):
        setattr(builtins, name, _refused_to_scripts(name, getattr(builtins, name)))
    asyncio.wait_for = asyncio.tasks.wait_for = wait_for
    asyncio.as_completed = asyncio.tasks.as_completed = as_completed
    asyncio.run = _refusal("asyncio.run", "the run calls `main` itself")
    asyncio.to_thread = _refusal("asyncio.to_thread", "call the tool: no call keeps others waiting")


def _refusal(name: str, instead: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"a script has no {name}: {instead}")

    return refused


def _refused_to_scripts(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a function for the library, which writes namedtuples and dataclasses with it."""

    def called(*given: Any, **options: Any) -> Any:
        frame: types.FrameType = frame_above(1)
        if frame.f_code.co_filename == FILE:
            raise NotImplementedError("a script has no eval and no exec: write the code itself")
        if name != "compile" and len(given) == 1 and not options:
            # Without namespaces they take those of their caller.
            given = (*given, frame.f_globals, frame.f_locals)
        return function(*given, **options)

    return called
