"""Which Temporal CLI to run as the dev server: one that is installed, or one that
is downloaded or built.
"""

import asyncio
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path

from sennit.folders import DEPLOY
from sennit.starter.dev.messages import LocalStackFailed, Say, last_lines, to_stderr
from sennit.starter.dev.state import hold

RELEASE = "v1.8.2"  # of the CLI that deploy/dev-server pins: server 1.31.2, UI 2.50.1
SERVER = (1, 31)
OLDEST_UI = (2, 50)
MODULES = DEPLOY / "dev-server"
DOWNLOAD_LIMIT = 900.0  # seconds
BUILD_LIMIT = 1800.0  # seconds; a slow machine needs 15 minutes
SAY_EVERY = 10.0  # seconds
WAYS_OUT = (
    "Any one of these helps: install Go (https://go.dev/dl) and repeat; set SENNIT_TEMPORAL_CLI to "
    "a Temporal CLI with Server 1.31 and UI 2.50 or newer (https://docs.temporal.io/cli), or put "
    "it on PATH; use a Temporal server you have with --address or TEMPORAL_ADDRESS."
)


class _Unusable(Exception):
    """This way gives no binary. The text says why."""


async def obtain(say: Say = to_stderr, *, pinned_only: bool = False) -> Path:
    """Return the Temporal CLI to run, downloaded or built if need be;
    LocalStackFailed when there is no way.

    In this order: SENNIT_TEMPORAL_CLI, the binary made before if it is still what was made,
    `temporal` on PATH when its versions fit (not with `pinned_only`), the SDK's download, a build
    with Go. A build takes minutes; cancelling ends all its processes. Two clients never make the
    binary at once, and a killed one leaves no half binary.
    """
    failures: list[str] = []
    made = cache_dir() / f"temporal-{cache_key(MODULES, f'{sys.platform} {platform.machine()}')}"
    try:
        if named := os.environ.get("SENNIT_TEMPORAL_CLI"):
            return _named(Path(named), say)
        if not await asyncio.to_thread(_is_as_made, made):
            failures.append(f"made before: nothing in {made.parent} that is as it was made")
            if not pinned_only:
                try:
                    return _on_path(say)
                except _Unusable as failure:
                    failures.append(str(failure))
            made.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock, waiting = (
                made.with_suffix(".lock"),
                "waiting for another process that makes the Temporal dev server",
            )
            async with hold(lock, say, waiting):
                if not await asyncio.to_thread(_is_as_made, made):
                    await _make(made, failures, say)
        return made
    except _Unusable as failure:
        failures.append(str(failure))
    except OSError as error:
        failures.append(f"folder for the binary: {error}")
    lines = "".join(f"  {each}\n" for each in failures)
    raise LocalStackFailed(
        f"There is no Temporal dev server to run on this machine.\n{lines}{WAYS_OUT}"
    )


def cache_dir() -> Path:
    """Return the folder for built binaries; a relative XDG_CACHE_HOME is ignored as
    its specification asks.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "sennit"


def cache_key(modules: Path, machine: str) -> str:
    """Return a digest of everything that decides what a build yields: the pinned
    versions and the machine.
    """
    digest = sha256(f"{RELEASE} {machine}".encode())
    for name in ("go.mod", "go.sum"):
        if (modules / name).is_file():
            digest.update((modules / name).read_bytes())
    return digest.hexdigest()[:16]


def version_problem(cli: Path, source: str) -> str:
    """Return why Sennit does not choose this CLI by itself, or nothing. Raises
    _Unusable if it is none.
    """
    try:
        command = [str(cli), "--version"]
        version = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unusable(f"{source}: {cli} does not run: {error}") from error
    found = re.search(
        r"Server v?(\d{1,9})\.(\d{1,9})[^,]{0,99}, UI v?(\d{1,9})\.(\d{1,9})", version
    )
    if found is None:
        raise _Unusable(f"{source}: {cli} is not a Temporal CLI")
    server, ui = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
    if server == SERVER and ui >= OLDEST_UI:
        return ""
    has = f"{cli} has Server {found[1]}.{found[2]} and UI {found[3]}.{found[4]}"
    return f"{has}; needed are Server 1.31 and UI 2.50 or newer"


def _named(cli: Path, say: Say) -> Path:
    if problem := version_problem(cli, "SENNIT_TEMPORAL_CLI"):
        say(f"SENNIT_TEMPORAL_CLI is used, but {problem}")
    return cli.absolute()


def _on_path(say: Say) -> Path:
    source = "temporal on PATH"
    found = shutil.which("temporal")
    if found is None:
        raise _Unusable(f"{source}: not found")
    if problem := version_problem(Path(found), source):
        say(f"skipping {problem}")
        raise _Unusable(f"{source}: {problem}")
    return Path(found).absolute()


def _is_as_made(made: Path) -> bool:
    """Whether the binary is there, as it was made. Raises _Unusable if another user
    could have changed it.
    """
    if not made.is_file():
        return False
    for path in (made.parent, made):
        status = path.stat()
        if status.st_uid not in (0, os.getuid()) or status.st_mode & 0o022:
            raise _Unusable(
                f"made before: other users can change {path}; remove it, or set XDG_CACHE_HOME"
            )
    recorded = _digest_file(made)
    return recorded.exists() and recorded.read_text() == _digest(made)


def _digest_file(made: Path) -> Path:
    return made.with_suffix(".sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


async def _make(made: Path, failures: list[str], say: Say) -> None:
    part = made.with_suffix(".part")
    part.unlink(missing_ok=True)  # of a process that was killed
    try:
        try:
            command = [
                sys.executable,
                "-P",
                "-m",
                "sennit.starter.dev.download",
                RELEASE,
                str(part),
            ]
            label = f"trying to download the Temporal dev server {RELEASE} ..."
            await _run("download", command, label, DOWNLOAD_LIMIT, say)
        except _Unusable as problem:
            failures.append(str(problem))
            if not MODULES.is_dir():
                raise _Unusable(
                    "build: this installation has no deploy/dev-server; use a source checkout"
                ) from None
            label = "building the Temporal dev server (about 3 minutes the first time) ..."
            cli = "github.com/temporalio/cli"
            version = f"-X {cli}/internal/temporalcli.Version={RELEASE.removeprefix('v')}"
            command = [
                "sh",
                str(DEPLOY / "go-build.sh"),
                str(MODULES),
                f"{cli}/cmd/temporal",
                str(part),
                version,
            ]
            await _run("build", command, label, BUILD_LIMIT, say)
        version_problem(part, "the new binary")
        _digest_file(made).write_text(await asyncio.to_thread(_digest, part))
        part.replace(made)
    finally:
        part.unlink(missing_ok=True)


async def _run(name: str, command: Sequence[str], label: str, limit: float, say: Say) -> None:
    """Run a long command with its output in a log, and say every ten seconds that it
    runs. Raises _Unusable.
    """
    log = cache_dir() / f"{name}.log"
    say(label)
    with log.open("wb") as output:
        child = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    started = time.monotonic()
    ended = asyncio.ensure_future(child.wait())
    try:
        while not (await asyncio.wait([ended], timeout=min(SAY_EVERY, limit)))[0]:
            elapsed = time.monotonic() - started
            if elapsed >= limit:
                raise _Unusable(f"{name}: not done after {limit / 60:.0f} minutes (log {log})")
            say(f"{label} {elapsed:.0f} s")
    finally:
        if not ended.done():
            os.killpg(child.pid, signal.SIGKILL)
            await ended
    if child.returncode:
        raise _Unusable(
            f"{name}: {last_lines(log) or f'exit status {child.returncode}'} (log {log})"
        )
