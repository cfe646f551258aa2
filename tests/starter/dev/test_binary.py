"""How the Temporal CLI is found or made, with fake commands in a PATH of their own."""

import asyncio
from pathlib import Path

import psutil
import pytest

from sennit.starter.dev import binary
from sennit.starter.dev.binary import cache_dir, cache_key, obtain
from sennit.starter.dev.messages import LocalStackFailed

GOOD = "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"
OLD = "temporal version 1.4.1 (Server 1.28.0, UI 2.39.0)"
GO = """#!/bin/sh
case "$1" in
version) echo go version go1.20.1 ;;
build)
    echo built >>"$BUILDS"
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"\\n' >"$2"
    chmod +x "$2" ;;
esac
"""


class Machine:
    """A PATH, a cache, and the lines that a person reads."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.cache = root / "cache" / "sennit"
        self.builds = root / "builds"
        self.lines: list[str] = []

    async def obtain(self, *, pinned_only: bool = False) -> Path:
        return await obtain(self.lines.append, pinned_only=pinned_only)

    def command(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def cli(self, version: str, name: str = "temporal") -> Path:
        return self.command(name, f"#!/bin/sh\necho '{version}'\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Nothing is installed and the network is down."""
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BUILDS", str(made.builds))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("SENNIT_TEMPORAL_CLI", raising=False)
    return made


@pytest.mark.parametrize(
    ("version", "chosen"),
    [
        ("Server 1.31.2, UI 2.50.1", True),
        ("Server 1.31.2-rc1, UI 2.61.0", True),
        ("Server 1.31.2, UI 2.49.0", False),
        ("Server 1.30.0, UI 2.50.1", False),
        ("Server 1.32.0, UI 2.50.1", False),
        ("server 1.22.0", False),
    ],
)
async def test_only_a_cli_of_the_tested_versions_is_chosen_from_path(
    machine: Machine, version: str, chosen: bool
) -> None:
    cli = machine.cli(f"temporal version 0.0.0-DEV ({version})")
    machine.command("go", GO)
    found = await machine.obtain()
    assert found == cli if chosen else found.parent == machine.cache
    assert any(line.startswith(f"skipping {cli} has Server") for line in machine.lines) is (
        "UI" in version and not chosen
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"echo '{OLD}'", "SENNIT_TEMPORAL_CLI is used, but MINE has Server 1.28 and UI 2.39; needed are "),
        ("exit 1", "SENNIT_TEMPORAL_CLI: MINE does not run"),
        ("echo bash 5", "SENNIT_TEMPORAL_CLI: MINE is not a Temporal CLI"),
        (None, "SENNIT_TEMPORAL_CLI: MINE does not run"),
    ],
)
async def test_a_named_cli_comes_before_everything_and_is_not_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, text: str | None, line: str
) -> None:
    machine.cli(GOOD)
    mine = machine.bin / "mine"
    if text is not None:
        machine.command("mine", f"#!/bin/sh\n{text}\n")
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(mine))
    try:
        assert await machine.obtain() == mine
    except LocalStackFailed as failure:
        machine.lines.append(str(failure).splitlines()[1].strip())
    assert machine.lines[0].startswith(line.replace("MINE", str(mine)))


async def test_clients_at_once_build_the_pinned_server_once_and_do_not_look_at_path(machine: Machine) -> None:
    machine.cli(GOOD)
    machine.command("go", GO)
    found = await asyncio.gather(*(machine.obtain(pinned_only=True) for _ in range(3)))
    assert {path.parent for path in found} == {machine.cache}
    assert machine.builds.read_text() == "built\n"
    assert "building the Temporal dev server (about 3 minutes the first time) ..." in machine.lines


async def test_a_binary_that_was_changed_is_made_again_and_never_run(machine: Machine) -> None:
    machine.command("go", GO)
    made = await machine.obtain(pinned_only=True)
    good = made.read_bytes()
    made.write_text(f"#!/bin/sh\ntouch {machine.bin}/owned\necho '{GOOD}'\n")
    assert await machine.obtain(pinned_only=True) == made
    assert (made.read_bytes(), machine.builds.read_text()) == (good, "built\nbuilt\n")
    assert not (machine.bin / "owned").exists()


@pytest.mark.parametrize("of", ["folder", "file"])
async def test_a_binary_that_others_can_change_is_refused(machine: Machine, of: str) -> None:
    machine.command("go", GO)
    made = await machine.obtain(pinned_only=True)
    changed = made if of == "file" else made.parent
    changed.chmod(0o777)
    with pytest.raises(LocalStackFailed, match=f"made before: other users can change {changed}; remove it"):
        await machine.obtain(pinned_only=True)


async def test_no_way_at_all_names_each_way_and_what_helps(machine: Machine) -> None:
    old = machine.cli(OLD)
    machine.command("go", GO.replace("echo built", "echo 'go.mod: invalid go version' >&2; exit 1; echo built"))
    with pytest.raises(LocalStackFailed) as raised:
        await machine.obtain()
    text = str(raised.value)
    ways = (
        "made before: nothing",
        f"temporal on PATH: {old} has Server 1.28",
        "download: https://temporal.download is not reachable",
    )
    assert all(f"\n  {way}" in text for way in ways)
    assert "\n  build: go.mod: invalid go version\ngo version go1.20.1 did not build it; Go 1.26.4 or newer" in text
    assert "SENNIT_TEMPORAL_CLI" in text
    assert "--address" in text
    assert sorted(path.suffix for path in machine.cache.iterdir()) == [".lock", ".log", ".log"]


async def test_without_go_its_version_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "sed", "dirname"):
        machine.bin.joinpath(name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(machine.bin))
    with pytest.raises(LocalStackFailed, match=r"build: Go is not installed; 1\.26\.4 or newer is needed"):
        await machine.obtain(pinned_only=True)


async def test_a_binary_that_does_not_run_is_not_kept(machine: Machine) -> None:
    machine.command("go", GO.replace('"temporal version', '"; exit 1; echo "'))
    with pytest.raises(LocalStackFailed, match="does not run"):
        await machine.obtain(pinned_only=True)
    assert not list(machine.cache.glob("temporal-*[0-9a-f]"))


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_build_that_is_cancelled_or_takes_too_long_is_ended_with_all_it_started(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    machine.command("go", GO.replace("echo built", f"sh -c 'echo $$ >{machine.bin}/pid; exec sleep 60'; echo built"))
    monkeypatch.setattr(binary, "SAY_EVERY", 0.1)
    monkeypatch.setattr(binary, "BUILD_LIMIT", 60 if cancelled else 1)
    search = asyncio.ensure_future(machine.obtain(pinned_only=True))
    pid = machine.bin / "pid"
    while not (pid.exists() and pid.read_text()):
        await asyncio.sleep(0.02)
    if cancelled:
        search.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else LocalStackFailed):
        await search
    while psutil.pid_exists(int(pid.read_text())):
        await asyncio.sleep(0.02)
    assert cancelled or sum(line.startswith("building the Temporal dev server") for line in machine.lines) > 1


async def test_a_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.cache.parent.write_text("a file in the way")
    with pytest.raises(LocalStackFailed, match=r"folder for the binary: .*cache"):
        await machine.obtain(pinned_only=True)


def test_other_pinned_versions_or_another_machine_mean_another_binary(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("go 1.26.4")
    first = cache_key(tmp_path, "linux x86_64")
    assert cache_key(tmp_path, "linux x86_64") == first
    assert cache_key(tmp_path, "linux aarch64") != first
    (tmp_path / "go.sum").write_text("sum")
    assert cache_key(tmp_path, "linux x86_64") != first


def test_the_cache_is_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, folder in (("", tmp_path / ".cache"), ("relative", tmp_path / ".cache"), ("/c", Path("/c"))):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_dir() == folder / "sennit"
