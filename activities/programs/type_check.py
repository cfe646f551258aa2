"""Checks the types of scripts with the program `ty`, where the extra `types` has installed it.

It only adds to what is found before a run: without it, or if it takes too long, nothing is found.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from sennit.activities.sandbox.confinement import find_confinement
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.files import files_in
from sennit.workflows.plan.programs.types import is_of_use, type_problem

_PROBLEMS: Final = 50
_SECONDS: Final = 10
_MEMORY_BYTES: Final = 2 << 30
"""Of address space, most of which ty never touches."""
_STUBS: Final = "__builtins__.pyi"
"""Where ty looks for names that every file has."""
_PROGRAM: Final = "__program__.py"
_ENDED: Final = (0, 1)
"""The exit statuses of ty: nothing found, something found."""

log = logging.getLogger(__name__)


def types_checked(text: str, script: str, stubs: str) -> list[Problem]:
    """Return what the types of a script do not allow, the first 50. `text` is the script without
    what the run does anyway, and `stubs` are the types of what it may call.
    """
    problems = list[Problem]()
    for finding in _findings(text, stubs):
        if is_of_use(finding, script):
            problems.append(type_problem(finding, script))
    distinct = list(dict.fromkeys(problems))
    return distinct[:_PROBLEMS]


def _findings(text: str, stubs: str) -> list[dict[str, Any]]:
    """Return what ty says, as `is_of_use` and `type_problem` take it."""
    program = _program()
    if program is None:
        return []
    with tempfile.TemporaryDirectory(prefix="sennit-types-") as name:
        folder = Path(name)
        # Where the worker is root, ty runs as another user, who may read this and write nothing.
        folder.chmod(0o755)
        (folder / _STUBS).write_text(stubs, encoding="utf-8")
        before = dict[str, int]()
        for file in files_in(text):
            file_path = file.path or _PROGRAM
            before[file_path] = file.before
            path = folder / file_path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        command = find_confinement().command(program, _MEMORY_BYTES, [name])
        command += ["check", "--project", name, "--python-version", version]
        command += ["--output-format", "gitlab", name]
        try:
            ended = subprocess.run(  # noqa: S603 - a program that the operator has installed, confined
                command,
                env={},
                cwd="/",
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("the types of a script were not checked: %s", error)
            return []
    if ended.returncode not in _ENDED:
        log.warning(
            "the types of a script were not checked: %.200s", ended.stderr.decode(errors="replace")
        )
        return []
    return [_finding(entry, before) for entry in json.loads(ended.stdout)]


def _finding(entry: dict[str, Any], before: Mapping[str, int]) -> dict[str, Any]:
    """Return a finding with its line in the whole script; `before` are the lines of
    that before each file.
    """
    code = str(entry["check_name"])
    # Newer versions have another name for it.
    if code == "missing-attribute":
        code = "unresolved-attribute"
    message = str(entry["description"]).partition(": ")[2]
    location = entry["location"]
    path = str(location["path"])
    # The path begins where ty was started, or at the root.
    row = location["positions"]["begin"]["line"]
    for file_path, lines in before.items():
        if path.endswith(f"/{file_path}"):
            row += lines
            break
    return {"code": code, "message": message, "location": {"row": row}}


@cache
def _program() -> str | None:
    """Return the path of ty, which is beside this Python or on the path, None
    if it is not installed.
    """
    beside = Path(sys.executable).with_name("ty")
    if beside.is_file():
        return str(beside)
    return shutil.which("ty")
