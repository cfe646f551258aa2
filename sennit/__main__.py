"""The `sennit` command: runs what the command line asks for, and turns every ending into a
line and an exit code.
"""

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

from sennit.starter.client.errors import Exit, NoNamespace, SennitError
from sennit.starter.commands.command_line import parse
from sennit.starter.terminal.console import terminal_for
from sennit.workflows.plan.language.text import one_line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` and return its exit code. Errors are a line, never a traceback.

    Without `argv` this is the program itself: it runs its own command line and
    then leaves the process.
    """
    sys.excepthook = _report_crash
    # Closed ones are None.
    sys.stdout, sys.stderr = sys.stdout or _open_null(), sys.stderr or _open_null()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a stream put in its place may lack it
    if argv is None:
        _leave(_run(sys.argv[1:]))
    return _run(argv)


def _open_null() -> TextIO:
    return Path(os.devnull).open("w")


def _run(argv: Sequence[str]) -> int:
    try:
        args = parse(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    terminal = terminal_for(args)
    try:
        return int(
            asyncio.run(
                importlib.import_module(f"sennit.starter.commands.{args.module}").run(
                    args, terminal
                )
            )
        )
    except SennitError as error:
        way = (
            f"; create it with: sennit setup{terminal.flags}"
            if isinstance(error, NoNamespace)
            else ""
        )
        terminal.notice(f"{error}" if error.prefixed else f"sennit: {error}{way}")
        return error.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the answer has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED


def _leave(code: int) -> NoReturn:
    """Flush what was written and end the process now.

    Not through the interpreter's own end: the SDK's core may still hold threads in
    Python, and then it aborts.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _report_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Report an unexpected error in a line, with the traceback only on request.
    Ends the process with 1.
    """
    if issubclass(kind, KeyboardInterrupt):
        _leave(Exit.INTERRUPTED)
    debug = os.environ.get("SENNIT_DEBUG") == "1"
    if debug:
        traceback.print_exception(kind, error, trace)
    hint = "" if debug else " (SENNIT_DEBUG=1 shows where)"
    sys.stderr.write(
        f"sennit: this is a defect of sennit: {kind.__name__}: {one_line(str(error))[:300]}{hint}\n"
    )
    _leave(Exit.FAILED)


if __name__ == "__main__":
    main()
