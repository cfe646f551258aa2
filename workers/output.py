"""What tools print, and what the processes that they start print, reaches the log of a worker without secrets."""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TextIO

from sennit.activities.toolbox.redaction import redact

_STDOUT: Final = 1
_STDERR: Final = 2
_CHUNK: Final = 64 * 1024
_MAX_LINE_BYTES: Final = 64 * 1024  # a longer line is written in parts
_LAST_SECONDS: Final = 2.0  # for the last lines at the end of the process


@dataclass(frozen=True, slots=True)
class _Redacted:
    """An open file whose place a pipe has taken: `kept` is the file itself."""

    number: int
    kept: int
    pump: threading.Thread


_redacted: list[_Redacted] = []


def redact_output() -> None:
    """Have everything that this process and its children print from now on pass through the redactor, line by line.

    Output to a terminal is left alone: a person sees there what their own tool prints. What a process prints in the
    moment in which it is killed may be lost.
    """
    for number in (_STDOUT, _STDERR):
        if os.isatty(number):
            continue
        kept = os.dup(number)
        read, write = os.pipe()
        os.dup2(write, number)
        os.close(write)
        pump = threading.Thread(target=_pump, args=(read, kept), name=f"output-{number}", daemon=True)
        pump.start()
        _redacted.append(_Redacted(number, kept, pump))


def log_stream() -> TextIO:
    """Return where this process writes lines that are redacted already: what stderr was at first."""
    for each in _redacted:
        if each.number == _STDERR:
            return os.fdopen(os.dup(each.kept), "w", buffering=1)
    return sys.stderr


def write_out() -> None:
    """Write what was printed by now; to be called before the process ends."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    while _redacted:
        each = _redacted.pop()
        os.dup2(each.kept, each.number)  # closes the end of the pipe that this process writes to
        each.pump.join(_LAST_SECONDS)


def _pump(read: int, kept: int) -> None:
    """Write on each line once it is whole, so that no secret is cut in two."""
    rest = b""
    with suppress(OSError):
        while chunk := os.read(read, _CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                _write(kept, line + b"\n")
            if len(rest) > _MAX_LINE_BYTES:
                _write(kept, rest)
                rest = b""
        _write(kept, rest)


def _write(kept: int, line: bytes) -> None:
    text = redact(line.decode("utf-8", "surrogateescape"))
    written = memoryview(text.encode("utf-8", "surrogateescape"))
    while written:
        written = written[os.write(kept, written) :]
