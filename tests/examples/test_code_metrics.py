"""The example tool: loaded as a user loads it, and counting what is there."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, ToolContext, ToolError, load_tools

TOOLS = Path(__file__).parents[2] / "examples" / "tools"
MARK = "TO" + "DO"
SOURCE = f'''"""Text."""

import os, re
from . import near
from os import path


class Box:
    def size(self, sides):
        # {MARK} round corners
        return [side for side in sides if side > 0 and side != 3]

    async def wait(self):
        def inner(x):
            if x:
                return 1
            return 2
        while True:
            try:
                return inner(self)
            except ValueError:
                pass
'''


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(sys, "path", list(sys.path))
    return load_tools(["code_metrics"], [TOOLS])


@pytest.fixture
def measure(registry: Registry, tmp_path: Path) -> Callable[[str], Any]:
    async def measure(path: str) -> Any:
        surroundings = ToolContext(tmp_path, tmp_path, "run", "n1", 1, 1, "run/n1/1", lambda _: None)
        return await registry.get("code_metrics").call({"path": path}, surroundings)

    return measure


async def test_it_counts_what_a_file_holds(measure: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    assert await measure("a.py") == {
        "path": "a.py",
        "lines": 22,
        "functions": 3,
        "classes": 1,
        "imports": 3,
        "todos": 1,
        "longest": 10,
        "longest_function": "wait",
        "complexity": 4,
        "worst_function": "size",
    }


async def test_an_empty_file_has_nothing(measure: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    found = await measure("a.py")
    assert (found["lines"], found["functions"], found["longest_function"], found["complexity"]) == (0, 0, "", 0)


@pytest.mark.parametrize("source", [b"def (:", b"x = '\xff'", b"\0", b"(" * 5000])
async def test_what_is_no_python_is_reported_in_one_line(
    measure: Callable[[str], Any], tmp_path: Path, source: bytes
) -> None:
    (tmp_path / "a.py").write_bytes(source)
    with pytest.raises(ToolError, match=r"^'a\.py' is no Python that this version reads"):
        await measure("a.py")


async def test_it_reads_nothing_outside_the_documents(measure: Callable[[str], Any]) -> None:
    with pytest.raises(ToolError, match="leads out of the folder"):
        await measure("../a.py")
