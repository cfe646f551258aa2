"""Memory cgroups. That one holds is tried for real where there is one; here, what is written into which file."""

from pathlib import Path

import pytest

from sennit.activities.sandbox import memory_group

FILES = {"memory.max": "", "memory.swap.max": "", "memory.events": "oom 3\noom_kill 2"}


def test_a_group_bounds_memory_without_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path.mkdir

    def with_files(folder: Path) -> None:  # as the kernel does
        made(folder)
        for name, text in FILES.items():
            (folder / name).write_text(text)

    monkeypatch.setattr(Path, "mkdir", with_files)
    group = memory_group.create(tmp_path, 1024)
    assert (group / "memory.max").read_text() == "1024"
    assert (group / "memory.swap.max").read_text() == "0"
    assert memory_group.kills(group) == 2
    memory_group.join(group)
    assert (group / "cgroup.procs").read_text() == "0"


@pytest.mark.parametrize(
    ("own", "mounts", "places"),
    [
        ("4:memory:/a/b", "35 31 0:32 / /m rw - cgroup cgroup rw,memory", []),
        ("0::/a/b", "24 23 0:22 / /u rw - cgroup2 cgroup2 rw", ["/u/a/b", "/u/a"]),
        ("0::/", "24 23 0:22 / /u rw - cgroup2 cgroup2 rw", ["/u"]),
        ("4:cpu:/a", "35 31 0:32 / /c rw - cgroup cgroup rw,cpu", []),
    ],
)
def test_groups_are_made_in_the_own_one_or_beside_it(
    own: str, mounts: str, places: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"/proc/self/cgroup": own, "/proc/self/mountinfo": mounts}
    monkeypatch.setattr(memory_group, "_lines", lambda path: texts[path].splitlines())
    assert [str(place) for place in memory_group._candidates()] == places
