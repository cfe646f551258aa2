"""What tools print, and what the processes that they start print, reaches the log of a
worker without secrets.
"""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TextIO

from sennit.activities.toolbox.redaction import redact, safe_length

_STDOUT: Final = 1
_STDERR: Final = 2
_CHUNK: Final = 64 * 1024
_MAX_LINE_BYTES: Final = 64 * 1024  # a longer line is written in parts
_LONGEST_WAIT: Final = 16 * _MAX_LINE_BYTES
"""For which the beginning of a secret is kept back."""
_LAST_SECONDS: Final = 2.0  # for the last lines at the end of the process


@dataclass(frozen=True, slots=True)
class _Redacted:
    """An open file whose place a pipe has taken: `kept` is the file itself."""

    number: int
    kept: int
    pump: threading.Thread


_redacted: list[_Redacted] = []


def redact_output() -> None:
    """Have everything that this process and its children print from now on pass through the
    redactor, line by line.

    Output to a terminal is left alone: a person sees there what their own tool prints. What a
    process prints in the moment in which it is killed may be lost.
    """
    for number in (_STDOUT, _STDERR):
        if os.isatty(number):
            continue
        kept = os.dup(number)
        read, write = os.pipe()
        os.dup2(write, number)
        os.close(write)
        pump = threading.Thread(
            target=_pump, args=(read, kept), name=f"output-{number}", daemon=True
        )
        pump.start()
        _redacted.append(_Redacted(number, kept, pump))


def log_stream() -> TextIO:
    """Return where this process writes lines that are redacted already:
    what stderr was at first.
    """
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
    """Write on each line once it is whole, so that no secret is cut in two. Whatever becomes of
    what is written, the pipe is read to its end: a process whose pipe is full would stand still.
    """
    rest = b""
    with suppress(OSError):
        while chunk := os.read(read, _CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                _write(kept, line + b"\n")
            if len(rest) > _MAX_LINE_BYTES:
                rest = _write_part(kept, rest)
    _write(kept, rest)


def _write_part(kept: int, line: bytes) -> bytes:
    """Write of a line that goes on what can be masked for good, and return what waits for more."""
    text = line.decode("utf-8", "surrogateescape")
    safe = safe_length(text)
    if not safe and len(line) > _LONGEST_WAIT:  # nothing that long is one secret
        safe = len(text)
    _write(kept, text[:safe].encode("utf-8", "surrogateescape"))
    return text[safe:].encode("utf-8", "surrogateescape")


def _write(kept: int, line: bytes) -> None:
    """Write a line without secrets. One that cannot be written, as to a full disk, is lost."""
    text = redact(line.decode("utf-8", "surrogateescape"))
    written = memoryview(text.encode("utf-8", "surrogateescape"))
    with suppress(OSError):
        while written:
            written = written[os.write(kept, written) :]
