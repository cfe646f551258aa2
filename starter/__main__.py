"""The `sennit` command: chooses what to do, and turns every way it can end into a line and an exit code."""

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TextIO

from starter.arguments import parse
from starter.client.errors import CliError, Exit
from starter.terminal.console import terminal_for
from workflows.plan.language.text import one_line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` and return its exit code. What is wrong is told in a line, never in a traceback.

    Without `argv` this is the program itself: it runs its own command line and then leaves the process.
    """
    sys.excepthook = _crash
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()  # closed ones are None
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a stream put in its place may lack it
    if argv is None:
        _leave(_run(sys.argv[1:]))
    return _run(argv)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def _run(argv: Sequence[str]) -> int:
    try:
        args = parse(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    terminal = terminal_for(args)
    try:
        return int(asyncio.run(importlib.import_module(f"starter.commands.{args.module}").run(args, terminal)))
    except CliError as stop:
        terminal.tell(str(stop) if stop.bare else f"sennit: {stop}")
        return stop.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the answer has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED


def _leave(code: int) -> NoReturn:
    """End the process now with what was written flushed.

    Not through the interpreter's own end: the SDK's core may still hold threads in Python, and then it aborts.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report what nobody foresaw: a line, and the traceback only on request. Ends the process with 1."""
    if issubclass(kind, KeyboardInterrupt):
        _leave(Exit.INTERRUPTED)
    asked = os.environ.get("SENNIT_DEBUG") == "1"
    if asked:
        traceback.print_exception(kind, error, trace)
    hint = "" if asked else " (SENNIT_DEBUG=1 shows where)"
    sys.stderr.write(f"sennit: this is a defect of sennit: {kind.__name__}: {one_line(str(error))[:300]}{hint}\n")
    _leave(Exit.FAILED)


if __name__ == "__main__":
    main()
