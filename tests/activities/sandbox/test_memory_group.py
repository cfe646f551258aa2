"""Memory cgroups. That one holds is tried for real where there is one; here, what is written into which file."""

from pathlib import Path

import pytest

from sennit.activities.sandbox import memory_group

VERSION_1 = {
    "memory.limit_in_bytes": "",
    "memory.memsw.limit_in_bytes": "",
    "memory.oom_control": "under_oom 0\noom_kill 2",
}
VERSION_2 = {"memory.max": "", "memory.swap.max": "", "memory.events": "oom 3\noom_kill 2"}


@pytest.mark.parametrize(
    ("files", "written"),
    [
        (VERSION_1, {"memory.limit_in_bytes": "1024", "memory.memsw.limit_in_bytes": "1024"}),
        (VERSION_2, {"memory.max": "1024", "memory.swap.max": "0"}),
    ],
)
def test_a_group_bounds_memory_with_swap(
    files: dict[str, str], written: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def with_files(folder: Path) -> None:  # as the kernel does
        made(folder)
        for name, text in files.items():
            (folder / name).write_text(text)

    monkeypatch.setattr(Path, "mkdir", with_files)
    group = memory_group.create(tmp_path, 1024)
    assert {name: (group / name).read_text() for name in written} == written
    assert memory_group.kills(group) == 2
    memory_group.join(group)
    assert (group / "cgroup.procs").read_text() == "0"


@pytest.mark.parametrize(
    ("own", "mounts", "places"),
    [
        ("4:memory:/a/b\n0::/", "35 31 0:32 / /m rw - cgroup cgroup rw,memory", ["/m/a/b"]),
        ("4:memory:/docker/x", "35 31 0:32 /docker/x /m ro - cgroup cgroup rw,memory", ["/m"]),
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
