"""The processes below this one: what they hold, and how all of them are ended.
Standard library only.

A process whose first thread has ended is shown as a zombie without memory and open files, while its
other threads go on. So only two things count as ended: a process without a live thread, and one
that has been waited for.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_PATIENCE = 100
_PAUSE = 0.001


def address_spaces() -> dict[int, int]:
    """Return the bytes of address space of every live process below this one, by pid."""
    shown: dict[int, tuple[str, int, int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hot
        if entry.isdigit():
            with suppress(OSError, ValueError, IndexError):
                shown[int(entry)] = _stat(f"/proc/{entry}")
    sizes: dict[int, int] = {}
    for pid, (state, _, size) in shown.items():
        if not _is_descendant(pid, shown):
            continue
        # The threads of a process may live on behind its first one, which is shown as dead.
        alive = [size]
        if state in "ZX":
            alive = []
            for task in tasks(pid):
                alive += _live_size(task)
        if alive:
            sizes[pid] = max(alive)
    return sizes


def tasks(pid: int) -> Iterator[str]:
    """Yield the folder of each thread of a process."""
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - hot
            yield f"/proc/{pid}/task/{task}"


def end_all(user: int | None, seconds: float, on_end: Callable[[int, int], None]) -> bool:
    """Kill and reap all processes below this one; return whether that took at most `seconds`.

    This process must adopt orphans. `user` is whom they alone run as, if this process is root:
    then one signal reaches them all. Else each is first forbidden to start others, which it
    cannot undo and hands on to what it has just started; so code that starts processes as fast as
    it can does not get away.
    """
    if user is not None:
        _kill_user(user)
    seen: set[int] = set()
    deadline = time.monotonic() + seconds
    for count in range(1_000_000_000):
        found = _descendants()
        for pid in found:
            with suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
        if count > _PATIENCE or seen.issuperset(found):
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        seen.update(found)
        if not reap(on_end):
            return True
        if time.monotonic() > deadline:
            break
        if count > _PATIENCE:
            time.sleep(_PAUSE)
    return False


def reap(on_end: Callable[[int, int], None]) -> bool:
    """Wait for every child that has ended and call `on_end` with its pid and status; False
    when no child is left.
    """
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            on_end(*ended)
    except ChildProcessError:
        return False
    return True


def _kill_user(user: int) -> None:
    """Kill every process of that user at once, also those that are just starting."""
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _descendants() -> list[int]:
    """Return the processes below this one, parents first, zombies among them."""
    if not Path("/proc/thread-self/children").exists():  # a kernel without that file
        return list(address_spaces())
    found: list[int] = []
    pending = _children("/proc/thread-self")
    while pending:
        found += pending
        children: list[int] = []
        for pid in pending:
            for task in tasks(pid):
                children += _children(task)
        pending = children
    return found


def _children(task: str) -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in Path(task, "children").read_bytes().split()]
    return []


def _stat(folder: str) -> tuple[str, int, int]:
    """Return state, parent and address space of a process or thread."""
    fields = Path(folder, "stat").read_bytes().rpartition(b")")[2].split()
    return fields[0].decode(), int(fields[1]), int(fields[20])


def _live_size(task: str) -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):
        state, _, size = _stat(task)
        if state not in "ZX":
            yield size


def _is_descendant(pid: int, shown: dict[int, tuple[str, int, int]]) -> bool:
    this_process = os.getpid()
    while pid in shown:
        pid = shown[pid][1]
        if pid == this_process:
            return True
    return False
