"""A release is whole: what the wheel and the source distribution hold, and what they say about themselves."""

import email
import re
import shutil
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from doubles.distribution import LEFT_OUT, ROOT, Distribution, build, build_wheel

COPIED = re.compile(r"^COPY (.+) (/src/\S*)$", re.MULTILINE)
SENT = re.compile(r"^!(\S+)$", re.MULTILINE)
LINKED = ("workflows", "activities", "workers", "starter", "examples")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def wheel(built: Distribution) -> set[str]:
    return set(zipfile.ZipFile(built.wheel).namelist())


@pytest.fixture(scope="module")
def metadata(built: Distribution) -> Message:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return email.message_from_bytes(archive.read(name))


def checked_in(folder: str) -> set[str]:
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(ROOT).as_posix() for path in paths if path.suffix != ".pyc"}


def test_the_wheel_has_one_package(wheel: set[str]) -> None:
    assert {name.partition("/")[0] for name in wheel if ".dist-info/" not in name} == {"sennit"}


@pytest.mark.parametrize("folder", LINKED)
def test_the_wheel_has_every_file_behind_a_link(wheel: set[str], folder: str) -> None:
    files = checked_in(folder)
    assert files
    assert {f"sennit/{name}" for name in files} == {name for name in wheel if name.startswith(f"sennit/{folder}/")}


def test_the_wheel_has_what_else_the_package_needs(wheel: set[str]) -> None:
    assert checked_in("sennit") <= wheel
    server = {f"sennit/deploy/{name}" for name in ("go-build.sh", "dev-server/go.mod", "dev-server/go.sum")}
    assert {name for name in wheel if name.startswith("sennit/deploy/")} == server


def test_the_source_distribution_has_pages_examples_and_history(built: Distribution) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert not [member.name for member in archive if member.issym()]
    assert checked_in("docs") | checked_in("examples") <= names
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith("tests")]


def test_the_metadata_says_who_made_it_and_what_it_is(metadata: Message) -> None:
    assert metadata["Author"] == "The Sennit authors"
    assert "temporal" in metadata["Keywords"].split(",")
    found = metadata.get_all("Classifier") or []
    assert "Typing :: Typed" in found
    versions = [name.rpartition(" ")[2] for name in found if name.startswith("Programming Language :: Python :: 3.")]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert metadata["Requires-Python"] == f"<3.15,>={versions[0]}"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_command_is_the_package_itself(built: Distribution) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert archive.read(name).decode().split() == ["[console_scripts]", "sennit", "=", "sennit.__main__:main"]


def test_the_image_installs_the_same_wheel(wheel: set[str], tmp_path: Path) -> None:
    """Its build sees only what `.dockerignore` sends, and a link whose target it lacks leads nowhere."""
    sent = SENT.findall((ROOT / ".dockerignore").read_text())
    for names, target in COPIED.findall((ROOT / "deploy/image/Containerfile").read_text()):
        for name in names.split():
            assert name in sent
            place = tmp_path / "src" / Path(target).relative_to("/src")
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, symlinks=True, ignore=LEFT_OUT)
            else:
                place = place / name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
    assert set(zipfile.ZipFile(build_wheel(tmp_path / "src", tmp_path)).namelist()) == wheel
