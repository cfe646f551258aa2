"""Code that wants out of the sandbox: every way is tried for real, in each sandbox. What wants too much is in
test_sandbox_limits.py."""

import asyncio
import errno
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.sandboxes import marked_processes, run, sandbox_of

from sennit.activities.sandbox import bubblewrap, landlock, reaper, runner, seccomp
from sennit.activities.sandbox.runner import Sandbox
from sennit.activities.toolbox.errors import SandboxLimit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandboxes are those of Linux")
CANARY = "canary-5f1d"


def test_a_sandbox_that_this_kernel_has_and_that_is_broken_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    sandbox_of("landlock", folder)  # skipped where there is none
    monkeypatch.setattr(reaper, "_MAIN", "no Python")
    with pytest.raises(pytest.fail.Exception, match=r"^landlock: "):
        sandbox_of("landlock", folder)


async def refused(sandbox: Sandbox, *attempts: str) -> list[str]:
    """Try everything in one process and return how each attempt failed; none may succeed or show the canary."""
    code = """
for attempt in %r:
    try:
        exec(attempt)
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("REACHED", attempt)
"""
    report = await run(sandbox, code % (attempts,))
    failures = report.stdout.splitlines()
    assert (report.exit_code, len(failures)) == (0, len(attempts)), report
    assert [line for line in failures if "REACHED" in line or "Error" not in line] == []
    assert CANARY not in report.stdout + report.stderr
    return failures


async def test_no_network(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        await refused(
            sandbox,
            f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
            "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
            "import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
            "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('/run/docker.sock')",
            "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        )
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


async def test_no_secret_of_the_worker(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    (folder / "key.txt").write_text(CANARY)
    (folder / "key.txt").chmod(0o644)
    worker = os.getpid()
    await refused(
        sandbox,
        f"print(open('{folder}/key.txt').read())",
        f"print(open('/proc/{worker}/environ').read())",
        f"print(open('/proc/{worker}/mem', 'rb').read(1))",
        f"import os; print(os.readlink('/proc/{worker}/exe'))",
        "print(open('/etc/passwd').read())",
        f"import os; os.symlink('{folder}/key.txt', 'link'); print(open('link').read())",
        f"import os; os.link('{folder}/key.txt', 'hard'); print(open('hard').read())",
    )
    seen = await run(sandbox, "import os, glob; print(dict(os.environ)); print([open(p).read() for p in"
                              " glob.glob('/proc/[0-9]*/environ') if os.access(p, os.R_OK)])")  # fmt: skip
    assert CANARY not in seen.stdout
    assert str(folder) not in seen.stdout or sandbox.method == "landlock"  # there the folder has its own name


async def test_a_link_left_behind_is_not_followed(sandbox: Sandbox, folder: Path) -> None:
    (folder / "key.txt").write_text(CANARY)
    code = f"import os; os.symlink('{folder}/key.txt', 'a.txt'); os.symlink('/', 'b'); os.mkfifo('c')"
    report = await run(sandbox, code)
    assert (report.exit_code, report.files) == (0, {})
    assert report.left_out == ["a.txt", "b", "c"]
    assert (folder / "key.txt").read_text() == CANARY


async def test_no_writing_outside_of_the_folder(sandbox: Sandbox, folder: Path) -> None:
    folder.chmod(0o777)
    (folder / "mine.txt").write_text("mine")
    (folder / "mine.txt").chmod(0o666)
    mode = (folder / "mine.txt").stat().st_mode
    places = (str(folder), "/tmp", "/usr/local", "/etc", "/dev/shm", "/var/tmp", "/", "..")
    acts = ("os.truncate({0!r}, 0)", "os.unlink({0!r})", "os.rename({0!r}, 'x')")
    await refused(
        sandbox,
        *(f"open('{place}/escaped', 'w').write('x')" for place in places),
        *(f"import os; os.mkdir('{place}/escaped')" for place in places),
        *("import os; " + act.format(str(folder / "mine.txt")) for act in acts),
    )
    await run(sandbox, f"import os; os.chmod('{folder}/mine.txt', 0); os.utime('{folder}/mine.txt', (1, 1))")
    assert ((folder / "mine.txt").read_text(), (folder / "mine.txt").stat().st_mode) == ("mine", mode)


async def test_no_hand_on_other_processes(sandbox: Sandbox) -> None:
    worker = os.getpid()
    await refused(
        sandbox,
        f"import os; os.kill({worker}, 0)",
        f"import resource; resource.prlimit({worker}, resource.RLIMIT_NOFILE, (1, 1))",
        f"import os; os.setpriority(os.PRIO_PROCESS, {worker}, 19)",
        f"import os; os.sched_setaffinity({worker}, {{0}})",
        f"import ctypes, os; assert ctypes.CDLL(None, use_errno=True).ptrace(16, {worker}, 0, 0) == 0, 'Error'",
        "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0, 'Error'",
        "import ctypes; assert ctypes.CDLL(None).syscall(425, 8, 0) >= 0, 'Error'",
        "import os; os.setuid(0)",
    )


async def test_no_queue_segment_or_watch_of_other_processes(sandbox: Sandbox) -> None:
    names = ("shmat", "shmctl", "msgsnd", "msgrcv", "msgctl", "semop", "semtimedop", "semctl", "mq_unlink",
             "inotify_init1", "fanotify_init", "socketpair")  # fmt: skip
    column = 0 if platform.machine() == "x86_64" else 1
    code = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    for name in names:
        number = seccomp.DENIED[name][column]
        code += f"libc.syscall({number}, 0, 0, 0, 0)\nprint({name!r}, ctypes.get_errno())\n"
    assert (await run(sandbox, code)).stdout.splitlines() == [f"{name} {errno.EPERM}" for name in names]


async def test_no_memory_outside_of_the_limits(sandbox: Sandbox) -> None:
    secret = "import ctypes; assert ctypes.CDLL(None).syscall(447, 0) >= 0"
    in_memory, of_secrets = await refused(sandbox, "import os; os.memfd_create('m')", secret)
    assert "Function not implemented" in in_memory
    assert "AttributeError" not in of_secrets


async def test_children_in_sessions_of_their_own_do_not_stay(sandbox: Sandbox, folder: Path) -> None:
    code = (
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', '{folder}'])\n"
        "    os._exit(0)\ntime.sleep(0.5)"
    )
    assert (await run(sandbox, code)).exit_code == 0


async def test_a_tangle_of_folders_is_cleared(sandbox: Sandbox) -> None:
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nopen('x', 'w'); os.chmod('.', 0)"
    if sandbox.namespaces:
        assert (await run(sandbox, deep)).exit_code == 0
    else:
        with pytest.raises(SandboxLimit, match="40 nested folders"):
            await run(sandbox, deep)
    closed = "import os\nos.makedirs('a/b')\nopen('a/b/x', 'w')\nos.chmod('a', 0)\nos.mkdir('c', 0)"
    with suppress(SandboxLimit):  # it cannot be looked into
        assert (await run(sandbox, closed)).exit_code == 0


async def test_what_the_code_writes_is_not_the_word_of_the_sandbox(sandbox: Sandbox) -> None:
    for claim in ("sandbox: [Errno 1] Landlock", "bwrap: No permissions to create new namespace"):
        report = await run(sandbox, f"import sys\nsys.stderr.write({claim!r})\nsys.exit(125)")
        assert (report.exit_code, report.stderr) == (125, claim)


async def test_a_name_that_cannot_be_printed_is_no_name_of_a_file(sandbox: Sandbox) -> None:
    names = ("a\nb.txt", "\x1b[2J", "c\u2028d", "e\u202ef", os.fsdecode(b"g\xff"))
    report = await run(sandbox, f"for name in {names!r}: open(name, 'w').write('x')")
    assert (report.exit_code, report.files) == (0, {})
    assert sorted(report.left_out) == sorted(["a\ufffdb.txt", "\ufffd[2J", "c\ufffdd", "e\ufffdf", "g\ufffd"])


BEGUN = "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', 'be' 'gun'{0}])"


async def test_a_cancelled_call_leaves_nothing(sandbox: Sandbox, folder: Path) -> None:
    task = asyncio.create_task(run(sandbox, BEGUN.format(f", {str(folder)!r}"), 60))
    await until_begun(folder)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_killed_worker_leaves_nothing(sandbox: Sandbox, folder: Path) -> None:
    code = (
        "import asyncio, pathlib\nfrom sennit.activities.sandbox.runner import Sandbox\nfrom pathlib import PosixPath\n"
        f"sandbox = {sandbox!r}\ncode = {BEGUN.format(f', {str(folder)!r}')!r}\n"
        "asyncio.run(sandbox.run([sandbox.python, '-c', code], {}, 60))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    await until_begun(folder)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    async with asyncio.timeout(20):
        while list(folder.glob("sennit-sandbox-*")) or marked_processes(folder):
            await asyncio.sleep(0.05)


SIGNAL_BY_FILE = """
import fcntl, os, resource
def by_file(pid):
    "Make the kernel send SIGKILL when something can be read."
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
        fcntl.fcntl(reading, 10, 9)
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")
    except OSError:
        pass
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that every user can read")
@pytest.mark.parametrize("sandbox", ["bwrap", "pod"], indirect=True)
@pytest.mark.parametrize("landlock_version", [3, 5, 6])
def test_a_worker_that_is_not_root_shields_itself(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch, landlock_version: int
) -> None:
    """As in a pod: the code has the worker's own user, so only the sandbox stands between them."""
    if sandbox.method == "landlock" and landlock.version() < landlock_version:
        pytest.skip("this kernel has an older Landlock")
    monkeypatch.setattr(landlock, "version", lambda: landlock_version)
    sandbox = replace(sandbox, namespaces=sandbox.method == "bwrap", groups=None)
    user = 4242
    os.chown(folder, user, user)
    shutil.copytree(Path(runner.__file__).parent, folder / "code/sennit/activities/sandbox")
    monkeypatch.setattr(runner, "ROOT", str(folder / "code"))
    monkeypatch.setattr(bubblewrap, "__file__", str(folder / "code/sennit/activities/sandbox/bubblewrap.py"))
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(os, "getuid", lambda: user)
    python = "/python/bin/python3" if sandbox.method == "bwrap" else "/usr/bin/python3"
    with subprocess.Popen(["/bin/sleep", "60"], user=user, group=user, extra_groups=[]) as other:
        tries = (
            f"os.kill({other.pid}, 9)",
            f"resource.prlimit({other.pid}, resource.RLIMIT_CPU, (1, 1))",
            f"os.setpriority(0, {other.pid}, 19)",
            f"open('/proc/{other.pid}/environ').read()",
            f"os.unlink('{folder}/code/sennit/activities/sandbox/runner.py')",
        )
        code = SIGNAL_BY_FILE + (
            f"by_file({other.pid})\nby_file(os.getppid())\n"
            f"for act in {tries!r}:\n    try: exec(act)\n    except OSError: pass\n    else: print(act)"
        )
        job = replace(sandbox, python=python).job([python, "-I", "-c", code], {}, 5, None)
        supervisor = subprocess.Popen(
            reaper.starter_of("supervisor", str(folder / "code")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, user=user, group=user, extra_groups=[],
        )  # fmt: skip
        with supervisor:
            assert supervisor.stdin is not None
            assert supervisor.stdout is not None
            supervisor.stdin.write(job)
            supervisor.stdin.flush()
            report = json.loads(supervisor.stdout.read())
        alive = other.poll() is None
        other.kill()
    assert (report["exit_code"], report["stdout"], report["stderr"], alive) == (0, "", "", True)


async def until_begun(folder: Path) -> None:
    async with asyncio.timeout(100):
        while not any("begun" in line for line in marked_processes(folder)):
            await asyncio.sleep(0.02)
