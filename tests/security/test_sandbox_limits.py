"""Code that wants all of the machine: every limit of the sandbox is tried, and every way around it that was found."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from doubles.sandboxes import mark, run

from sennit.activities.sandbox.output_files import MAX_SANDBOX_FILES
from sennit.activities.sandbox.runner import LIMITS, Report, Sandbox
from sennit.activities.toolbox.errors import SandboxLimit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandboxes are those of Linux")

PRELUDE = """
import ctypes, mmap, os, platform, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == 'x86_64'
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
def leave_leader(work):
    "Have a child do the work in a second thread; its first one ends, so it is shown as a zombie."
    if os.fork() == 0:
        os.setsid()
        threading.Thread(target=work).start()
        libc.syscall(60 if X86 else 93, 0)
def exchange(a, b):
    libc.syscall(316 if X86 else 276, -100, a, -100, b, 2)
def fill(name):
    "Write 48 MB and return the descriptor."
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(48):
        if os.write(file, bytes(1 << 20)) < 1 << 20: sys.exit('No space left on device')
    return file
def held():
    time.sleep(1)
    print('HELD')
    sys.stdout.flush()
    time.sleep(60)
"""


async def stopped(sandbox: Sandbox, code: str, reason: str, seconds: int = 20) -> None:
    """Run code that goes on until it is stopped; it must be stopped for `reason`."""
    with pytest.raises(SandboxLimit, match=reason):
        await run(sandbox, PRELUDE + code, seconds)


# Landlock with namespaces bounds memory and disk by the same cgroup and tmpfs as bubblewrap.
different_bounds = pytest.mark.parametrize(
    "sandbox", ["bwrap" if shutil.which("bwrap") else "landlock", "pod"], indirect=True
)


async def failing(sandbox: Sandbox, code: str) -> Report:
    report = await run(sandbox, PRELUDE + code, 20)
    assert report.exit_code == 1
    return report


async def test_a_fork_bomb_ends_with_its_time(sandbox: Sandbox) -> None:
    bomb = "while True:\n    try: os.fork()\n    except OSError: pass"
    await stopped(sandbox, bomb, "stopped after 1 s", 1)
    counted = """
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
    slack = 0 if os.getuid() == 0 or sandbox.namespaces else 30  # the user's other processes come and go
    assert 1 <= int((await run(sandbox, PRELUDE + counted)).stdout) <= LIMITS["processes"] + slack


async def test_processes_that_start_the_next_and_end_are_caught(sandbox: Sandbox) -> None:
    """Each lives for a fraction of a millisecond, in a session of its own."""
    chain = """
def run_away():
    while True:
        if libc.fork() > 0: libc._exit(0)
        libc.setsid()
for _ in range(40):
    if libc.fork() == 0: run_away()
time.sleep(0.5)
"""
    assert (await run(sandbox, PRELUDE + chain)).exit_code == 0


MEMORY = {
    "of one process": "x = bytearray(1 << 30)",
    "of several": "for _ in range(3): os.fork()\nx = b'x' * (200 << 20)\ntime.sleep(60)",
    "shared, and shown as free": """
for _ in range(5):
    if os.fork() == 0:
        area = mmap.mmap(-1, 400 << 20)
        for start in range(0, len(area), 1 << 20):
            for place in range(start, start + (1 << 20), 4096): area[place] = 1
            area.madvise(mmap.MADV_DONTNEED, start, 1 << 20)
        break
time.sleep(60)
""",
    "of processes shown as zombies": """
def hold():
    time.sleep(0.5)  # until the first thread has ended
    area = b'x' * (400 << 20)
    time.sleep(60)
for _ in range(5): leave_leader(hold)
time.sleep(60)
""",
}


@different_bounds
@pytest.mark.parametrize("way", MEMORY)
async def test_memory_is_bounded(sandbox: Sandbox, way: str) -> None:
    if way == "of one process":
        assert "MemoryError" in (await failing(sandbox, MEMORY[way])).stderr
    else:
        await stopped(sandbox, MEMORY[way], "more than 1024 MB of memory")


DISK = {
    "in many files": "for n in range(10): fill(f'{n}')",
    "in files without a name": "for n in range(10): fill('f'); os.unlink('f')",
    "in nested folders": "for _ in range(45): os.mkdir('d'); os.chdir('d')\nfor n in range(10): fill(f'{n}')",
    "in a folder that cannot be read": "os.mkdir('d', 0o300); os.chdir('d')\nfor n in range(10): fill(f'{n}')",
    "in mapped files": """
for n in range(10):
    file = fill('f')
    libc.mmap(None, 4096, 1, 2, file, 0)
    os.close(file)
    os.unlink('f')
""",
    "in open files of a process shown as a zombie": """
os.mkdir('waiting')
def hold():
    try:
        for n in range(10): fill('f'); os.unlink('f')
        held()
    finally:
        os.rmdir('waiting')
leave_leader(hold)
while os.path.exists('waiting'): time.sleep(0.05)
sys.exit('No space left on device')
""",
    "in too many files": "for n in range(20_000): open(f'{n}', 'w').close()",
}


@different_bounds
@pytest.mark.parametrize("way", DISK)
async def test_the_disk_is_bounded(sandbox: Sandbox, way: str) -> None:
    """A file system of limited size may also answer that it is full, before the code is stopped."""
    code = PRELUDE + DISK[way] + "\nheld()"
    fields = await sandbox.supervise([sandbox.python, "-I", "-B", "-c", code], {}, 20)
    assert "HELD" not in fields["stdout"]
    full = sandbox.namespaces and "No space left on device" in fields["stderr"]
    assert fields["stopped"] == "disk" or full, fields


async def test_one_file_and_the_output_are_bounded(sandbox: Sandbox) -> None:
    report = await failing(sandbox, f"open('big', 'wb').write(b'x' * {2 * LIMITS['file']})")
    assert "File too large" in report.stderr
    report = await run(sandbox, "print('x' * 1_000_000)")
    assert (report.exit_code, len(report.stdout), report.truncated) == (0, LIMITS["output"], True)
    await stopped(sandbox, "while True: print('x' * 10_000)", "writing without end")


async def test_what_comes_back_is_bounded(sandbox: Sandbox) -> None:
    for size in (30_000, 1):
        report = await run(sandbox, f"for n in range(60): open(f'{{n}}.txt', 'w').write('x' * {size})")
        assert len(report.files) == min(MAX_SANDBOX_FILES, LIMITS["files"] // size)
        assert len(report.files) + len(report.left_out) == 60


async def test_open_files_are_bounded(sandbox: Sandbox) -> None:
    report = await failing(sandbox, "held = [os.dup(1) for _ in range(1_000)]")
    assert "Too many open files" in report.stderr
    report = await run(sandbox, "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))")
    assert report.stdout == f"({LIMITS['open_files']}, {LIMITS['open_files']})\n"


async def test_processor_time_is_bounded_and_wall_time_too(sandbox: Sandbox) -> None:
    for code in ("while True: pass", "import signal; os.kill(0, signal.SIGSTOP)"):
        await stopped(sandbox, code, "stopped after 1 s", 1)


async def test_a_process_without_its_first_thread_does_not_stay(sandbox: Sandbox, folder: Path) -> None:
    code = f"def work(): libc.prctl(15, b'{mark(folder)}'); time.sleep(60)\nleave_leader(work)\ntime.sleep(0.3)"
    assert (await run(sandbox, PRELUDE + code)).exit_code == 0  # the fixture looks for what is left


async def test_no_race_makes_the_worker_read_or_delete_elsewhere(sandbox: Sandbox, folder: Path) -> None:
    """Folders become links and folders again, thousands of times a second, while they are collected and cleared."""
    secret = folder / "foreign" / "below" / "key.txt"
    secret.parent.mkdir(parents=True)
    secret.write_text("canary-5f1d")
    secret.chmod(0o600)
    code = f"""
def work():
    libc.prctl(15, b'{mark(folder)}')
    while True:
        for n in range(100): exchange(b'd%d' % n, b'l%d' % n)
for n in range(100):
    os.mkdir(f'd{{n}}')
    open(f'd{{n}}/key.txt', 'w').write('mine')
    os.symlink('{secret.parent}', f'l{{n}}')
for _ in range(3): leave_leader(work)
time.sleep(0.3)
"""
    for _ in range(2 if sandbox.namespaces else 8):  # one run in two succeeded when such processes survived
        report = await run(sandbox, PRELUDE + code)
        assert set(report.files.values()) <= {"mine"}
        assert secret.read_text() == "canary-5f1d"
