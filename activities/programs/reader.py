"""Reads scripts in processes that can only compute, which the kernel ends if a
script takes too much.
"""

import json
import signal
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic import JsonValue, NonNegativeInt, TypeAdapter, ValidationError

from sennit.activities.limits import MAX_KEPT_READINGS_BYTES, MAX_READER_BYTES, MAX_READING_BYTES
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.computing_pool import ComputingPool
from sennit.activities.programs.reading import Unreadable
from sennit.activities.sandbox.computing import NoAnswer, ProcessEnded, Service
from sennit.workflows.plan.bounded_cache import BoundedCache

SECONDS: Final = 10
"""Of processor time that a reading may take."""
_MODULE: Final = "sennit.activities.programs.reader_service"
_SHORT_BYTES: Final = 64 << 10
"""Of an answer that is given again: longer ones would drive all others out."""
_OWN_END: Final = {
    -signal.SIGXCPU: f"it takes more than {SECONDS} s to read",
    -signal.SIGSEGV: "it is nested too deep",
    -signal.SIGABRT: f"it takes more than {MAX_READER_BYTES >> 20} MB to read",
}
_Problems = list[tuple[str, tuple[str | int, ...], str]]
_SHAPES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "problems": TypeAdapter(_Problems),
    "doubts": TypeAdapter(_Problems),
    "quote": TypeAdapter(tuple[str, NonNegativeInt, NonNegativeInt, NonNegativeInt]),
    "stubs": TypeAdapter(str),
    "planned": TypeAdapter(tuple[dict[str, JsonValue], list[str]]),
    "models": TypeAdapter(list[str]),
    "own_text": TypeAdapter(str),
    "classes": TypeAdapter(dict[str, list[tuple[str, str, bool]]]),
    "loop": TypeAdapter(tuple[str, int]),
}
"""What each reading answers. A process that has been taken over may write anything else."""


class ScriptReader:
    """Does readings: as many at once as the machine has cores, each in a process that
    stays for the next ones.

    The latest short answers are given again: a program that runs again is not read again. It is
    called like `reading.read`, in a thread.
    """

    def __init__(self) -> None:
        self._pool = ComputingPool(
            "reads scripts", Service(_MODULE, MAX_READER_BYTES, SECONDS, MAX_READING_BYTES)
        )
        self._answers = BoundedCache[bytes, bytes](MAX_KEPT_READINGS_BYTES)

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Do a reading. Raises Unreadable, and InterpreterCrashed if a process was ended from
        outside, answers what is no answer to that reading, or none becomes free.
        """
        request = json.dumps([name, arguments]).encode()
        digest = sha256(request).digest()
        known = self._answers.get(digest)
        if known is not None:
            return json.loads(known)
        reading = self._asked(request, lambda answer: _reading_of(answer, name, arguments))
        if reading.problem is not None:
            raise Unreadable(reading.problem)
        if len(reading.text) <= _SHORT_BYTES:
            self._answers.put(digest, reading.text)
        return reading.value

    def warm_up(self) -> None:
        """Have a process ready, so that the first script does not wait for one to start.
        Raises InterpreterCrashed.
        """
        try:
            self._pool.warm_up()
        except NoAnswer as error:
            raise InterpreterCrashed(f"the process that reads scripts: {error}") from error

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def _asked(self, request: bytes, check: Callable[[Any], "_Reading"]) -> "_Reading":
        try:
            return self._pool.ask(request, check)
        except ProcessEnded as end:
            # Ended by what it has read, or by something else.
            problem = _OWN_END.get(end.status) if end.status is not None else None
            if problem is not None:
                raise Unreadable(problem) from end
            raise InterpreterCrashed(
                f"the process that reads scripts has ended with {end.status}"
            ) from end
        except NoAnswer as error:
            raise InterpreterCrashed(f"the process that reads scripts: {error}") from error


class _Reading(NamedTuple):
    """An answer that has been checked: a value and its JSON, or the problem
    for which there is none.
    """

    value: Any = None
    text: bytes = b""
    problem: str | None = None


def _reading_of(answer: Any, name: str, arguments: tuple[Any, ...]) -> _Reading:
    """Return what a process has answered. Raises NoAnswer if that is no
    answer to such a reading.
    """
    match answer:
        case {"unreadable": str() as problem}:
            return _Reading(problem=problem)
        case {"reading": value}:
            text = json.dumps(value).encode()
            _require_reading(name, arguments, text)
            return _Reading(value, text)
    raise NoAnswer("it has answered what is no reading")


def _require_reading(name: str, arguments: tuple[Any, ...], text: bytes) -> None:
    """Raise NoAnswer if that is not the answer to such a reading, or names lines
    that the script lacks.
    """
    try:
        reading = _SHAPES[name].validate_json(text, strict=True)
    except ValidationError:
        raise NoAnswer(f"it has answered no {name}") from None
    lines = list[int]()
    if name == "loop":
        lines.append(reading[1])
    elif name in ("problems", "doubts"):
        for _, where, _ in reading:
            for part in where:
                if isinstance(part, int):
                    lines.append(part)
    if lines and not 0 <= min(lines) <= max(lines) <= _last_line(arguments[0]):
        raise NoAnswer(f"it has named a line that the script lacks in {name}")


def _last_line(script: str) -> int:
    return script.count("\n") + script.count("\r") + 1
