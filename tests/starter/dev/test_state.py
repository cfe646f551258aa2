from pathlib import Path

import pytest

from starter.dev.identity import ProcessIdentity
from starter.dev.state import StackRecord, StateDir

RECORD = StackRecord(launch="a", phase="ready", supervisor=ProcessIdentity(pid=1, started="then"), port=7233)


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


@pytest.mark.parametrize("text", ["", "{", '{"launch": "a"}', "[]"])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert StateDir(tmp_path).read() is None


def test_a_record_of_a_newer_version_is_read(tmp_path: Path) -> None:
    text = RECORD.model_dump_json().replace('"launch"', '"new_field":1,"launch"')
    (tmp_path / "stack.json").write_text(text)
    assert StateDir(tmp_path).read() == RECORD


def test_without_a_supervisor_nothing_runs_whatever_the_record_says(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.write(RECORD)
    assert not state.running()
    lock = state.supervisor_lock
    assert lock.try_acquire()
    assert state.running()
    lock.release()
