"""The other versions of Python on this machine."""

import os
import shutil
import subprocess
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def python_of(version: str, needs: str = "ensurepip, venv") -> str | None:
    """Return a Python of this version that has what it `needs`: one on PATH, or one that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [
        shutil.which(f"python{version}"),
        *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}"))),
    ]
    for each in filter(None, found):  # a version manager may put commands on PATH that exist and fail
        if subprocess.run([each, "-c", f"import {needs}"], capture_output=True, check=False).returncode == 0:
            return each
    return None
