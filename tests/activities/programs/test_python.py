"""The page on Python in programs says what is so: each line of its tables is tried."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sennit.testing import run
from sennit.workflows.plan.programs.lacks import names_of
from sennit.workflows.plan.programs.syntax import problems_in

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
RUNS, MODULES, LACKS = (re.findall(r"^\| (.+) \| (.*) \|$", part, re.MULTILINE) for part in PAGE.split("\n## ")[1:])
HEAD = PAGE.split("```python\n")[1].split("```")[0]
METHOD = "class A:\n    def size(self): return 1\n"
WRITTEN = {
    "`@property` on a method": "class A:\n    @property\n    def size(self): return 1\n",
    "`def __lt__(self, other): ...`": f"{METHOD}    def __lt__(self, other): return True\n",
    "`def __len__(self): ...`": f"{METHOD}    def __len__(self): return 1\n",
    "`def __bool__(self): ...`": f"{METHOD}    def __bool__(self): return True\n",
    "a method of an enum": "from enum import Enum\nclass Kind(Enum):\n    BUG = 1\n    def size(self): return 1\n",
}


def cases() -> dict[str, str]:
    """Scripts by their names. What stands behind `##` is an expression a line, of which each is shown or fails."""
    found = {}
    for part in (Path(__file__).parent / "corpora" / "cpython.txt").read_text().split("#### ")[1:]:
        name, script = part.split("\n", 1)
        head, _, expressions = script.partition("##\n")
        if expressions:
            tried = (
                f"    try:\n        out.append(repr(({each})))\n"
                "    except Exception as error:\n        out.append(f'{type(error).__name__}: {error}')\n"
                for each in expressions.strip().split("\n")
            )
            script = f"{head}\n\nasync def main():\n    out = []\n{''.join(tried)}    return out\n"
        found[name] = script
    return found


CASES = cases()


def test_the_page_has_its_tables() -> None:
    assert (len(RUNS), len(MODULES), len(LACKS)) == (13, 25, 20)


@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_what_it_gives_in_cpython(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(CASES[name], scope)
    assert run(CASES[name], {}) == json.loads(json.dumps(asyncio.run(scope["main"]())))


@pytest.mark.parametrize("example", [code.strip("`") for _, code in RUNS[1:]])
def test_what_runs_gives_what_it_gives_in_cpython(example: str) -> None:
    script = f"{HEAD}\n\nasync def main():\n    return repr(({example}))\n"
    scope: dict[str, Any] = {}
    exec(script, scope)
    assert run(script, {}) == asyncio.run(scope["main"]())


@pytest.mark.parametrize(("module", "names"), [(module.strip("`"), names) for module, names in MODULES[1:]])
def test_a_module_has_the_names_that_are_listed(module: str, names: str) -> None:
    assert names_of(module) == re.findall("`(.+?)`", names)


@pytest.mark.parametrize(("written", "way_out"), LACKS[1:])
def test_what_there_is_not_is_refused_with_the_way_out(written: str, way_out: str) -> None:
    code = WRITTEN.get(written) or "async def f(found, fact, text, value):\n    {}\n".format(
        written.strip("`").replace("...", "pass")
    )
    code = code.replace("async def", "def") if "yield" in code else code
    problems = problems_in(f"import re, json\n{code}\n\nasync def main():\n    return 1\n", {})
    assert any(way_out in problem.message.replace("`", "") for problem in problems), problems
