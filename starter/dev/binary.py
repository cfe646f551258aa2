"""Which Temporal CLI to run as the dev server. `python -m starter.dev.binary` prints its path, or why there is none."""

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
from hashlib import sha256
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from starter.dev.failures import LocalStackFailed
from starter.dev.messages import Say, last_lines, to_stderr

RELEASE = "v1.8.2"  # of the CLI that deploy/dev-server pins: server 1.31.2, UI 2.50.1
SERVER = (1, 31)
OLDEST_UI = (2, 50)
MODULES = Path(__file__).parents[2] / "deploy" / "dev-server"
DOWNLOAD_LIMIT = 900.0  # seconds
BUILD_LIMIT = 1800.0  # seconds: a slow machine needs 15 minutes, a network that hangs would need for ever
SAY_EVERY = 10.0  # seconds
WAYS_OUT = (
    "Any one of these helps: install Go (https://go.dev/dl) and repeat; set SENNIT_TEMPORAL_CLI to a Temporal CLI with "
    "Server 1.31 and UI 2.50 or newer (https://docs.temporal.io/cli), or put it on PATH; use a Temporal server you "
    "have with --address or TEMPORAL_ADDRESS."
)


class _Unusable(Exception):
    """This way gives no binary; the text says why."""


async def obtain_apart(say: Say) -> Path:
    """Do what `obtain` does in a process of its own, which ends when the person who waits gives up."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "starter.dev.binary"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async for line in child.stderr:
            say(line.decode().rstrip())
        output = (await child.stdout.read()).decode()
        if await child.wait():
            raise LocalStackFailed(output)
        return Path(output)
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            await child.wait()


def obtain(*, pinned_only: bool = False) -> Path:
    """Return the Temporal CLI to run, downloaded or built if need be; LocalStackFailed when there is no way.

    In this order: SENNIT_TEMPORAL_CLI, the binary made before, `temporal` on PATH when its versions fit (not with
    `pinned_only`), the SDK's download, a build with Go. Blocks, for minutes when it builds, and says so on stderr.
    Two processes never make the binary at once, and a killed one leaves no half binary.
    """
    failed: list[str] = []
    made = cache_dir() / f"temporal-{cache_key(MODULES, f'{sys.platform} {platform.machine()}')}"
    try:
        if named := os.environ.get("SENNIT_TEMPORAL_CLI"):
            return _named(Path(named))
        if not made.is_file():
            failed.append(f"made before: nothing in {made.parent}")
            if not pinned_only and (found := _on_path(failed)):
                return found
            _make(made, failed)
        return made
    except _Unusable as problem:
        failed.append(str(problem))
    except OSError as error:
        failed.append(f"folder for the binary: {error}")
    lines = "".join(f"  {each}\n" for each in failed)
    raise LocalStackFailed(f"There is no Temporal dev server to run on this machine.\n{lines}{WAYS_OUT}")


def cache_dir() -> Path:
    """Return the folder for built binaries; a relative XDG_CACHE_HOME is ignored as its specification asks."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "sennit"


def cache_key(modules: Path, machine: str) -> str:
    """Return a digest of everything that decides what a build yields: the pinned versions and the machine."""
    digest = sha256(f"{RELEASE} {machine}".encode())
    for name in ("go.mod", "go.sum"):
        if (modules / name).is_file():
            digest.update((modules / name).read_bytes())
    return digest.hexdigest()[:16]


def version_problem(cli: Path) -> str:
    """Return why Sennit does not choose this CLI by itself, or nothing. Raises _Unusable if it is none."""
    try:
        asked = [str(cli), "--version"]
        version = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unusable(f"{cli} does not run: {error}") from error
    found = re.search(r"Server v?(\d+)\.(\d+)[^,]*, UI v?(\d+)\.(\d+)", version)
    if found is None:
        raise _Unusable(f"{cli} is not a Temporal CLI")
    server, ui = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
    if server == SERVER and ui >= OLDEST_UI:
        return ""
    has = f"{cli} has Server {found[1]}.{found[2]} and UI {found[3]}.{found[4]}"
    return f"{has}; needed are Server 1.31 and UI 2.50 or newer"


def _named(cli: Path) -> Path:
    try:
        if problem := version_problem(cli):
            to_stderr(f"SENNIT_TEMPORAL_CLI is used, but {problem}")
    except _Unusable as unusable:
        raise _Unusable(f"SENNIT_TEMPORAL_CLI: {unusable}") from None
    return cli.absolute()


def _on_path(failed: list[str]) -> Path | None:
    found = shutil.which("temporal")
    if found is None:
        failed.append("temporal on PATH: not found")
        return None
    try:
        problem = version_problem(Path(found))
    except _Unusable as unusable:
        problem = str(unusable)
    if problem:
        to_stderr(f"skipping {problem}")
        failed.append(f"temporal on PATH: {problem}")
    return None if problem else Path(found).absolute()


def _make(made: Path, failed: list[str]) -> None:
    made.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(made.with_suffix(".lock"), mode=0o600, timeout=SAY_EVERY)
    while not lock.is_locked:
        try:
            lock.acquire()
        except Timeout:
            to_stderr("waiting for another process that makes the Temporal dev server ...")
    folder = made.with_suffix(".making")
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    try:
        if not made.is_file():
            folder.mkdir()
            _download_or_build(folder / "temporal", failed)
            version_problem(folder / "temporal")
            (folder / "temporal").replace(made)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _download_or_build(target: Path, failed: list[str]) -> None:
    download = [sys.executable, "-P", "-m", "starter.dev.download", RELEASE, str(target)]
    try:
        _run(download, "download", f"trying to download the Temporal dev server {RELEASE} ...", DOWNLOAD_LIMIT)
    except _Unusable as problem:
        failed.append(str(problem))
        script = MODULES / "build.sh"
        if not script.is_file():
            raise _Unusable(
                "build: deploy/dev-server is not part of this installation; use a source checkout"
            ) from None
        label = "building the Temporal dev server (about 3 minutes the first time) ..."
        _run(["sh", str(script), RELEASE, str(target)], "build", label, BUILD_LIMIT)


def _run(command: Sequence[str], name: str, label: str, limit: float) -> None:
    """Run a long command, saying `label` and the time, its output in a log; _Unusable when it does not succeed."""
    log = cache_dir() / f"{name}.log"
    to_stderr(label)
    started = time.monotonic()
    with log.open("wb") as output:
        child = psutil.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        while child.poll() is None and (elapsed := time.monotonic() - started) < limit:
            try:
                child.wait(timeout=SAY_EVERY)
            except psutil.TimeoutExpired:
                to_stderr(f"{label} {elapsed + SAY_EVERY:.0f} s")
        if child.poll() is None:
            raise _Unusable(f"{name}: not done after {limit / 60:.0f} minutes (log {log})")
    finally:
        if child.poll() is None:
            for each in [child, *child.children(recursive=True)]:
                each.kill()
            child.wait()
    if child.returncode:
        raise _Unusable(f"{name}: {last_lines(log) or f'exit status {child.returncode}'} (log {log})")


if __name__ == "__main__":
    try:
        sys.stdout.write(str(obtain()))
    except LocalStackFailed as failure:
        sys.stdout.write(str(failure))
        sys.exit(1)
