"""Code that wants out of the sandbox, or wants all of the machine: every way is tried for real, in each sandbox."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.sandboxes import sandbox_of

from activities.sandbox import bubblewrap, runner
from activities.sandbox.runner import LIMITS, Report, Sandbox
from activities.toolbox.errors import SandboxLimit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandboxes are those of Linux")
CANARY = "canary-5f1d"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that the confined user can get to, as a worker's is."""
    with tempfile.TemporaryDirectory(prefix="escapes-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(params=["bwrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    return sandbox_of(request.param, tmp_path)


def test_a_sandbox_that_this_kernel_has_and_that_is_broken_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox_of("landlock", tmp_path)  # skipped where there is none
    monkeypatch.setattr(runner, "_MAIN", "no Python")
    with pytest.raises(pytest.fail.Exception, match=r"^landlock: "):
        sandbox_of("landlock", tmp_path)


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path) -> Iterator[None]:
    """No process and no folder of a test may outlive its call."""
    yield
    assert [path.name for path in tmp_path.glob("sennit-sandbox-*")] == []
    assert running(str(tmp_path)) == []


def running(mark: str) -> list[str]:
    """Return the command lines of processes that mention `mark`, but for this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if mark in line and int(entry.parent.name) != os.getpid():
            found.append(line)
    return found


async def run(sandbox: Sandbox, code: str, seconds: int = 5) -> Report:
    return await sandbox.run([sandbox.python, "-I", "-B", "-c", code], {"in.txt": "given"}, seconds)


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


async def test_no_secret_of_the_worker(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    (tmp_path / "key.txt").write_text(CANARY)
    (tmp_path / "key.txt").chmod(0o644)
    worker = os.getpid()
    await refused(
        sandbox,
        f"print(open('{tmp_path}/key.txt').read())",
        f"print(open('/proc/{worker}/environ').read())",
        f"print(open('/proc/{worker}/mem', 'rb').read(1))",
        f"import os; print(os.readlink('/proc/{worker}/exe'))",
        "print(open('/etc/passwd').read())",
        f"import os; os.symlink('{tmp_path}/key.txt', 'link'); print(open('link').read())",
        f"import os; os.link('{tmp_path}/key.txt', 'hard'); print(open('hard').read())",
    )
    seen = await run(sandbox, "import os, glob; print(dict(os.environ)); print([open(p).read() for p in"
                              " glob.glob('/proc/[0-9]*/environ') if os.access(p, os.R_OK)])")  # fmt: skip
    assert CANARY not in seen.stdout
    assert str(tmp_path) not in seen.stdout or sandbox.method == "landlock"  # there the folder has its own name


async def test_a_link_left_behind_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text(CANARY)
    code = f"import os; os.symlink('{tmp_path}/key.txt', 'a.txt'); os.symlink('/', 'b'); os.mkfifo('c')"
    report = await run(sandbox, code)
    assert (report.exit_code, report.files) == (0, {})
    assert report.left_out == ["a.txt", "b", "c"]
    assert (tmp_path / "key.txt").read_text() == CANARY


async def test_no_writing_outside_of_the_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "mine.txt").chmod(0o666)
    mode = (tmp_path / "mine.txt").stat().st_mode
    places = (str(tmp_path), "/tmp", "/usr/local", "/etc", "/dev/shm", "/var/tmp", "/", "..")
    acts = ("os.truncate({0!r}, 0)", "os.unlink({0!r})", "os.rename({0!r}, 'x')")
    await refused(
        sandbox,
        *(f"open('{place}/escaped', 'w').write('x')" for place in places),
        *(f"import os; os.mkdir('{place}/escaped')" for place in places),
        *("import os; " + act.format(str(tmp_path / "mine.txt")) for act in acts),
    )
    await run(sandbox, f"import os; os.chmod('{tmp_path}/mine.txt', 0); os.utime('{tmp_path}/mine.txt', (1, 1))")
    assert ((tmp_path / "mine.txt").read_text(), (tmp_path / "mine.txt").stat().st_mode) == ("mine", mode)


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


async def test_a_fork_bomb_ends_with_its_time(sandbox: Sandbox) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with pytest.raises(SandboxLimit, match="stopped after 2 s"):
        await run(sandbox, bomb, 2)
    counted = """
import os, time
n = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
    except OSError:
        break
print(n)
"""
    assert 1 <= int((await run(sandbox, counted)).stdout) <= LIMITS["processes"]


async def test_memory_is_bounded_for_one_and_for_all(sandbox: Sandbox) -> None:
    (failure,) = await refused(sandbox, "x = bytearray(1 << 30)")
    assert failure.startswith("MemoryError")
    several = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (200 << 20)\ntime.sleep(20)"
    with pytest.raises(SandboxLimit, match="more than 1024 MB of memory"):
        await run(sandbox, several, 15)


async def test_no_memory_outside_of_the_limits(sandbox: Sandbox) -> None:
    secret = "import ctypes; assert ctypes.CDLL(None).syscall(447, 0) >= 0"
    in_memory, of_secrets = await refused(sandbox, "import os; os.memfd_create('m')", secret)
    assert "Function not implemented" in in_memory
    assert "AttributeError" not in of_secrets


async def test_output_and_disk_are_bounded(sandbox: Sandbox) -> None:
    report = await run(sandbox, "print('x' * 1_000_000)")
    assert (report.exit_code, len(report.stdout), report.truncated) == (0, LIMITS["output"], True)
    with pytest.raises(SandboxLimit, match="writing without end"):
        await run(sandbox, "while True: print('x' * 10_000)", 20)
    (failure,) = await refused(sandbox, f"open('big', 'wb').write(b'x' * {2 * LIMITS['file']})")
    assert "File too large" in failure
    large = "for i in range(100): open(f'{i}', 'wb').write(b'x' * (16 << 20))\nwhile True: pass"
    many = "for i in range(20_000): open(f'{i}', 'w')\nwhile True: pass"
    nameless = "import os\nfor i in range(10): f = os.open('f', 66); os.unlink('f'); os.write(f, bytes(48 << 20))\n"
    for code in (large, many, nameless + "while True: pass"):
        with pytest.raises(SandboxLimit, match="more than 128 MB or 10,000 files"):
            await run(sandbox, code, 60)


async def test_processor_time_is_bounded_and_wall_time_too(sandbox: Sandbox) -> None:
    for code in ("while True: pass", "import time; time.sleep(60)", "import os, signal; os.kill(0, signal.SIGSTOP)"):
        with pytest.raises(SandboxLimit, match="stopped after 1 s"):
            await run(sandbox, code, 1)


async def test_children_in_sessions_of_their_own_do_not_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', '{tmp_path}'])\n"
        "    os._exit(0)\ntime.sleep(0.5)"
    )
    assert (await run(sandbox, code)).exit_code == 0


async def test_a_tangle_of_folders_is_cleared(sandbox: Sandbox) -> None:
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nopen('x', 'w'); os.chmod('.', 0)"
    assert (await run(sandbox, deep)).exit_code == 0


async def test_a_cancelled_call_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    task = asyncio.create_task(run(sandbox, f"import time; open('here', 'w'); time.sleep(60) # {tmp_path}", 60))
    await until_begun(tmp_path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_killed_worker_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, pathlib\nfrom activities.sandbox.runner import find_sandbox\n"
        f"sandbox = find_sandbox({sandbox.method!r}, pathlib.Path({str(tmp_path)!r}))\n"
        f'code = \'import time; open("here", "w"); time.sleep(60) # {tmp_path}\'\n'
        "asyncio.run(sandbox.run([sandbox.python, '-c', code], {}, 60))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    await until_begun(tmp_path)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    async with asyncio.timeout(20):
        while list(tmp_path.glob("sennit-sandbox-*")) or running(str(tmp_path)):
            await asyncio.sleep(0.05)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that every user can read")
def test_a_worker_that_is_not_root_shields_itself(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pod: the code has the worker's own user, so only the sandbox stands between them."""
    user = 4242
    os.chown(tmp_path, user, user)
    shutil.copytree(Path(runner.__file__).parent, tmp_path / "code" / "activities" / "sandbox")
    monkeypatch.setattr(runner, "_ROOT", str(tmp_path / "code"))
    monkeypatch.setattr(bubblewrap, "__file__", str(tmp_path / "code/activities/sandbox/bubblewrap.py"))
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
            f"os.unlink('{tmp_path}/code/activities/sandbox/runner.py')",
        )
        code = "import os, resource\nfor act in %r:\n    try: exec(act)\n    except OSError: pass\n    else: print(act)"
        job = replace(sandbox, python=python).job([python, "-I", "-c", code % (tries,)], {}, 5)
        supervisor = subprocess.Popen(
            runner._start("supervisor", str(tmp_path / "code")),
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
    async with asyncio.timeout(20):
        while not list(folder.glob("sennit-sandbox-*/here")):
            await asyncio.sleep(0.02)
