"""What a release consists of: the source distribution of this checkout, and the wheel that is built from it."""

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests")


@dataclass(frozen=True)
class Distribution:
    sdist: Path
    wheel: Path


def build(place: Path) -> Distribution:
    """Build both below `place`; the checkout stays as it is, and no index is asked."""
    shutil.copytree(ROOT, place / "checkout", symlinks=True, ignore=LEFT_OUT)
    sdist = place / _run("build_sdist", place / "checkout", place)
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    return Distribution(sdist, build_wheel(place / sdist.name.removesuffix(".tar.gz"), place))


def build_wheel(folder: Path, place: Path) -> Path:
    """Build the wheel of the files in `folder` into `place`."""
    return place / _run("build_wheel", folder, place)


def _run(step: str, folder: Path, place: Path) -> str:
    code = f"from setuptools import build_meta; print(build_meta.{step}({str(place)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
