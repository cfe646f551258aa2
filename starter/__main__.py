"""The `weft` command: chooses what to do, and turns every way it can end into a line and an exit code."""

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from starter.arguments import parse
from starter.exits import Exit, Stop
from starter.printable import flat
from starter.terminal import terminal_for


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` and return its exit code. What is wrong is told in a line, never in a traceback."""
    sys.excepthook = _crash
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a stream put in its place may lack it
    try:
        args = parse(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    terminal = terminal_for(args)
    try:
        return int(asyncio.run(importlib.import_module(f"starter.commands.{args.module}").run(args, terminal)))
    except Stop as stop:
        terminal.tell(str(stop) if stop.bare else f"weft: {stop}")
        return stop.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the answer has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report what nobody foresaw: a line, and the traceback only on request; the interpreter then exits with 1."""
    if os.environ.get("WEFT_DEBUG") == "1":
        traceback.print_exception(kind, error, trace)
    said = flat(str(error))[:300]
    hint = "" if os.environ.get("WEFT_DEBUG") == "1" else " (WEFT_DEBUG=1 shows where)"
    sys.stderr.write(f"weft: this is a defect of weft: {kind.__name__}: {said}{hint}\n")


if __name__ == "__main__":
    sys.exit(main())
