"""Programs in plain CPython, with asyncio and the small world, in time that passes at once. It needs nothing of Sennit.

`python -m doubles.plain_python` in `tests/` reads one program a line, as JSON, and answers with a line: its value or
error, what it has called and printed. Each runs in a process of its own.
"""

import asyncio
import builtins
import contextlib
import dataclasses
import datetime as dt
import enum
import io
import json
import math
import os
import selectors
import sys
import time
import traceback
import types
from collections.abc import Iterator
from typing import Any

from doubles.small_world import FAILURES, World

BEGAN = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)  # noqa: UP017 - as in any Python
FILE = "script"
MODULE = "__program__"
"""What the module of a script is called, which Python 3.14 names with its classes."""


class Clock(asyncio.SelectorEventLoop):
    """Every sleep is over at once, to the millisecond."""

    def __init__(self) -> None:
        self.milliseconds = 0
        super().__init__(Skips(self))

    def time(self) -> float:
        return self.milliseconds / 1000


class Skips(selectors.DefaultSelector):
    """Lets the time of a loop pass where nothing is ready."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self.clock.milliseconds += math.ceil(round(timeout * 1000, 6))
        return super().select(0)


def outcome(script: str, inputs: dict[str, Any], answers: list[list[Any]]) -> dict[str, Any]:
    """Return what `main` returns, or the error with its line; all calls; and all that was printed."""
    world = World(answers)
    printed = io.StringIO()
    found: dict[str, Any] = {}
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), printed, printed
    loop = Clock()
    asyncio.set_event_loop(loop)
    try:
        module = loaded(script, world, loop)
        found["value"] = as_json(loop.run_until_complete(module["main"](**inputs)))
    except BaseException as error:  # noqa: BLE001 - whatever the script raises
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        found["error"] = [type(error).__name__, message_of(error), lines[-1] if lines else 0]
    return {**found, "effects": world.effects, "printed": printed.getvalue()}


def message_of(error: BaseException) -> str:
    if isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str):
        return error.args[0]
    return str(error).removeprefix(f"{type(error).__name__}: ")


def loaded(script: str, world: World, loop: Clock) -> dict[str, Any]:
    """Return the names of a script whose top has run."""
    module = types.ModuleType(MODULE)
    sys.modules["script"] = module
    names = module.__dict__
    failures = {failure.__name__: type(failure.__name__, (RuntimeError,), {}) for failure in FAILURES}
    for name, tool in world.tools().items():
        names[name] = as_called(name, tool, failures)
    names |= failures
    names["log"] = print
    scope = dict(vars(builtins))
    scope["__import__"] = imports_in(loop)
    names["__builtins__"] = scope
    exec(compile(script, FILE, "exec", dont_inherit=True), names)
    return names


def as_called(name: str, tool: Any, failures: dict[str, Any]) -> Any:
    """Return a tool as a script has it: its arguments and its results are JSON, and its errors have names."""

    async def call(*args: Any, schema: Any = None, **kwargs: Any) -> Any:
        given = as_json([args, kwargs])
        try:
            return json.loads(json.dumps(await tool(*given[0], **given[1])))
        except FAILURES as error:
            kind = type(error).__name__
            raise failures[kind](f"{kind}: {error}") from None

    call.__name__ = call.__qualname__ = name
    return call


def imports_in(loop: Clock) -> Any:
    """Return an import that gives a script the modules of time as they are at the time of a loop."""

    def now_in(cls: Any, tz: Any = None) -> Any:
        moment = BEGAN + dt.timedelta(milliseconds=loop.milliseconds)
        moment = moment.astimezone(tz) if tz is not None else moment.replace(tzinfo=None)
        return cls(*moment.timetuple()[:6], moment.microsecond, moment.tzinfo)

    class Date(dt.date):
        @classmethod
        def today(cls) -> Any:
            return cls(*now_in(dt.datetime).timetuple()[:3])

    class DateTime(dt.datetime):
        now = classmethod(now_in)
        utcnow = classmethod(now_in)
        today = classmethod(now_in)

        def __repr__(self) -> str:
            return f"datetime.{super().__repr__()}"

    for kind, name in ((Date, "date"), (DateTime, "datetime")):
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = "datetime"
    dates = types.ModuleType("datetime")
    dates.__dict__.update(dt.__dict__ | {"datetime": DateTime})
    clock = types.ModuleType("time")
    clock.__dict__.update(time.__dict__)
    began = BEGAN.timestamp()
    for name in ("time", "monotonic", "perf_counter"):
        clock.__dict__[name] = lambda: began + loop.milliseconds / 1000
        clock.__dict__[f"{name}_ns"] = lambda: round(began * 1000 + loop.milliseconds) * 1_000_000

    def import_(name: str, *given: Any) -> Any:
        if name in ("datetime", "time"):
            return {"datetime": dates, "time": clock}[name]
        return builtins.__import__(name, *given)

    return import_


def as_json(value: Any) -> Any:
    """Return a value as it leaves a script. Raises TypeError."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_json({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, enum.Enum):
        return as_json(value.value)
    if isinstance(value, dict):
        return {key_of(key): as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"JSON has no {value}")
    return json.loads(json.dumps(value))


def key_of(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    return key if isinstance(key, str) else json.dumps(key)


def in_a_process(request: dict[str, Any]) -> str:
    """Return the outcome of a program that runs in a copy of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(outcome(**request)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text or json.dumps({"error": ["", "the process has ended", 0], "effects": [], "printed": ""})


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


if __name__ == "__main__":
    answers = sys.stdout
    for request in requests():
        print(in_a_process(request), file=answers, flush=True)
