import signal
import subprocess
import sys
from pathlib import Path

from starter.dev.lock import FileLock, exclusive


def test_a_lock_has_one_holder_and_asking_takes_nothing(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert not first.held_by_other()
    assert first.try_acquire()
    assert second.held_by_other()
    assert not first.held_by_other()
    assert not second.try_acquire()
    first.release()
    assert not second.held_by_other()
    assert second.try_acquire()
    second.release()


def test_a_killed_holder_holds_no_lock(tmp_path: Path) -> None:
    script = f"""
import pathlib, signal
from starter.dev.lock import FileLock
lock = FileLock(pathlib.Path({str(tmp_path / "lock")!r}))
lock.try_acquire()
print("held", flush=True)
signal.pause()
"""
    mine = FileLock(tmp_path / "lock")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not mine.try_acquire()
        holder.send_signal(signal.SIGKILL)
    assert mine.try_acquire()
    mine.release()


def test_who_waits_is_told_and_comes_next(tmp_path: Path) -> None:
    holder = FileLock(tmp_path / "lock")
    assert holder.try_acquire()
    with exclusive(tmp_path / "lock", lambda _: holder.release(), poll=0.001):
        assert FileLock(tmp_path / "lock").held_by_other()
