"""The shape of the source: which way imports point, how long files and functions may be, what must not be there."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("workflows", "activities", "workers", "starter")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
OWN = dict.fromkeys(PACKAGES)

MAY_IMPORT = {
    "workflows": ("workflows",),
    "activities": ("workflows", "activities"),
    "workers": ("workflows", "activities", "workers"),
    "starter": ("workflows", "starter"),
}
LONGEST_FILE = 300
LONGEST_FUNCTION = 50
BROAD_CATCHES = 2


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_arrows_between_packages_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for module in imports(path):
        top = module.partition(".")[0]
        assert top not in OWN or top in MAY_IMPORT[package], f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [path for path in FILES if "workflows/plan/" in name_of(path)], ids=name_of)
def test_the_core_is_pure(path: Path) -> None:
    allowed = ("pydantic", "pydantic_core", "workflows.plan")
    impure = ("asyncio", "datetime", "http", "io", "os", "pathlib", "random", "secrets", "socket", "subprocess", "time")
    for module in imports(path):
        top = module.partition(".")[0]
        assert top not in impure, f"{name_of(path)} imports {module}"
        assert top not in ("temporalio", "yaml", "httpx", "structlog", "rich"), f"{name_of(path)} imports {module}"
        assert top != "workflows" or module.startswith(allowed), f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_each_library_has_its_place(path: Path) -> None:
    name = name_of(path)
    found = {module.partition(".")[0] for module in imports(path)}
    assert "httpx" not in found or name.startswith(("activities/providers/", "activities/toolbox/"))
    assert "yaml" not in found or name in ("starter/planfile.py", "starter/positions.py")
    assert "rich" not in found or name.startswith("starter/")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_file_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), "no module docstring"
    assert "TODO" not in path.read_text()


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[-2] != "plan"], ids=name_of)
def test_names_are_nouns_of_the_problem(path: Path) -> None:
    assert path.stem not in ("utils", "util", "helpers", "common", "misc", "shared")


@pytest.mark.parametrize("path", [path for path in FILES if name_of(path).startswith("workflows/")], ids=name_of)
def test_workflow_code_never_iterates_a_set(path: Path) -> None:
    """A set of strings has another order in another process; the loop over it would break a replay."""
    for node in ast.walk(tree_of(path)):
        loops = [node.iter] if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else []
        for source in loops:
            called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
            is_set = isinstance(source, ast.Set | ast.SetComp) or called in ("set", "frozenset")
            assert not is_set, f"{name_of(path)}:{source.lineno} iterates a set"


def test_broad_catches_are_counted() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.type, ast.Name)
        and node.type.id in ("Exception", "BaseException")
    ]
    assert len(found) <= BROAD_CATCHES + 2, found
