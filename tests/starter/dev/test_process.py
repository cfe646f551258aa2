import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from starter.dev.identity import ProcessIdentity
from starter.dev.process import Process

Eventually = Callable[[Callable[[], object]], Awaitable[None]]

PARENT_AND_CHILD = """
import os, signal, sys, pathlib
child = os.fork()
if child == 0:
    signal.pause()
pathlib.Path(sys.argv[1]).write_text(str(child))
signal.pause()
"""
DEAF = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text("deaf")
signal.pause()
"""


def process(tmp_path: Path, script: str, grace: float = 5.0) -> Process:
    command = [sys.executable, "-c", script, str(tmp_path / "note")]
    return Process(command, log=tmp_path / "p.log", env=os.environ, cwd=tmp_path, grace=grace)


async def noted(tmp_path: Path, eventually: Eventually) -> str:
    note = tmp_path / "note"
    await eventually(lambda: note.exists() and note.read_text())
    return note.read_text()


async def test_output_goes_to_the_log_and_the_status_is_the_commands_own(tmp_path: Path) -> None:
    command = process(tmp_path, "import sys; print('hello'); sys.exit(7)")
    assert command.status == "was not started"
    for _ in range(2):
        command.start()
        assert await command.ended(10)
    assert command.status == "ended with exit status 7"
    assert (tmp_path / "p.log").read_text() == "hello\nhello\n"


async def test_what_a_stopped_command_left_is_ended_too(tmp_path: Path, eventually: Eventually) -> None:
    command = process(tmp_path, PARENT_AND_CHILD)
    command.start()
    child = ProcessIdentity.of(int(await noted(tmp_path, eventually)))
    assert child is not None

    await command.stop()

    assert command.status == "was ended by SIGTERM"
    await eventually(lambda: not child.alive)


async def test_what_a_crashed_command_left_is_ended_too(tmp_path: Path, eventually: Eventually) -> None:
    """Even a fork, which holds everything open that the command held."""
    command = process(tmp_path, PARENT_AND_CHILD)
    command.start()
    child = ProcessIdentity.of(int(await noted(tmp_path, eventually)))
    assert child is not None

    os.kill(command.pid, signal.SIGKILL)

    await eventually(lambda: not child.alive)
    assert await command.ended(10)
    await command.stop()


async def test_a_command_deaf_to_sigterm_is_killed_after_the_grace(tmp_path: Path, eventually: Eventually) -> None:
    command = process(tmp_path, DEAF)
    command.start()
    await noted(tmp_path, eventually)

    await command.stop(grace=0.1)

    assert command.status == "was ended by SIGKILL"


async def test_a_command_deaf_to_sigterm_ends_after_its_owner_and_the_grace(
    tmp_path: Path, eventually: Eventually
) -> None:
    command = process(tmp_path, DEAF, grace=0.1)
    command.start()
    await noted(tmp_path, eventually)

    command._disown()  # what the kernel does with the pipe of a killed owner

    assert await command.ended(10)
    assert command.status == "was ended by SIGKILL"


async def test_a_command_that_does_not_exist_says_so_in_the_log(tmp_path: Path) -> None:
    command = Process([str(tmp_path / "nothing")], log=tmp_path / "p.log", env={}, cwd=tmp_path, grace=1)
    command.start()
    assert await command.ended(10)
    assert command.status == "ended with exit status 1"
    assert (tmp_path / "p.log").read_text() == f"{tmp_path / 'nothing'}: No such file or directory\n"


async def test_a_running_command_is_not_started_twice(tmp_path: Path) -> None:
    command = process(tmp_path, "import signal; signal.pause()")
    command.start()
    with pytest.raises(RuntimeError, match="running already"):
        command.start()
    command.kill()
    assert not command.running
