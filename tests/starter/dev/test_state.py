import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sennit.starter.dev.messages import LocalStackFailed
from sennit.starter.dev.state import ProcessIdentity, StackRecord, StateDir, try_lock

RECORD = StackRecord(phase="ready", supervisor=ProcessIdentity(pid=1, created=0.5), port=7233)
HOLDER = """
import pathlib, signal, sys
from sennit.starter.dev.state import StateDir, try_lock
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
    state.root.chmod(0o755)
    with pytest.raises(LocalStackFailed, match=f"other users may enter the state directory .*`chmod 700 {state.root}`"):
        state.prepare()


def test_a_state_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = StateDir(tmp_path / "file" / "state")
    assert not nowhere.running()
    with pytest.raises(LocalStackFailed, match=r"state cannot be written: Not a directory; .* SENNIT_STATE"):
        nowhere.prepare()
    locked = StateDir(tmp_path)
    locked.supervisor_lock.mkdir()
    with pytest.raises(LocalStackFailed, match=f"{tmp_path} cannot be written: Is a directory"):
        locked.running()


def test_the_store_is_made_only_together_with_the_database(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    state.prepare()
    assert state.artifacts.is_dir()
    state.database.touch()
    state.artifacts.rename(tmp_path / "away")
    state.prepare()
    assert not state.artifacts.exists()


NEWER = RECORD.model_dump_json().replace('"phase"', '"new_field":1,"phase"')


@pytest.mark.parametrize(
    ("text", "record"),
    [("", None), ("{", None), ('{"phase": "ready"}', None), ("[]", None), (None, None), (NEWER, RECORD)],
)
def test_a_record_of_another_version_is_read_if_it_can_be(
    tmp_path: Path, text: str | None, record: StackRecord | None
) -> None:
    state = StateDir(tmp_path)
    if text is not None:
        state.record.write_text(text)
    assert state.read() == record
    state.write(RECORD)
    assert state.read() == RECORD


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


def test_an_identity_is_of_one_process_and_not_of_its_number() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    assert me.alive
    assert ProcessIdentity.of(os.getpid()) == me
    assert ProcessIdentity.current() == me
    assert not me.model_copy(update={"created": me.created - 10}).alive
    assert ProcessIdentity.of(2**22 + 1) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the start of processes from the boot")
@pytest.mark.parametrize("step", [-3600.0, 1.0])
def test_an_identity_stays_the_same_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    me, boot = ProcessIdentity.current(), psutil.boot_time()
    monkeypatch.setattr("psutil._psplatform.boot_time", lambda: boot + step)  # which `create_time` adds
    assert psutil.boot_time() == boot + step
    assert me.alive
    assert not me.model_copy(update={"boot": "of yesterday"}).alive


FIRST_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no thread outlives the first one")
def test_a_process_whose_first_thread_has_ended_is_alive_until_all_have() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], start_new_session=True) as child:
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.02)
        alive = ProcessIdentity.of(child.pid)
        assert alive is not None
        assert alive.kill_group()
        assert ProcessIdentity.of(child.pid) is None


def test_a_process_that_waits_to_be_reaped_is_not_alive() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
        alive = ProcessIdentity.of(child.pid)
        assert alive is not None
        assert alive.kill_group()
        assert ProcessIdentity.of(child.pid) is None
        alive.signal(signal.SIGTERM)
