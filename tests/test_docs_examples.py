"""The examples on the pages about testing and the client: run, or at least checked, as they stand there."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sennit.starter.dev.binary import obtain

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / "docs" / page).read_text())


@pytest.mark.server
@pytest.mark.timeout(300)
def test_the_tests_on_the_page_about_testing_pass(tmp_path: Path) -> None:
    found = blocks("testing.md")
    for number, text in enumerate(found):
        (tmp_path / f"test_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_", "PYTEST"))}
    env |= {"SENNIT_TEMPORAL_CLI": str(asyncio.run(obtain(pinned_only=True))), "XDG_CONFIG_HOME": str(tmp_path)}
    plain = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *plain, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{sum(text.count('def test_') for text in found)} passed" in done.stdout


def test_the_examples_on_the_page_about_the_client_fit_its_types(tmp_path: Path) -> None:
    """mypy finds here what `make lint` has checked of the source."""
    for number, text in enumerate(blocks("client.md")):
        (tmp_path / f"client_{number}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
