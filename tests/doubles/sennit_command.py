"""The `sennit` command without the second that importing it takes: each process is a fork of one that has."""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from typing import NoReturn

_IMPORTED = [
    "sennit.__main__",
    *(f"sennit.starter.commands.{name}" for name in ("ask", "plan", "status", "update")),
]
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(_IMPORTED)


def sennit(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, limit: float, *, together: bool = False
) -> CompletedProcess[str]:
    """Run the command in `folder` to its end, with nobody at the keyboard. With `together`, stderr is in stdout.

    What depends on how the process itself is started is for tests that start a real one.
    """
    with tempfile.TemporaryDirectory() as place:
        paths = Path(place, "out"), Path(place, "out" if together else "err")
        process = _FORKS.Process(target=_become, args=(list(argv), dict(env), folder, *paths))
        process.start()
        process.join(limit)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired(argv, limit)
        out, err = (path.read_text() for path in paths)
        return CompletedProcess(argv, process.exitcode, out, "" if together else err)


def _become(argv: list[str], env: dict[str, str], folder: Path, out: Path, err: Path) -> NoReturn:
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["sennit", *argv]
    from sennit.__main__ import main

    sys.exit(main())
