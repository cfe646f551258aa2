"""What `.ci/run` does with steps that fail, with a `make` that only writes down how it was called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = """#!/usr/bin/env bash
echo "$* TMPDIR=$TMPDIR" >>"$CALLS"
for failure in $FAILURES; do
    if [ "$1" = "${failure%:*}" ] && [ "$(grep -c "^$1 " "$CALLS")" -le "${failure#*:}" ]; then
        exit 1
    fi
done
"""


def execute(
    folder: Path, failures: str, build: str | None = None
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script; `make TARGET` fails as often as `TARGET:TIMES` says. Return the run, and the calls of make.

    The cluster's tests have passed, unless there is a `build`: the script that builds the cluster's programs.
    """
    programs = folder / "programs"
    for place in (folder / ".ci", folder / "deploy/dev-cluster", programs):
        place.mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    (folder / "deploy/dev-cluster/tested.sh").write_text("echo same\n")
    (folder / "deploy/dev-cluster/verified").write_text("same\n")
    stubs = {"make": MAKE, "chromium": MAKE, "prometheus": MAKE}
    if build is not None:
        (folder / "deploy/dev-cluster/verified").write_text("other\n")
        (folder / "deploy/dev-cluster/build.sh").write_text(build)
        stubs |= {"go": MAKE, "apt-get": MAKE, "id": "#!/bin/sh\necho 0\n"}
    for name, script in stubs.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)

    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "CALLS": str(folder / "calls"),
        "FAILURES": failures,
    }
    command = ["bash", ".ci/run"]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return run, (folder / "calls").read_text().splitlines()


def test_steps_that_pass_run_once(tmp_path: Path) -> None:
    run, calls = execute(tmp_path, "")
    assert run.returncode == 0, run.stderr
    assert [call.split()[0] for call in calls] == ["lint", "test", "test-ui", "test-wheel", "test-models", "chaos"]
    assert "flaky" not in run.stdout


@pytest.mark.parametrize("target", ["test", "test-ui", "test-wheel", "test-models", "chaos"])
def test_a_step_that_fails_runs_once_more_in_folders_of_its_own(tmp_path: Path, target: str) -> None:
    run, calls = execute(tmp_path, f"{target}:1")
    assert run.returncode == 0, run.stderr
    name = {"test": "suite"}.get(target, target.removeprefix("test-"))
    assert run.stdout.splitlines()[-1] == f"flaky: {name}"

    executions = [call for call in calls if call.split()[0] == target]
    assert len(executions) == 2
    folders = {call.partition("TMPDIR=")[2] for call in executions}
    assert len(folders) == 2
    assert target == "chaos" or "--last-failed" in executions[1]
    assert "--last-failed" not in executions[0]


def test_a_step_that_fails_twice_fails(tmp_path: Path) -> None:
    run, calls = execute(tmp_path, "test-ui:2")
    assert run.returncode != 0
    assert "test-wheel" not in " ".join(calls)


def test_lint_runs_once(tmp_path: Path) -> None:
    run, calls = execute(tmp_path, "lint:1")
    assert run.returncode != 0
    assert len(calls) == 1


def test_the_cluster_comes_last_where_its_tests_have_not_passed_on_what_is_here(tmp_path: Path) -> None:
    run, calls = execute(tmp_path, "", build="exit 0\n")
    assert run.returncode == 0, run.stderr
    targets = [call.split()[0] for call in calls]
    assert targets[6:] == ["cluster-down", "cluster-up", "cluster-test", "cluster-down", "compose-test", "cluster-down"]


def test_the_cluster_is_left_out_while_its_programs_are_still_being_built(tmp_path: Path) -> None:
    run, calls = execute(tmp_path, "", build="exec sleep 300\n")
    assert run.returncode == 0, run.stderr
    assert "cluster-up" not in " ".join(calls)
    assert "cluster: skipped: its programs are still being built" in run.stdout
