"""How the Temporal CLI is found or made, with fake commands in a PATH of their own."""

import asyncio
import threading
from pathlib import Path

import psutil
import pytest

from starter.dev import binary
from starter.dev.binary import cache_dir, cache_key, obtain, obtain_apart
from starter.dev.failures import LocalStackFailed

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
    """A PATH and a cache."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.cache = root / "cache" / "sennit"
        self.builds = root / "builds"

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
    monkeypatch.delenv("SENNIT_TEMPORAL_CLI", raising=False)

    def refuse(command: list[str], name: str, label: str, limit: float) -> None:
        if name == "download":
            raise binary._Unusable("download: no network")
        run(command, name, label, limit)

    run = binary._run
    monkeypatch.setattr(binary, "_run", refuse)
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
def test_only_a_cli_of_the_tested_versions_is_chosen_from_path(machine: Machine, version: str, chosen: bool) -> None:
    cli = machine.cli(f"temporal version 0.0.0-DEV ({version})")
    machine.command("go", GO)
    found = obtain()
    assert found == cli if chosen else found.parent == machine.cache


def test_a_named_cli_comes_before_everything(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cli(GOOD)
    mine = machine.cli(OLD, "mine")
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(mine))
    assert obtain() == mine
    said = capsys.readouterr().err
    assert said.startswith(f"SENNIT_TEMPORAL_CLI is used, but {mine} has Server 1.28 and UI 2.39; needed are ")


@pytest.mark.parametrize("text", [None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho bash 5\n"])
def test_a_named_cli_that_does_not_work_is_an_error_and_not_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    machine.cli(GOOD)
    if text is not None:
        machine.command("mine", text)
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(machine.bin / "mine"))
    with pytest.raises(LocalStackFailed, match=f"SENNIT_TEMPORAL_CLI: .*{machine.bin / 'mine'}"):
        obtain()


def test_an_old_cli_on_path_is_named_and_skipped(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    old = machine.cli(OLD)
    machine.command("go", GO)
    assert obtain().parent == machine.cache
    assert capsys.readouterr().err.startswith(f"skipping {old} has Server 1.28 and UI 2.39")


def test_the_pinned_server_is_built_once_and_path_is_not_looked_at(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cli(GOOD)
    machine.command("go", GO)
    found = obtain(pinned_only=True)
    assert found.parent == machine.cache
    assert "building the Temporal dev server (about 3 minutes the first time) ..." in capsys.readouterr().err
    assert obtain(pinned_only=True) == found
    assert machine.builds.read_text() == "built\n"


def test_clients_at_once_build_once(machine: Machine) -> None:
    machine.command("go", GO.replace("echo built", "sleep 0.5; echo built"))
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(obtain(pinned_only=True))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert machine.builds.read_text() == "built\n"


def test_no_way_at_all_names_each_way_and_what_helps(machine: Machine) -> None:
    old = machine.cli(OLD)
    machine.command("go", GO.replace("echo built", "echo 'go.mod: invalid go version' >&2; exit 1; echo built"))
    with pytest.raises(LocalStackFailed) as raised:
        obtain()
    text = str(raised.value)
    ways = ("made before: nothing", f"temporal on PATH: {old} has Server 1.28", "download: no network")
    assert all(f"\n  {way}" in text for way in ways)
    assert "\n  build: go.mod: invalid go version\ngo version go1.20.1 did not build it; Go 1.26.4 or newer" in text
    assert "SENNIT_TEMPORAL_CLI" in text
    assert "--address" in text
    assert sorted(path.suffix for path in machine.cache.iterdir()) == [".lock", ".log"]


def test_without_go_its_version_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "sed", "dirname"):
        machine.bin.joinpath(name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(machine.bin))
    with pytest.raises(LocalStackFailed, match=r"build: Go is not installed; 1\.26\.4 or newer is needed"):
        obtain(pinned_only=True)


def test_a_binary_that_does_not_run_is_not_kept(machine: Machine) -> None:
    machine.command("go", GO.replace('"temporal version', '"; exit 1; echo "'))
    with pytest.raises(LocalStackFailed, match="does not run"):
        obtain(pinned_only=True)
    assert not list(machine.cache.glob("temporal-*[0-9a-f]"))


def test_a_build_that_takes_too_long_is_ended_with_all_it_started(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.command("go", GO.replace("echo built", "sleep 60; echo built"))
    monkeypatch.setattr(binary, "BUILD_LIMIT", 0.3)
    monkeypatch.setattr(binary, "SAY_EVERY", 0.1)
    with pytest.raises(LocalStackFailed, match="build: not done after 0 minutes"):
        obtain(pinned_only=True)
    assert capsys.readouterr().err.count("building the Temporal dev server") > 1


async def test_the_search_apart_gives_the_path_or_the_reason(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = machine.cli(OLD, "mine")
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(mine))
    lines: list[str] = []
    assert await obtain_apart(lines.append) == mine
    assert lines[0].startswith("SENNIT_TEMPORAL_CLI is used, but ")
    mine.unlink()
    with pytest.raises(LocalStackFailed, match=f"SENNIT_TEMPORAL_CLI: {mine} does not run"):
        await obtain_apart(lines.append)


async def test_a_person_who_gives_up_ends_the_search(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.command("mine", f"#!/bin/sh\necho $$ >'{machine.bin}/pid'\nexec sleep 60\n")
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(machine.bin / "mine"))
    search = asyncio.ensure_future(obtain_apart(lambda _: None))
    pid = machine.bin / "pid"
    while not (pid.exists() and pid.read_text()):
        await asyncio.sleep(0.02)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    while psutil.pid_exists(int(pid.read_text())):
        await asyncio.sleep(0.02)


def test_a_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.cache.parent.write_text("a file in the way")
    with pytest.raises(LocalStackFailed, match=r"folder for the binary: .*cache"):
        obtain(pinned_only=True)


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
