import signal
import subprocess
import sys
from pathlib import Path

import pytest

from starter.dev.process import ProcessIdentity
from starter.dev.state import StackRecord, StateDir, try_lock

RECORD = StackRecord(phase="ready", supervisor=ProcessIdentity(pid=1, created=0.5), port=7233)
HOLDER = """
import pathlib, signal, sys
from starter.dev.state import StateDir, try_lock
lock = try_lock(StateDir(pathlib.Path(sys.argv[1])).supervisor_lock)
print("held", flush=True)
signal.pause()
"""


def test_the_state_directory_is_where_the_variables_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert StateDir.find({}).root == tmp_path / ".local" / "state" / "sennit"
    assert StateDir.find({"XDG_STATE_HOME": "/s"}).root == Path("/s/sennit")
    assert StateDir.find({"XDG_STATE_HOME": "s"}).root == tmp_path / ".local" / "state" / "sennit"
    assert StateDir.find({"XDG_STATE_HOME": "/s", "SENNIT_STATE": "~/mine"}).root == tmp_path / "mine"


def test_only_its_owner_may_look_into_a_new_state_directory(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    state.prepare()
    state.prepare()
    assert state.root.stat().st_mode & 0o077 == 0


def test_a_record_is_read_as_written(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert state.read() is None
    state.write(RECORD)
    assert state.read() == RECORD


@pytest.mark.parametrize("text", ["", "{", '{"phase": "ready"}', "[]"])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert StateDir(tmp_path).read() is None


def test_a_record_of_a_newer_version_is_read(tmp_path: Path) -> None:
    text = RECORD.model_dump_json().replace('"phase"', '"new_field":1,"phase"')
    (tmp_path / "stack.json").write_text(text)
    assert StateDir(tmp_path).read() == RECORD


def test_a_stack_runs_while_its_supervisor_does_whatever_the_record_says(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.write(RECORD)
    assert not state.running()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert state.running()
        assert try_lock(state.supervisor_lock) is None
        holder.send_signal(signal.SIGKILL)
    assert not state.running()
    lock = try_lock(state.supervisor_lock)
    assert lock is not None
    assert (tmp_path / "supervisor.lock").stat().st_mode & 0o077 == 0
    lock.release()
