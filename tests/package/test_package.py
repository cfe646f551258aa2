"""Sennit is one package: what importing it does, under which names nothing is found, and where its parts lie."""

import ast
import fnmatch
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sennit
from sennit.folders import CORPUS, DEPLOY, PACKAGE, PROGRAMS

ROOT = Path(__file__).parents[2]
LINKS = sorted(path for path in PACKAGE.iterdir() if path.is_symlink())
OLD = ("workflows", "activities", "workers", "starter")
INSIDE = (("workflows", "plan.language.nodes"), ("activities", "toolbox"), ("starter", "client"))


def python(code: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_importing_the_package_imports_nothing_else(tmp_path: Path) -> None:
    """Neither in the sandbox of untrusted code, which has the standard library only, nor for each run of a workflow."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); before = {{*sys.modules}}; import sennit\n"
    code += "print(sorted({*sys.modules} - before))"
    assert python(code, tmp_path, "-I", "-S").stdout == "['sennit']\n"


def test_what_runs_in_the_sandbox_of_untrusted_code_needs_no_other_package(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += "import sennit.activities.sandbox.supervisor, sennit.activities.sandbox.restrict; print('imported')"
    done = python(code, tmp_path, "-I", "-S")
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.parametrize("name", sennit.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(sennit, name).__name__ == name


def test_type_checkers_and_python_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted(seen) == sorted(sennit.__all__)
    for name, module in seen.items():
        assert getattr(importlib.import_module(str(module)), name) is getattr(sennit, name)
    assert set(sennit.__all__) <= set(dir(sennit))
    with pytest.raises(AttributeError, match="module 'sennit' has no attribute 'Senit'"):
        sennit.__getattr__("Senit")


@pytest.mark.parametrize("name", [*OLD, *(f"{top}.{name}" for top, name in INSIDE)])
@pytest.mark.parametrize("folder", [ROOT, Path("/")], ids=["checkout", "elsewhere"])
def test_nothing_has_an_old_name(name: str, folder: Path) -> None:
    done = python(f"import {name}", folder)
    top = name.partition(".")[0]
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: No module named {top!r}"


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_links_stay_in_the_checkout(link: Path) -> None:
    assert str(link.readlink()) == f"../{link.name}"
    assert link.resolve() == ROOT / link.name


def test_what_comes_with_the_package_is_where_it_says() -> None:
    assert (CORPUS / "rivers" / "nile.md").is_file()
    assert (PROGRAMS / "debate.py").is_file()
    assert (DEPLOY / "go-build.sh").is_file()
    assert (DEPLOY / "dev-server" / "go.mod").is_file()


def test_the_processes_of_isolated_tools_start_with_what_is_there() -> None:
    """The server of forks says nothing if it cannot import a module, and each process then imports it anew."""
    code = "import multiprocessing.forkserver as it; from sennit import tool; print(*it._forkserver._preload_modules)"
    names = python(code, ROOT).stdout.split()
    assert names == ["sennit.activities.toolbox.loader"]
    importlib.import_module(*names)


COMMAND = re.compile(r"\bpython3?\S* (?:-[A-Z]+ )*-m (\w[\w.]*)|\"-m\",\s+\"([\w.]+)\"")
PLACES = ("Makefile", ".ci/run", "README.md", "CONTRIBUTING.md", "docs/*.md", "deploy/**/*", "**/*.py")


def test_every_module_that_a_command_runs_exists() -> None:
    files = {path for place in PLACES for path in ROOT.glob(place) if path.is_file() and ".venv" not in path.parts}
    named: dict[str, str] = {}
    for path in files - {Path(__file__)}:
        text = path.read_text(errors="replace")
        named |= {first or second: str(path.relative_to(ROOT)) for first, second in COMMAND.findall(text)}
    assert named.keys() >= {"sennit", "sennit.workers", "sennit.starter.dev.download", "sennit.starter.dev.supervisor"}
    ours = {name: place for name, place in named.items() if name.partition(".")[0] in ("sennit", *OLD)}
    missing = {f"{place} runs {name}" for name, place in ours.items() if not _runs(name)}
    assert not missing


def _runs(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return name.startswith("sennit") and (place.with_suffix(".py").is_file() or (place / "__main__.py").is_file())


def test_the_type_checker_sees_the_source_under_its_names_only() -> None:
    """Listed as both `sennit` and `workflows`, a file would be checked as two modules whose classes differ."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert "sennit" in settings["files"]
    assert not {*OLD} & {*settings["files"]}
    source = [f"sennit/{path.relative_to(ROOT)}" for top in OLD for path in (ROOT / top).rglob("*.py")]
    assert not [name for name in source if any(re.search(pattern, name) for pattern in settings["exclude"])]


OF_A_NEW_GLIBC = re.compile(r"\bos\.(?:copy_file_range|getrandom|memfd_create|pidfd_open)\(|pidfd_send_signal|setsid=")


def test_the_source_needs_no_python_that_was_built_for_a_new_glibc() -> None:
    """Those that uv installs, of python-build-standalone, lack these."""
    files = [path for top in OLD for path in (ROOT / top).rglob("*.py")]
    found = {str(path): OF_A_NEW_GLIBC.findall(path.read_text()) for path in files}
    assert not {path: calls for path, calls in found.items() if calls and not path.endswith("seccomp.py")}


def test_all_data_of_the_source_is_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = [pattern.replace("**/", "*") for pattern in settings["package-data"]["sennit"]]
    files = [path for top in (*OLD, "examples") for path in (ROOT / top).rglob("*") if path.is_file()]
    data = [path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".pyc"]
    data = [name for name in data if not name.endswith(".py") or name.startswith("examples/")]
    assert "activities/providers/prices.toml" in data
    assert not [name for name in data if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
