"""Every cache has a bound in bytes, and one table of the docs says which."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("sennit/testing", "workflows", "activities", "workers", "starter")
SOURCE = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
CLASS = ROOT / "workflows" / "plan" / "bounded_cache.py"
BOUND = re.compile(r"MAX_KEPT_\w+_BYTES")
ROW = re.compile(r"^\| .+ \| (\d+) (KiB|MiB|GiB)[^|]* \| `([\w/.]+)` `(MAX_KEPT_\w+_BYTES)` \|$", re.MULTILINE)
FEW = ("_script",)
"""Functions that keep an open file for each of a few arguments, which the code alone decides."""
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def unbounded(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which a cache is made that has no bound in bytes. A function without parameters keeps one
    value, which is none.
    """
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                if {"lru_cache", "OrderedDict", "cachetools"} & {alias.name for alias in names}:
                    yield node.lineno
            case ast.Call(func=function):
                if ast.unparse(function).rpartition(".")[2] in ("lru_cache", "popitem", "cache"):
                    yield node.lineno
            case ast.FunctionDef(decorator_list=decorators, args=parameters):
                is_cached = any(ast.unparse(each).rpartition(".")[2] == "cache" for each in decorators)
                if is_cached and ast.unparse(parameters) and node.name not in FEW:
                    yield node.lineno


def bounds(tree: ast.AST) -> Iterator[str]:
    """Yield what each cache has as its bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).partition("[")[0] == "BoundedCache":
            yield ast.unparse(node.args[0])


@pytest.mark.parametrize(
    "text",
    [
        "from functools import lru_cache",
        "from collections import OrderedDict",
        "import cachetools",
        "found.popitem(last=False)",
        "_signature = cache(signature)",
        "@cache\ndef found(name): pass",
    ],
)
def test_a_cache_without_a_bound_is_found(text: str) -> None:
    assert list(unbounded(ast.parse(text)))
    assert not list(unbounded(ast.parse("@cache\ndef found(): pass\nfound()")))


def test_there_is_no_cache_without_a_bound_in_bytes() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}" for path in SOURCE if path != CLASS for line in unbounded(tree_of(path))
    ]
    assert not wrong, wrong


def test_the_table_of_the_docs_has_each_bound() -> None:
    used = {bound for path in SOURCE for bound in bounds(tree_of(path))}
    assert not [bound for bound in used if not BOUND.fullmatch(bound)]
    text = (ROOT / "docs" / "operations.md").read_text().partition("## Caches\n")[2].partition("\n## ")[0]
    rows = ROW.findall(text)
    assert len(rows) == len([line for line in text.splitlines() if line.startswith("| ")]) - 1
    for number, unit, file, name in rows:
        module = import_module(f"sennit.{file.removesuffix('.py').replace('/', '.')}")
        assert getattr(module, name) == int(number) * UNITS[unit], name
    limits = "".join((ROOT / folder / "limits.py").read_text() for folder in ("workflows/plan", "activities"))
    declared = set(re.findall(r"^(MAX_KEPT_\w+_BYTES): Final", limits, re.MULTILINE))
    assert sorted(name for *_, name in rows) == sorted(declared)
    on_disk = {name for name in declared - used if "FILES" in name or "PDF" in name}
    assert declared == used | on_disk


def test_the_bounds_in_memory_leave_a_worker_half_of_its_container() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    sizes = [int(number) * UNITS[unit] for number, unit, *_ in ROW.findall(text) if unit != "GiB"]
    assert sum(sizes) <= 512 << 20
