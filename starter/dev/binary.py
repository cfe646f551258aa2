"""Which Temporal CLI to run as the dev server, and how to come by it."""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from starter.dev.build import CannotBuild, build_server
from starter.dev.download import CannotDownload, download_server
from starter.dev.lock import exclusive
from starter.dev.watched import Progress

RELEASE = "v1.8.2"  # of the CLI that deploy/dev-server pins: server 1.31.2, UI 2.50.1
SERVER = (1, 31)
OLDEST_UI = (2, 50)
MODULES = Path(__file__).parents[2] / "deploy" / "dev-server"

WAITING = "waiting for another process that makes the Temporal dev server ..."
WAYS_OUT = (
    "Any one of these helps: install Go (https://go.dev/dl) and repeat; set SENNIT_TEMPORAL_CLI to a Temporal CLI with "
    "Server 1.31 and UI 2.50 or newer (https://docs.temporal.io/cli), or put it on PATH; use a Temporal server you "
    "have with --address or TEMPORAL_ADDRESS."
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way that was tried and why it gave no binary."""

    way: str
    problem: str


class DevServerUnavailable(Exception):
    """No Temporal CLI could be found or made; the text names every way tried and what to do."""

    def __init__(self, attempts: list[Attempt]) -> None:
        self.attempts = attempts
        lines = [f"  {attempt.way}: {attempt.problem}" for attempt in attempts]
        super().__init__("\n".join(["There is no Temporal dev server to run on this machine.", *lines, WAYS_OUT]))


@dataclass(frozen=True, slots=True)
class CliVersion:
    """What `temporal --version` says of the parts inside; a CLI built from source may not know its own number."""

    server: tuple[int, int]
    ui: tuple[int, int]

    @property
    def problem(self) -> str | None:
        """Why Sennit does not choose this CLI by itself, or None."""
        if self.server == SERVER and self.ui >= OLDEST_UI:
            return None
        return (
            f"has Server {_dotted(self.server)} and UI {_dotted(self.ui)}; needed are Server 1.31 and UI 2.50 or newer"
        )


def parse_version(text: str) -> CliVersion | None:
    """The versions in `temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)`, or None when it is not of that form."""
    found = re.search(r"Server v?(\d+)\.(\d+)[^,]*, UI v?(\d+)\.(\d+)", text)
    return CliVersion((int(found[1]), int(found[2])), (int(found[3]), int(found[4]))) if found else None


def cache_dir(environ: dict[str, str] | os._Environ[str] = os.environ) -> Path:
    """The folder for built binaries; a relative XDG_CACHE_HOME is ignored as its specification asks."""
    base = Path(environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "sennit"


def cache_key(modules: Path, machine: str) -> str:
    """Digest of everything that decides what a build yields: the pinned versions and the machine."""
    digest = sha256(f"{RELEASE} {machine}".encode())
    for name in ("go.mod", "go.sum"):
        if (modules / name).is_file():
            digest.update((modules / name).read_bytes())
    return digest.hexdigest()[:16]


def obtain(*, pinned_only: bool = False, progress: Progress | None = None) -> Path:
    """The Temporal CLI to run, downloaded or built if need be; DevServerUnavailable when there is no way.

    In this order: SENNIT_TEMPORAL_CLI, the binary made before, `temporal` on PATH when its versions fit (not with
    `pinned_only`), the SDK's download, a build with Go. Blocks, for minutes when it builds, and says so through
    `progress` (default: stderr). Two processes never make the binary at once, and a killed one leaves no half binary.
    """
    return _Search(progress or Progress(), pinned_only).binary()


@dataclass(slots=True)
class _Search:
    progress: Progress
    pinned_only: bool
    attempts: list[Attempt] = field(default_factory=list)

    def binary(self) -> Path:
        named = os.environ.get("SENNIT_TEMPORAL_CLI")
        if named:
            return self._named(Path(named))
        made = cache_dir() / f"temporal-{cache_key(MODULES, f'{sys.platform} {platform.machine()}')}"
        if made.is_file():
            return made
        self.attempts.append(Attempt("made before", f"nothing in {made.parent}"))
        on_path = None if self.pinned_only else self._on_path()
        return on_path or self._make(made)

    def _named(self, path: Path) -> Path:
        try:
            version = parse_version(_version_line(path))
        except (OSError, subprocess.SubprocessError) as error:
            problem = f"`{path} --version` failed: {error}"
            raise DevServerUnavailable([Attempt("SENNIT_TEMPORAL_CLI", problem)]) from error
        if version is None:
            raise DevServerUnavailable([Attempt("SENNIT_TEMPORAL_CLI", f"{path} is not a Temporal CLI")])
        if version.problem:
            self.progress.say(f"SENNIT_TEMPORAL_CLI is used, but {path} {version.problem}")
        return path.absolute()

    def _on_path(self) -> Path | None:
        found = shutil.which("temporal")
        if found is None:
            self.attempts.append(Attempt("temporal on PATH", "not found"))
            return None
        try:
            version = parse_version(_version_line(Path(found)))
            problem = "does not say its versions" if version is None else version.problem
        except (OSError, subprocess.SubprocessError) as error:
            problem = f"failed: {error}"
        if problem is None:
            return Path(found).absolute()
        self.progress.say(f"skipping {found}: {problem}")
        self.attempts.append(Attempt("temporal on PATH", f"{found} {problem}"))
        return None

    def _make(self, made: Path) -> Path:
        try:
            made.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(made.with_suffix(".lock"), self.progress.waiter(WAITING)):
                if not made.is_file():
                    self._download_or_build(made)
        except OSError as error:
            self.attempts.append(Attempt("folder for the binary", str(error)))
            raise DevServerUnavailable(self.attempts) from error
        return made

    def _download_or_build(self, made: Path) -> None:
        part = made.with_suffix(".part")  # one name: the lock holder overwrites what a killed one left
        try:
            download_server(RELEASE, part, self.progress)
        except CannotDownload as refusal:
            self.attempts.append(Attempt("download by the SDK", str(refusal)))
            self._build(part)
        try:
            _version_line(part)
        except (OSError, subprocess.SubprocessError) as error:
            part.unlink()
            self.attempts.append(Attempt("the new binary", f"does not run: {error}"))
            raise DevServerUnavailable(self.attempts) from error
        part.replace(made)

    def _build(self, part: Path) -> None:
        try:
            if not (MODULES / "go.mod").is_file():
                raise CannotBuild("deploy/dev-server is not part of this installation; use a source checkout")
            build_server(MODULES, RELEASE, part, self.progress)
        except CannotBuild as refusal:
            part.unlink(missing_ok=True)
            self.attempts.append(Attempt("go build", str(refusal)))
            raise DevServerUnavailable(self.attempts) from refusal


def _version_line(path: Path) -> str:
    done = subprocess.run(  # noqa: S603 - the CLI a person installed or we made
        [str(path), "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
