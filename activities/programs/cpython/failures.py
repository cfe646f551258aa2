"""Errors on their way into a script, by the name of their type, and how a script
failed on their way out.
"""

import asyncio
import builtins
import types
from typing import Any, Final

from sennit.activities.programs.cpython.modules import whole_name
from sennit.activities.programs.cpython.names import FILE
from sennit.activities.programs.cpython.values import NotJson

_MESSAGE_CHARACTERS: Final = 4_000
_FRAMES: Final = 10
"""Of a long traceback so many are shown of its beginning, and of its end."""


class CallError(RuntimeError):
    """The error of a call that no class of Python or of the script is named after."""


class Errors:
    """The errors of one session. `names` are those that its script defines."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self.made: dict[str, type[Exception]] = {}
        """Classes for the errors of tools that the script catches by their names."""

    def catch(self, name: str) -> type[Exception]:
        """Return the class of the errors of tools of that name."""
        made = self.made.get(name)
        if made is None:
            made = self.made[name] = type(name, (RuntimeError,), {"__module__": "builtins"})
        return made

    def error_of(self, kind: str, message: str) -> BaseException:
        """Return an error of a call as the script can catch it."""
        if kind == "CancelledError":
            return asyncio.CancelledError(message)
        known = self._class_of(kind)
        if known is None:
            known = self.catch(kind)
        text = message
        if kind in self.made:
            text = f"{kind}: {message}"
        # A class of the script may want other arguments than one text.
        try:
            error = known.__new__(known, text)
            error.args = (text,)
        except Exception:  # noqa: BLE001 - whatever the class of the script does
            return CallError(f"{kind}: {message}")
        return error

    def _class_of(self, kind: str) -> type[BaseException] | None:
        for found in (
            self._names.get(kind),
            self.made.get(kind),
            getattr(builtins, kind, None),
        ):
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
        return None

    def report(self, error: BaseException) -> list[Any]:
        """Return how a script failed: type, message, the line, 0 if there is none, and the
        frames of its traceback.
        """
        # A person reads one error. The first one of a group is the one that has ended it.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, SyntaxError) and error.filename == FILE:
            return [type(error).__name__, error.msg, error.lineno or 0, []]
        frames = _frames_of(error.__traceback__)
        line = frames[-1][0] if frames else 0
        return [
            _kind_of(error),
            self._message_of(error)[:_MESSAGE_CHARACTERS],
            line,
            _shortened(frames),
        ]

    def _message_of(self, error: BaseException) -> str:
        # str(KeyError("x")) is "'x'".
        if isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str):
            return error.args[0]
        try:
            text = str(error)
        except Exception as other:  # noqa: BLE001 - a class of the script may do anything
            return f"({type(other).__name__} in its __str__)"
        kind = type(error).__name__
        if kind in self.made:
            return text.removeprefix(f"{kind}: ")
        return text


def _kind_of(error: BaseException) -> str:
    if isinstance(error, NotJson):
        return "TypeError"
    if isinstance(error, CallError):
        return "RuntimeError"
    return whole_name(type(error))


def _frames_of(trace: types.TracebackType | None) -> list[tuple[int, str]]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE:
            frames.append((trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return frames


def _shortened(frames: list[tuple[int, str]]) -> list[tuple[int, str]]:
    left_out = len(frames) - 2 * _FRAMES
    if left_out <= 0:
        return frames
    return [*frames[:_FRAMES], (0, f"... {left_out} more ..."), *frames[-_FRAMES:]]
