import os
import signal
import subprocess
import sys

from starter.dev.process import ProcessIdentity


def test_an_identity_is_of_one_process_and_not_of_its_number() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    assert me.alive
    assert ProcessIdentity.of(os.getpid()) == me
    assert not ProcessIdentity(pid=me.pid, created=me.created - 10).alive
    assert ProcessIdentity.of(2**22 + 1) is None


def test_a_process_that_waits_to_be_reaped_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True) as child:
        alive = ProcessIdentity.of(child.pid)
        assert alive is not None
        assert alive.kill_group()
        assert ProcessIdentity.of(child.pid) is None
        alive.signal(signal.SIGTERM)
