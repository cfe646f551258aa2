"""The page on Python in programs says what is so: each line of its tables is tried."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sennit.testing import run
from sennit.workflows.plan.programs.syntax import problems_in
from sennit.workflows.plan.programs.vocabulary import MODULES

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
_, MODULES_PART, REFUSED_PART = PAGE.split("\n## ")[1:]
REFUSED = re.findall(r"^\| (.+) \| (.*) \| .* \|$", REFUSED_PART, re.MULTILINE)
WRITTEN = {
    "`time.sleep(1)`": "import time\n    time.sleep(1)",
    "`asyncio.to_thread(print)`": "import asyncio\n    asyncio.to_thread(print)",
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
    assert len(REFUSED) == 14


@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_what_it_gives_in_cpython(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(CASES[name], scope)
    assert run(CASES[name], {}) == json.loads(json.dumps(asyncio.run(scope["main"]())))


def test_the_modules_that_are_listed_can_be_imported_and_no_others() -> None:
    listed = re.findall(r"`([\w.]+)`", MODULES_PART)
    assert sorted(listed) == sorted(set(MODULES) - {"xml", "xml.etree"})
    imports = "".join(f"    import {module}\n" for module in listed)
    assert run(f"async def main():\n{imports}    return 1\n", {}) == 1


@pytest.mark.parametrize(("written", "way_out"), REFUSED[1:])
def test_what_is_refused_is_refused_with_the_way_out(written: str, way_out: str) -> None:
    code = WRITTEN.get(written) or written.strip("`")
    problems = problems_in(f"total = 1\n\nasync def main():\n    {code}\n", {})
    assert any(way_out in problem.message.replace("`", "") for problem in problems), problems
