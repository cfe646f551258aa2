"""The Temporal CLI built from source with Go, from the versions pinned in deploy/dev-server."""

import os
import re
import subprocess
from pathlib import Path

from starter.dev.watched import Progress, last_lines, run_watched

PACKAGE = "github.com/temporalio/cli/cmd/temporal"
BUILD_LIMIT = 1800.0  # seconds: a slow machine needs 15 minutes, a network that hangs would need for ever
LABEL = "building the Temporal dev server (about 3 minutes the first time) ..."

GoVersion = tuple[int, int, int]


class CannotBuild(Exception):
    """Go cannot build the server here; the text says why."""


def parse_go_version(text: str) -> GoVersion | None:
    """`go1.26.4`, `go1.27rc1`, `devel go1.28-af3d` as numbers; None when it is none of these."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def needed_go(go_mod: str) -> GoVersion:
    """The version the `go` line of a go.mod asks for."""
    line = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    version = parse_go_version(line[1]) if line else None
    if version is None:
        raise CannotBuild("go.mod names no Go version")
    return version


def go_problem(found: GoVersion | None, toolchain: str, needed: GoVersion) -> str | None:
    """Why this Go cannot build, or None. From 1.21 on, Go fetches the version it needs unless told not to."""
    wanted = dotted(needed)
    if found is None:
        return f"`go env GOVERSION` is not understood; Go {wanted} or newer is needed"
    if found >= needed:
        return None
    if found < (1, 21, 0):
        return f"Go {dotted(found)} is too old; {wanted} or newer is needed"
    if toolchain.partition("+")[2] in ("auto", "path") or toolchain in ("auto", "path"):
        return None
    return f"Go {dotted(found)} is too old and GOTOOLCHAIN={toolchain}; {wanted} or newer is needed"


def dotted(version: GoVersion) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


def build_server(modules: Path, release: str, target: Path, progress: Progress) -> None:
    """Build the CLI pinned by `modules`/go.mod into the file `target`; CannotBuild says what is missing.

    `target` may be left half-written by a killed build: callers give a temporary name and rename it.
    """
    needed = needed_go((modules / "go.mod").read_text())
    found, toolchain = _installed_go(target.parent, needed)
    problem = go_problem(found, toolchain, needed)
    if problem:
        raise CannotBuild(problem)
    if found and found < needed:
        progress.say(f"Go {dotted(found)} fetches Go {dotted(needed)} first")
    log = target.parent / "build.log"
    version_flag = f"-X github.com/temporalio/cli/internal/temporalcli.Version={release.removeprefix('v')}"
    command = ["go", "build", "-mod=readonly", "-ldflags", f"-s -w {version_flag}", "-o", str(target), PACKAGE]
    code = run_watched(
        command, log=log, label=LABEL, progress=progress, cwd=modules, env=_build_environment(), limit=BUILD_LIMIT
    )
    if code is None:
        raise CannotBuild(f"not done after {BUILD_LIMIT / 60:.0f} minutes; output in {log}")
    if code:
        raise CannotBuild(f"exit status {code}; the last lines of {log}:\n{last_lines(log)}")


def _build_environment() -> dict[str, str]:
    """For this machine, whatever a person cross-compiles for in this shell; no workspace of theirs."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH")}
    return {**kept, "GOWORK": "off"}


def _installed_go(cwd: Path, needed: GoVersion) -> tuple[GoVersion | None, str]:
    command = ["go", "env", "GOVERSION", "GOTOOLCHAIN"]
    try:
        done = subprocess.run(  # noqa: S603 - a command of ours, not text from outside
            command, cwd=cwd, env=_build_environment(), capture_output=True, text=True, timeout=30, check=True
        )
    except FileNotFoundError:
        raise CannotBuild(f"Go is not installed; {dotted(needed)} or newer is needed") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotBuild(f"`go env` failed: {error}") from error
    version, _, toolchain = done.stdout.strip().partition("\n")
    return parse_go_version(version), toolchain.strip()
