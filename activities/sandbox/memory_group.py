"""Memory cgroups, of version 1 or 2: the kernel's own bound on what all processes of a command use together.

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
_TRIAL = f"import sys; open(sys.argv[1] + '/cgroup.procs', 'w').write('0'); bytearray(b'x') * {_TOO_MUCH}"


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
                trial = subprocess.run([sys.executable, "-I", "-S", "-c", _TRIAL, group], env={}, check=False)  # noqa: S603
                if trial.returncode == -9 and kills(group):
                    return parent
            finally:
                remove(group)
    return None


def create(parent: Path, most: int) -> Path:
    """Make a group whose processes may use `most` bytes, with the files they keep in memory. Raises OSError."""
    group = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    group.mkdir()
    try:
        version_1 = (group / "memory.limit_in_bytes").exists()
        _write(group / ("memory.limit_in_bytes" if version_1 else "memory.max"), most)
        swap, bound = ("memory.memsw.limit_in_bytes", most) if version_1 else ("memory.swap.max", 0)
        if (group / swap).exists():
            _write(group / swap, bound)
    except OSError:
        remove(group)
        raise
    return group


def join(group: Path) -> None:
    """Put this process, and all it will start, into the group. Raises OSError."""
    _write(group / "cgroup.procs", 0)


def kills(group: Path) -> int:
    """Return how many processes were killed for using too much."""
    for name in ("memory.oom_control", "memory.events"):
        if (group / name).exists():
            counts = dict(line.split() for line in (group / name).read_text().splitlines())
            return int(counts.get("oom_kill", 0))
    return 0


def remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _candidates() -> Iterator[Path]:
    """Yield this process's group and, with version 2, the one above it: only groups without processes divide there."""
    groups = dict(line.split(":", 2)[1:] for line in _lines("/proc/self/cgroup"))
    for line in _lines("/proc/self/mountinfo"):
        fields, _, kind = line.partition(" - ")
        root, mounted = fields.split()[3:5]
        controllers = next((each for each in groups if "memory" in each.split(",")), None)
        if kind.startswith("cgroup ") and controllers is not None and "memory" in kind.split()[2].split(","):
            yield _below(mounted, root, groups[controllers])
        elif kind.startswith("cgroup2 ") and "" in groups:
            place = _below(mounted, root, groups[""])
            yield from (place, place.parent) if place != Path(mounted) else (place,)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _below(mounted: str, root: str, group: str) -> Path:
    return Path(mounted, os.path.relpath(group, root)) if root != "/" else Path(mounted + group)


def _sweep(parent: Path) -> None:
    """Remove what workers that were killed have left."""
    for group in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.split("-")[1]).exists():
            remove(group)


def _write(path: Path, value: int) -> None:
    path.write_text(str(value))
