"""Memory cgroups, of version 2: the kernel's own bound on what all processes of
a command use together.

Standard library only.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "sennit-"
_TRIED, _TOO_MUCH = 32 << 20, 128 << 20
_TRIAL = (
    "import sys; open(sys.argv[1] + '/cgroup.procs', 'w').write('0'); bytearray(b'x') * "
    f"{_TOO_MUCH}"
)


@cache
def find_parent() -> Path | None:
    """Return a cgroup in which this process may make others, None if there is none.

    It has just been tried: a process that used more than its group may was killed.
    """
    for parent in _candidates():
        with suppress(OSError):
            _sweep(parent)
            group = create(parent, _TRIED)
            try:
                command = [sys.executable, "-I", "-S", "-c", _TRIAL, str(group)]
                trial = subprocess.run(command, env={}, check=False)  # noqa: S603
                if trial.returncode == -9 and kills(group):
                    return parent
            finally:
                remove(group)
    return None


def create(parent: Path, most: int) -> Path:
    """Make a group whose processes may use `most` bytes, with the files they keep in
    memory. Raises OSError.
    """
    group = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    group.mkdir()
    swap = group / "memory.swap.max"
    try:
        _write(group / "memory.max", most)
        if swap.exists():  # not on a machine without swap
            _write(swap, 0)
    except OSError:
        remove(group)
        raise
    return group


def join(group: Path) -> None:
    """Put this process, and all it will start, into the group. Raises OSError."""
    _write(group / "cgroup.procs", 0)


def kills(group: Path) -> int:
    """Return how many processes were killed for using too much."""
    counts = dict(line.split() for line in _lines(f"{group}/memory.events"))
    return int(counts.get("oom_kill", 0))


def remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _candidates() -> Iterator[Path]:
    """Yield this process's group and the one above it: only groups without processes
    may divide their memory.
    """
    groups = dict(line.split(":", 2)[1:] for line in _lines("/proc/self/cgroup"))
    own = groups.get("")  # version 1 names its controllers there
    if own is None:
        return
    for line in _lines("/proc/self/mountinfo"):
        fields, _, kind = line.partition(" - ")
        if not kind.startswith("cgroup2 "):
            continue
        root, mounted = fields.split()[3:5]
        place = _below(mounted, root, own)
        yield place
        if place != Path(mounted):
            yield place.parent


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _below(mounted: str, root: str, group: str) -> Path:
    if root == "/":
        return Path(mounted + group)
    return Path(mounted, os.path.relpath(group, root))


def _sweep(parent: Path) -> None:
    """Remove what workers that were killed have left."""
    for group in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.split("-")[1]).exists():
            remove(group)


def _write(path: Path, value: int) -> None:
    path.write_text(str(value))
