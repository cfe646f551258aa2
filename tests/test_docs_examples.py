"""The pages: examples about testing and the client run, or are checked, as they stand; links lead somewhere."""

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


@pytest.mark.timeout(600)
def test_the_examples_on_the_page_about_the_client_fit_its_types(tmp_path: Path) -> None:
    """mypy finds here what `make lint` has checked of the source. Without that it reads all of the source itself."""
    for number, text in enumerate(blocks("client.md")):
        (tmp_path / f"client_{number}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


LINK = re.compile(r"\]\(([^)\s#]*)#?([^)\s]*)\)")
NAMED = re.compile(r"`((?:tests|examples|deploy)/[\w./-]+\.\w+)`")


def test_what_the_pages_refer_to_is_there() -> None:
    wrong = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        text = page.read_text()
        places = [(page.parent / file if file else page, part) for file, part in LINK.findall(text) if ":" not in file]
        wrong += [f"{page.name}: {place} {part}" for place, part in places if not _is_there(place, part)]
        wrong += [f"{page.name}: {name}" for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert wrong == []


def _is_there(place: Path, part: str) -> bool:
    if not part or place.suffix != ".md" or not place.exists():
        return place.exists()
    headings = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
    return part in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200
