"""Programs of several files: what becomes of their names and lines, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from sennit.folders import ScriptFolders
from sennit.testing import run
from sennit.workflows.plan.bundles.bundle import BadBundle, Bundle, bundled
from sennit.workflows.plan.bundles.text_edits import lines_of, modules_first
from sennit.workflows.plan.programs.source import modules_in, place_in
from sennit.workflows.plan.programs.syntax import problems_in

MAIN = "async def main():\n    return 1\n"
HELPERS = '''\
"""Helpers."""
import json
import datetime as dt
from dataclasses import dataclass
from datetime import date
from enum import Enum

LIMIT = 3


class Kind(Enum):
    BIG = "big"


@dataclass
class Fact:
    text: str
    kind: "Kind | None" = None
    size: int = LIMIT


class NotFound(ValueError):
    pass


def clean(text: str) -> str:
    return text.strip().lower()


def shown(fact: Fact) -> str:
    fact_clean = [clean(clean) for clean in (fact.text,)][0] if False else clean(fact.text)
    return f"{fact_clean!r:>8} {json.dumps({'size': fact.size})} {clean(fact.text)}"


async def look(name: str, *, clean: bool = True) -> dict:
    hits = await search(query=name.upper() if clean else name)
    if not hits:
        raise NotFound(f"no {name}, {LIMIT}")
    return {"name": name, "hits": hits}


async def main(x: int = 2):
    return [x, str(dt.timedelta(seconds=x)), date(2020, 1, x).isoformat()]


if __name__ == "__main__":
    main()
'''

HAS_TYPES = """
from helpers import Fact, Kind as K


async def main():
    fact = await llm("x", schema=Fact)
    return [fact.text, fact.kind == K.BIG]
"""
CATCHES = """
from helpers import look, NotFound as Gone


async def main():
    try:
        await look("nothing")
    except Gone as error:
        return str(error)
"""


class Given:
    """Files by their names."""

    def __init__(self, **texts: str) -> None:
        self._texts = texts

    def find(self, name: str) -> tuple[str, str] | None:
        return (f"own/{name}.py", self._texts[name]) if name in self._texts else None

    def names(self) -> list[str]:
        return list(self._texts)

    def is_folder(self, name: str) -> bool:
        return name == "pack"


def played(script: str, **modules: str) -> Any:
    def search(query: str) -> list[str]:
        return [] if query == "NOTHING" else [query]

    bundle = bundled(script, Given(prog=script, **modules), "own/prog.py")
    assert not problems_in(bundle.script, {"search": {"name": "search"}})
    return run(bundle.script, {"search": search, "llm": lambda *_, schema=None: {"text": "T", "kind": "big"}})


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import helpers\nasync def main():\n    return helpers.clean(' A ')", "a"),
        ("import helpers as h\nasync def main():\n    clean = 1\n    return [h.clean(' A '), clean]", ["a", 1]),
        ("from helpers import clean\nasync def main():\n    return clean(' A ')", "a"),
        ("from helpers import (\n  clean as c,\n  LIMIT,\n)\nX = LIMIT * 2\nasync def main():\n    return [c('A'), X]",
         ["a", 6]),
        ("async def main():\n    from helpers import clean\n    return f'{clean(chr(65))} {1:>2}'", "a  1"),
        ("import datetime as d, helpers\nasync def main():\n  return [d.date(1, 1, 2).day, *await helpers.main()]",
         [2, 2, "0:00:02", "2020-01-02"]),
        ("import helpers\nasync def main():\n    return helpers.shown(helpers.Fact(' A '))",
         "     'a' {\"size\": 3} a"),
        (HAS_TYPES,
         ["T", True]),
        ("from helpers import Fact\nasync def main():\n    return (await llm('x', schema='Fact'))['text']", "T"),
        ("import helpers\nasync def main():\n    return await parallel([task(helpers.look, name=n) for n in 'ab'])",
         [{"name": "a", "hits": ["A"]}, {"name": "b", "hits": ["B"]}]),
        (CATCHES, "no nothing, 3"),
        ("async def main():\n    return await run_program('helpers', x=5)", [5, "0:00:05", "2020-01-05"]),
        ("async def main(x: int = 2):\n    return [x, *(await run_program('prog', x=x - 1) if x else [])]", [2, 1, 0]),
        ("import other\nasync def main():\n    return [other.twice(' A '), other.LIMIT]", ["aa", 3]),
    ],
)  # fmt: skip
def test_names_of_modules_are_those_of_python(script: str, expected: Any) -> None:
    other = "import helpers\nfrom helpers import LIMIT\ndef twice(x):\n    return helpers.clean(x) * 2\n"
    assert played(script, helpers=HELPERS, other=other) == expected


def test_a_bundle_is_the_program_and_its_modules_with_the_lines_they_have() -> None:
    script = "import b\n\nasync def main():\n    return b.f()\n"
    bundle = bundled(script, Given(a="X = 1\n", b="import a\n\n\ndef f():\n    return a.X"))
    expected = """\
pass  # import b

async def main():
    return b__f()
# ==== a.py ====
a__X = 1
# ==== b.py ====
pass  # import a


def b__f():
    return a__X
"""
    assert bundle == Bundle(expected, {"a": "own/a.py", "b": "own/b.py"})
    assert modules_in(expected) == ((5, "a"), (7, "b"))
    assert [place_in(expected, line) for line in (4, 6, 12)] == [4, "a.py:1", "b.py:5"]
    first = modules_first(expected, expected)
    numbers = dict(zip(first.splitlines(), lines_of(first)[1:], strict=False))
    assert [numbers[line] for line in ("a__X = 1", "    return a__X", "    return b__f()")] == [6, 12, 4]
    assert bundled(expected, Given()).script == expected


def test_a_script_that_uses_no_file_stays_as_it_is() -> None:
    for script in (MAIN, "def (", "import json\n" + MAIN, "import numpy\n" + MAIN):
        assert bundled(script, Given(helpers=HELPERS)) == Bundle(script)


@pytest.mark.parametrize(
    ("script", "modules", "problems"),
    [
        ("import helprs\n", {}, [("", 1, "there is no module `helprs`; did you mean `helpers`?")]),
        ("import pack\nimport pack.dates\n", {},
         [("", 1, "`pack` is a folder"), ("", 2, "`pack.dates` is in a package")]),
        ("from . import helpers\nfrom helpers import *\n", {},
         [("", 1, "write `import helpers`"), ("", 2, "name what you import")]),
        ("import a\n", {"a": "import b", "b": "import a"},
         [("own/b.py", 1, "files import each other in a circle: a.py > b.py > a.py")]),
        ("import a\n", {"a": "\nimport prog", "prog": ""},
         [("own/a.py", 2, "files import each other in a circle: prog.py > a.py > prog.py")]),
        ("import helpers\nprint(helpers)\nhelpers.LIMIT = 4\nhelpers.lok()\n", {},
         [("", 2, "the module `helpers` is no value"), ("", 3, "what helpers.py defines never changes"),
          ("", 4, "helpers.py has no `lok`; did you mean `look`?")]),
        ("import json\n", {"json": ""}, [("", 1, "json.py has the name of a module of Python")]),
        ("from a import first\n", {"a": "def first(): pass"}, [("", 1, "a.py gives something the name of a word")]),
        ("import a\n", {"a": "x = (\n"}, [("own/a.py", 1, "this is not Python")]),
        ("import helpers\nhelpers__x = 1\n", {}, [("", 2, "names that begin with `helpers__` are those")]),
        ("import a\nX = a.loads('1')\n", {"a": "from json import loads"},
         [("", 2, "a.py only imports `loads`: import it here")]),
        ("x = run_program('helprs')\n", {}, [("", 1, "there is no program `helprs`; did you mean `helpers`?")]),
        ("x = run_program(name)\n", {}, [("", 1, "name the program as a text")]),
        ("x = run_program('a')\n", {"a": "X = 1"}, [("", 1, "a.py has no `async def main(...)`, so it is no program")]),
        ("import a\n", {"a": f"X = '{'x' * (1 << 20)}'"}, [("own/a.py", 1, "the script is too large")]),
        ("import a, b\n", dict.fromkeys("ab", f"X = '{'x' * 600000}'"),
         [("", 1, "with its 2 modules the script has more than 1 MiB")]),
    ],
)  # fmt: skip
def test_what_cannot_be_put_together_is_named(
    script: str, modules: dict[str, str], problems: list[tuple[str, int, str]]
) -> None:
    with pytest.raises(BadBundle) as bad:
        bundled(script + MAIN, Given(helpers=HELPERS, **modules), "own/prog.py")
    assert [each[:2] for each in bad.value.problems] == [each[:2] for each in problems]
    assert all(found[2].startswith(each[2]) for found, each in zip(bad.value.problems, problems, strict=True))


def test_a_problem_of_a_module_has_its_place_there() -> None:
    module = "async def look(name):\n    search(query=name)\n    return await search(q=1)\n"
    script = bundled("import a\nasync def main():\n    return await a.look(nam=1)\n", Given(a=module)).script
    tools: dict[str, Any] = {"search": {"schema": {"properties": {"query": {}}, "additionalProperties": False}}}
    assert [str(each) for each in problems_in(script, tools)] == [
        "line 3: `a.look` has no argument `nam`; did you mean `name`?",
        "line 3: `a.look` needs the argument `name`",
        "a.py:2: the call of `search` is never awaited: write `await search(...)`",
        "a.py:3: `search` has no argument `q`; known: query",
    ]


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("def f():\n    return 1 / 0\n", 'File "a.py", line 2, in a__f'),
        ("class Odd(ValueError):\n    pass\n\n\ndef f():\n    raise Odd('x')\n", 'File "a.py", line 6, in a__f'),
    ],
)
def test_an_error_in_a_module_has_its_place_there(module: str, told: str) -> None:
    script = bundled("import a\nasync def main():\n    return a.f()\n", Given(a=module)).script
    with pytest.raises(Exception) as failed:  # noqa: PT011  its type differs
        run(script, {})
    assert told in failed.value.__notes__[0]


def test_files_are_found_beside_the_script_then_in_the_teams_folders_then_in_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, team = tmp_path / "own", tmp_path / "team"
    for folder, names in ((own, ("a",)), (team, ("a", "b", "debate"))):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.py").write_text(f"X = {folder.name!r}\n")
    monkeypatch.setenv("SENNIT_PROGRAMS", str(team))
    folders = ScriptFolders(own)
    found = {name: str((folders.find(name) or ("", ""))[0]) for name in ("a", "b", "debate", "topic", "none")}
    assert found["a"] == str(own / "a.py")
    assert (found["b"], found["debate"]) == (str(team / "b.py"), str(team / "debate.py"))
    assert found["topic"].endswith("examples/programs/topic.py")
    assert found["none"] == ""
    assert {"a", "b", "topic"} <= set(folders.names())
