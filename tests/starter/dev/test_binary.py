"""How the Temporal CLI is found or made, with fake commands in a PATH of their own."""

import threading
from pathlib import Path

import pytest

from starter.dev import binary
from starter.dev.binary import CliVersion, DevServerUnavailable, cache_dir, cache_key, obtain, parse_version
from starter.dev.download import CannotDownload
from starter.dev.watched import Interrupted, Progress

GOOD = "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"
OLD = "temporal version 1.4.1 (Server 1.28.0, UI 2.39.0)"
GO = """#!/bin/sh
case "$1" in
env) echo go1.26.8; echo local ;;
build)
    echo built >>"$BUILDS"
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"\\n' >"$2"
    chmod +x "$2" ;;
esac
"""


class Machine:
    """A PATH, a cache and the lines said to the person."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.cache = root / "cache" / "sennit"
        self.builds = root / "builds"
        self.lines: list[str] = []
        self.progress = Progress(self.lines.append)

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

    def refuse(*_: object) -> None:
        raise CannotDownload("temporal.download is not reachable: no network")

    monkeypatch.setattr(binary, "download_server", refuse)
    return made


def test_the_versions_are_read_from_released_and_self_built_binaries() -> None:
    assert parse_version(GOOD) == CliVersion((1, 31), (2, 50))
    assert parse_version("temporal version 0.0.0-DEV (Server 1.31.2-rc1, UI 2.50.1)") == CliVersion((1, 31), (2, 50))
    assert parse_version("temporal version 0.10.7 (server 1.22.0)") is None


@pytest.mark.parametrize(
    ("server", "ui", "chosen"),
    [
        ((1, 31), (2, 50), True),
        ((1, 31), (2, 61), True),
        ((1, 31), (2, 49), False),
        ((1, 30), (2, 50), False),
        ((1, 32), (2, 50), False),
    ],
)
def test_only_a_cli_of_the_tested_versions_is_chosen_from_path(
    server: tuple[int, int], ui: tuple[int, int], chosen: bool
) -> None:
    assert (CliVersion(server, ui).problem is None) is chosen


def test_a_named_cli_comes_before_everything(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.cli(GOOD)
    mine = machine.cli(OLD, "mine")
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(mine))
    assert obtain(progress=machine.progress) == mine
    (line,) = machine.lines
    assert line.startswith(f"SENNIT_TEMPORAL_CLI is used, but {mine} has Server 1.28 and UI 2.39; needed are ")


@pytest.mark.parametrize("text", [None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho bash 5\n"])
def test_a_named_cli_that_does_not_work_is_an_error_and_not_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    machine.cli(GOOD)
    if text is not None:
        machine.command("mine", text)
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(machine.bin / "mine"))
    with pytest.raises(DevServerUnavailable, match=f"SENNIT_TEMPORAL_CLI: .*{machine.bin / 'mine'}"):
        obtain(progress=machine.progress)


def test_a_fitting_cli_on_path_is_used(machine: Machine) -> None:
    good = machine.cli(GOOD)
    assert obtain(progress=machine.progress) == good


def test_an_old_cli_on_path_is_named_and_skipped(machine: Machine) -> None:
    old = machine.cli(OLD)
    machine.command("go", GO)
    found = obtain(progress=machine.progress)
    assert found.parent == machine.cache
    assert machine.lines[0].startswith(f"skipping {old}: has Server 1.28 and UI 2.39")


def test_the_pinned_server_is_built_once_and_path_is_not_looked_at(machine: Machine) -> None:
    machine.cli(GOOD)
    machine.command("go", GO)
    found = obtain(pinned_only=True, progress=machine.progress)
    assert found.parent == machine.cache
    assert machine.lines == ["building the Temporal dev server (about 3 minutes the first time) ..."]
    assert obtain(pinned_only=True, progress=machine.progress) == found
    assert machine.builds.read_text() == "built\n"


def test_clients_at_once_build_once(machine: Machine) -> None:
    machine.command("go", GO.replace("echo built", "sleep 0.5; echo built"))
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(obtain(pinned_only=True, progress=machine.progress)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert machine.builds.read_text() == "built\n"


def test_no_way_at_all_names_each_way_and_what_helps(machine: Machine) -> None:
    machine.cli(OLD)
    machine.command("go", "#!/bin/sh\necho go1.20.1\n")
    with pytest.raises(DevServerUnavailable) as raised:
        obtain(progress=machine.progress)
    assert [attempt.way for attempt in raised.value.attempts] == [
        "made before",
        "temporal on PATH",
        "download by the SDK",
        "go build",
    ]
    text = str(raised.value)
    assert "Go 1.20.1 is too old; 1.26.4 or newer is needed" in text
    assert "temporal.download is not reachable: no network" in text
    assert "SENNIT_TEMPORAL_CLI" in text
    assert "--address" in text


def test_a_failed_build_shows_what_go_said_and_leaves_nothing_half_made(machine: Machine) -> None:
    machine.command("go", GO.replace("echo built", "echo 'dial tcp: no such host' >&2; exit 1; echo built"))
    with pytest.raises(DevServerUnavailable, match=r"(?s)exit status 1.*dial tcp: no such host"):
        obtain(pinned_only=True, progress=machine.progress)
    assert sorted(path.suffix for path in machine.cache.iterdir()) == [".lock", ".log"]


def test_a_binary_that_does_not_run_is_not_kept(machine: Machine) -> None:
    machine.command("go", GO.replace('"temporal version', '"; exit 1; echo "'))
    with pytest.raises(DevServerUnavailable, match="the new binary: does not run"):
        obtain(pinned_only=True, progress=machine.progress)
    assert not list(machine.cache.glob("*.part"))


def test_a_person_who_gives_up_ends_the_build(machine: Machine) -> None:
    machine.command("go", GO.replace("echo built", "exec sleep 60; echo built"))
    progress = Progress(lambda _: progress.cancel())
    with pytest.raises(Interrupted):
        obtain(pinned_only=True, progress=progress)


def test_a_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.cache.parent.write_text("a file in the way")
    with pytest.raises(DevServerUnavailable, match=r"folder for the binary: .*cache"):
        obtain(pinned_only=True, progress=machine.progress)


def test_other_pinned_versions_or_another_machine_mean_another_binary(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("go 1.26.4")
    first = cache_key(tmp_path, "linux x86_64")
    assert cache_key(tmp_path, "linux x86_64") == first
    assert cache_key(tmp_path, "linux aarch64") != first
    (tmp_path / "go.sum").write_text("sum")
    assert cache_key(tmp_path, "linux x86_64") != first


def test_the_cache_is_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir({}) == tmp_path / ".cache" / "sennit"
    assert cache_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/sennit")
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache" / "sennit"
