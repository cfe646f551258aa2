import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sennit.starter.dev import child
from sennit.starter.dev.child import Child
from sennit.starter.dev.messages import LocalStackFailed, WrongSettings
from sennit.starter.dev.state import ProcessIdentity

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


class Script(Child):
    """A Python script, ready as soon as it has written its note."""

    name = "the script"

    def __init__(self, folder: Path, script: str, grace: float = 5.0) -> None:
        super().__init__(folder / "logs" / "script.log")
        self.note = folder / "note"
        self.grace = grace
        self.command = [sys.executable, "-c", script, str(self.note)]

    async def start(self) -> None:
        await self.launch(self.command, os.environ, limit=10)

    async def responds(self) -> bool:
        return self.note.exists() and bool(self.note.read_text())


@pytest.fixture
async def parent(tmp_path: Path) -> tuple[Script, ProcessIdentity]:
    """A script and the process that it started itself."""
    script = Script(tmp_path, PARENT_AND_CHILD)
    await script.start()
    fork = ProcessIdentity.of(int(script.note.read_text()))
    assert fork is not None
    return script, fork


@pytest.mark.parametrize("crashed", [False, True])
async def test_what_a_command_left_is_ended_too(
    parent: tuple[Script, ProcessIdentity], eventually: Eventually, crashed: bool
) -> None:
    """Even a fork, which holds everything open that the command held."""
    script, fork = parent
    assert script.identity is not None
    if crashed:
        script.identity.signal(signal.SIGKILL)
    else:
        await script.stop()
        assert "the script was ended by SIGTERM" in script.ending
    await eventually(lambda: not fork.alive and not script.running)
    script.kill()


@pytest.mark.parametrize("owner_dies", [False, True])
async def test_a_command_deaf_to_sigterm_is_killed_after_the_grace(
    tmp_path: Path, eventually: Eventually, owner_dies: bool
) -> None:
    script = Script(tmp_path, DEAF, grace=0.1)
    await script.start()
    if owner_dies:
        assert script._owner is not None
        os.close(script._owner)  # what the system does when the owner is killed
        script._owner = None
        await eventually(lambda: not script.running)
    await script.stop()
    assert "the script was ended by SIGKILL" in script.ending


async def test_a_command_that_ends_is_a_failure_with_what_it_wrote_last(tmp_path: Path) -> None:
    script = Script(tmp_path, "import sys; print('hello'); sys.exit(7)")
    for _ in range(2):
        with pytest.raises(LocalStackFailed, match=r"the script ended with exit status 7; the end of .*log:\nhello$"):
            await script.start()
    assert script.log.read_text() == "hello\nhello\n"
    assert script.log.stat().st_mode & 0o077 == 0
    script.command = [str(tmp_path / "nothing")]
    with pytest.raises(LocalStackFailed, match="/nothing: No such file or directory"):
        await script.start()


async def test_a_command_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    script = Script(tmp_path, "import signal; signal.pause()")
    with pytest.raises(LocalStackFailed, match="the script was not ready after 0 s"):
        await script.launch(script.command, os.environ, limit=0.1)
    assert not script.running


class Silent(Script):
    """Ready as soon as it has written its note; then it only runs."""

    async def lives(self) -> bool:
        return False


async def test_a_command_that_runs_and_does_not_answer_is_killed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "PROBE_PAUSE", 0.01)
    silent = Silent(tmp_path, DEAF)
    messages: list[str] = []
    started: list[ProcessIdentity | None] = []

    def changed(ready: bool) -> None:
        if ready:
            started.append(silent.identity)
        if len(started) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await silent.keep_running(messages.append, changed)
    silent.kill()
    assert messages == [
        "the script ran and did not answer 6 times in a row, so it was killed; starting it again in 0.2 s"
    ]
    assert not any(each.alive for each in started if each)


class Fated(Script):
    """A child whose starts fail or succeed as given, the last one for ever; it dies as soon as it is ready."""

    def __init__(self, folder: Path, fates: list[LocalStackFailed | None]) -> None:
        super().__init__(folder, "")
        self.fates = fates
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        if fate:
            raise fate


@pytest.mark.parametrize(
    ("fates", "starts"),
    [
        ([LocalStackFailed("never ready")], 5),
        ([WrongSettings("refuses a setting")], 1),
        ([None], 20),
        ([None, WrongSettings("now refuses a setting")], 20),
    ],
)
async def test_a_child_that_keeps_dying_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fates: list[LocalStackFailed | None], starts: int
) -> None:
    monkeypatch.setattr(child, "MAX_RESTART_PAUSE_SECONDS", 0.0)
    fated = Fated(tmp_path, fates)
    messages: list[str] = []
    with pytest.raises(LocalStackFailed, match=r"never ready|a setting|the script ended"):
        await fated.keep_running(messages.append, lambda ready: None)
    assert fated.starts == starts
    assert len(messages) == starts - 1
    assert all(line.endswith("; starting it again in 0 s") for line in messages)


async def test_one_that_lived_long_starts_again_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_RESTART_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(child, "STEADY", -1.0)
    fated = Fated(tmp_path, [None] * 50 + [WrongSettings("the end")])

    def changed(ready: bool) -> None:
        if fated.starts > 50:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await fated.keep_running(lambda _: None, changed)
