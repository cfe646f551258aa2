"""Programs of several files: what becomes of their names and lines, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.programs.classes import classes_of
from sennit.activities.programs.interpreter import Interpreter
from sennit.folders import ScriptFolders
from sennit.testing import run
from sennit.workflows.plan.bundles.bundle import BadBundle, Bundle, bundled
from sennit.workflows.plan.programs.files import file_of, files_in, modules_in, place_in
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
    """Files by their modules: `a` is a.py, `pack.__init__` is pack/__init__.py."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = {f"{module.replace('.', '/')}.py": text for module, text in texts.items()}

    def find(self, path: str) -> tuple[str, str] | None:
        return (f"own/{path}", self._texts[path]) if path in self._texts else None

    def names(self) -> list[str]:
        return list(dict.fromkeys(path.partition("/")[0].removesuffix(".py") for path in self._texts))

    def is_of_python(self, name: str) -> bool:
        return ScriptFolders().is_of_python(name)

    def is_folder(self, name: str) -> bool:
        return any(path.startswith(f"{name}/") for path in self._texts)


def joined(script: str, **modules: str) -> str:
    """The script with its modules, which has no problems."""
    bundle = bundled(script, Given({"prog": script, **modules}), "own/prog.py")
    assert problems_in(bundle.script, {"search": {"name": "search"}}) == []
    return bundle.script


def played(script: str, **modules: str) -> Any:
    def search(query: str) -> list[str]:
        return [] if query == "NOTHING" else [query]

    bundle = Bundle(joined(script, **modules))
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
    bundle = bundled(script, Given({"a": "X = 1\n", "b": "import a\n\n\ndef f():\n    return a.X"}))
    expected = """\
import b

async def main():
    return b.f()
# ==== file: b.py ====
import a


def f():
    return a.X
# ==== file: a.py ====
X = 1
"""
    assert bundle == Bundle(expected, {"b.py": "own/b.py", "a.py": "own/a.py"})
    assert modules_in(expected) == ((5, "b.py"), (11, "a.py"))
    assert [place_in(expected, line) for line in (4, 10, 12)] == [4, "b.py:5", "a.py:1"]
    assert [file[:2] for file in files_in(expected)] == [("", 0), ("b.py", 5), ("a.py", 11)]
    assert bundled(expected, Given({})).script == expected
    other = Given({"a": "X = 2\n"})
    assert bundled(expected, other).script == expected, "what a script has already comes first"


def test_a_script_that_uses_no_file_stays_as_it_is() -> None:
    for script in (MAIN, "def (", "import json\n" + MAIN, "import numpy\n" + MAIN):
        assert bundled(script, Given({"helpers": HELPERS})) == Bundle(script)


@pytest.mark.parametrize(
    ("script", "modules", "problems"),
    [
        ("import helprs\n", {}, [("", 1, "there is no module `helprs`; did you mean `helpers`?")]),
        ("from . import helpers\n", {}, [("", 1, "this file is in no package: write `import helpers`")]),
        ("import a\n", {"a": "from ..b import c"}, [("own/a.py", 1, "this file is in no package: write `import b`")]),
        ("import pack.dates\nfrom pack.day import x\n", {"pack.__init__": "", "pack.days": ""},
         [("", 1, "there is no module `pack.dates`"), ("", 2, "there is no module `pack.day`")]),
        ("import json\n", {"json": ""}, [("", 1, "json.py has the name of a module of Python")]),
        ("import queue\nX = queue.Queue()\n", {"queue": ""}, [("", 1, "queue.py has the name of a module of Python")]),
        ("from a import first\n", {"a": "def first(): pass"}, [("", 1, "a.py gives something the name of a word")]),
        ("import a\n", {"a": "x = (\n"}, [("own/a.py", 1, "this is not Python")]),
        ("import a\n", {"a": "\n# ==== file: b.py ====\n"}, [("", 1, "own/a.py has a line like")]),
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
        bundled(script + MAIN, Given({"helpers": HELPERS, **modules}), "own/prog.py")
    assert [each[:2] for each in bad.value.problems] == [each[:2] for each in problems]
    assert all(found[2].startswith(each[2]) for found, each in zip(bad.value.problems, problems, strict=True))


def test_a_text_of_a_program_may_not_look_like_the_beginning_of_a_module(tmp_path: Path) -> None:
    """Cut there, the program would have a text without an end, of which its author knows nothing."""
    script = 'async def main():\n    return """\n# ==== file: b.py ====\n"""\n'
    with pytest.raises(BadBundle, match=r"line 3: this is a line like .* where a module begins"):
        bundled(script, ScriptFolders(tmp_path), "main.py")


def test_a_text_of_a_program_that_looks_like_its_name_stays_as_it_is(tmp_path: Path) -> None:
    script = 'async def main():\n    return """\n# ==== main: b.py ====\n"""\n'
    named = bundled(script, ScriptFolders(tmp_path), "main.py").script
    assert run(named, {}) == "\n# ==== main: b.py ====\n"
    assert bundled(named, ScriptFolders(tmp_path), "main.py").script == named
    assert file_of(named) == "main.py"


def test_a_problem_of_a_module_has_its_place_there() -> None:
    module = "async def look(name):\n    search(query=name)\n    return await search(q=1)\n"
    script = bundled("import a\nasync def main():\n    return await a.look(nam=1)\n", Given({"a": module})).script
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
        ("def f():\n    return 1 / 0\n", 'File "a.py", line 2, in f'),
        ("class Odd(ValueError):\n    pass\n\n\ndef f():\n    raise Odd('x')\n", 'File "a.py", line 6, in f'),
    ],
)
def test_an_error_in_a_module_has_its_place_there(module: str, told: str) -> None:
    script = bundled("import a\nasync def main():\n    return a.f()\n", Given({"a": module})).script
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
        (folder / "pack").mkdir()
        (folder / "pack" / f"{folder.name}.py").write_text("")
    (team / "pack" / "__init__.py").write_text("")
    monkeypatch.setenv("SENNIT_PROGRAMS", str(team))
    folders = ScriptFolders(own)
    found = {name: str((folders.find(f"{name}.py") or ("", ""))[0]) for name in ("a", "b", "debate", "topic", "none")}
    assert found["a"] == str(own / "a.py")
    assert (found["b"], found["debate"]) == (str(team / "b.py"), str(team / "debate.py"))
    assert found["topic"].endswith("examples/programs/topic.py")
    assert found["none"] == ""
    assert {"a", "b", "topic"} <= set(folders.names())
    assert folders.find("pack/own.py") is None, "all of a package comes from one folder"
    assert folders.find("pack/team.py") == (str(team / "pack" / "team.py"), "")
    assert (folders.is_folder("pack"), folders.is_folder("none")) == (True, False)


PACKAGE = {
    "pack.__init__": "from .dates import day\nfrom . import names\n__all__ = ['day', 'names']\n",
    "pack.dates": "from .names import LONG\n\n\ndef day(n: int) -> str:\n    return LONG[n]\n",
    "pack.names": "LONG = ['Monday', 'Tuesday']\n_HIDDEN = 1\n",
    "pack.deep.more": (
        "from ..names import LONG as L\nfrom .. import dates\n\n\ndef both():\n    return [L[0], dates.day(1)]\n"
    ),
}
CYCLE = {
    "a": "import b\n\n\ndef even(n):\n    return n == 0 or b.odd(n - 1)\n",
    "b": "import a\n\n\ndef odd(n):\n    return n != 0 and a.even(n - 1)\n",
}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import pack\nasync def main():\n    return [pack.day(1), pack.names.LONG[0]]", ["Tuesday", "Monday"]),
        ("import pack.dates as d\nasync def main():\n    return d.day(0)", "Monday"),
        ("import pack.dates, pack.names\nasync def main():\n    return [pack.dates.day(0), pack.names.LONG[1]]",
         ["Monday", "Tuesday"]),
        ("from pack import dates, names as n\nasync def main():\n    return dates.day(0) + n.LONG[1]", "MondayTuesday"),
        ("from pack import *\nasync def main():\n    return [day(0), names.LONG[1]]", ["Monday", "Tuesday"]),
        ("from pack.names import *\nasync def main():\n    return [LONG[0], '_HIDDEN' in globals()]",
         ["Monday", False]),
        ("from pack.deep.more import both\nasync def main():\n    return both()", ["Monday", "Tuesday"]),
        ("import pack.deep.more\nasync def main():\n    return pack.deep.more.both()", ["Monday", "Tuesday"]),
        ("import a\nasync def main():\n    return [a.even(4), a.b.odd(4)]", [True, False]),
        ("import counter\nasync def main():\n    counter.N += 1\n    counter.add()\n    return counter.N", 2),
        ("import counter\nasync def main():\n    return getattr(counter, 'N'), vars(counter)['N'], counter.__name__",
         [0, 0, "counter"]),
        ("from counter import missing_one\nasync def main():\n    return missing_one", None),
    ],
)  # fmt: skip
def test_modules_and_packages_are_imported_as_in_python(script: str, expected: Any) -> None:
    counter = "N = 0\n\n\ndef add():\n    global N\n    N += 1\n"
    modules = {**PACKAGE, **CYCLE, "counter": counter}
    if expected is None:
        whole = bundled(script, Given(modules)).script
        assert [each.message for each in problems_in(whole, {})] == [
            "the module `counter` has no `missing_one`; known: N, add"
        ]
        return
    assert played(script, **modules) == expected


def test_a_module_may_have_names_of_its_own_for_words_and_tools_and_fields() -> None:
    parts = """\
async def first(xs):
    return xs[0]


def title(text):
    return text.title()


async def make(text):
    schema = {"title": "str", "size": "int"}
    page = await llm("x", schema=schema)
    return [title(page["title"]), list(schema), await first([3])]
"""
    script = joined("import parts\nasync def main():\n    return await parts.make('a')", parts=parts)
    assert run(script, {"llm": lambda *_, schema: {"title": "t", "size": 1}}) == ["T", ["title", "size"], 3]


def test_the_types_of_a_module_are_known_where_it_names_them() -> None:
    kinds = """\
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Optional


class Kind(Enum):
    BIG = "big"


@dataclass
class Fact:
    text: str
    kind: "Optional[Kind]" = None
    word: Literal["Kind", "b"] = "b"


async def ask_for():
    fact = await llm("x", schema="Fact")
    return [fact.kind is Kind.BIG, type(fact).__name__]
"""
    script = "import kinds\nfrom kinds import Fact as F, ask_for\n\n\n"
    script += "class Kind:\n    x: int\n\n\nclass Fact:\n    y: int\n\n\n"
    script += "async def main():\n    one = await llm('x', schema=list[F])\n    two = await llm('x', schema='F')\n"
    script += "    return [one, two.kind.value, *await ask_for()]\n"
    seen = []

    def llm(prompt: str, *, schema: Any) -> Any:
        seen.append(schema)
        fact = {"text": "T", "kind": "big"}
        return [fact] if "list" in str(schema) else fact

    fact = {"text": "T", "kind": "big", "word": "b"}
    found = run(bundled(script, Given({"kinds": kinds})).script, {"llm": llm})
    assert found == [[fact], "big", True, "Fact"]
    assert seen == ["list[kinds.Fact]", "kinds.Fact", "kinds.Fact"]
    assert classes_of(bundled(script, Given({"kinds": kinds})).script) == {
        "Kind": [("x", "int", False)],
        "Fact": [("y", "int", False)],
        "kinds.Kind": [("", "Literal['big']", False)],
        "kinds.Fact": [
            ("text", "str", False),
            ("kind", "'Optional[kinds.Kind]'", True),
            ("word", "Literal['Kind', 'b']", True),
        ],
    }


def test_an_error_of_a_module_has_its_name_and_a_task_that_of_its_function() -> None:
    parts = "class Odd(ValueError):\n    pass\n\n\nasync def look(n):\n    print('in')\n    raise Odd(n)\n"
    script = joined("import parts\nasync def main():\n    await task(parts.look, n=1)\n", parts=parts)
    with pytest.raises(RuntimeError, match=r"^parts.Odd: 1\n") as failed:
        run(script, {})
    assert 'File "parts.py", line 7, in look' in failed.value.__notes__[0]


def test_a_module_that_calls_a_tool_when_it_is_imported_is_refused() -> None:
    script = bundled("import a\n" + MAIN, Given({"a": "X = 1\nsearch(query='x')\n"})).script
    assert [str(each) for each in problems_in(script, {"search": {"name": "search"}})] == [
        "a.py:2: the top of a script only defines things: call `search` in a function"
    ]


def test_the_top_of_each_module_is_tried_before_a_run() -> None:
    script = bundled("async def main():\n    import a\n", Given({"a": "X = 1\nY = 1 / 0\n"})).script
    problems = asyncio.run(Interpreter(trusts_scripts=True).type_problems(script, ""))
    assert [str(each) for each in problems] == ["a.py:2: ZeroDivisionError: division by zero"]


def test_a_comment_with_the_name_of_a_file_is_a_comment() -> None:
    script = "async def main():\n    return f()\n# ==== a.py ====\ndef f():\n    return 1\n"
    assert problems_in(script, {}) == []


def test_imports_that_only_name_each_other_are_followed_to_no_end() -> None:
    modules = {"a": "from b import x\nfrom c import *\n", "b": "from a import x\n", "c": "from a import *\n"}
    script = bundled("import a\nasync def main():\n    return [a.x, a.x.y, a.z]\n", Given(modules)).script
    problems_in(script, {})
    problems = asyncio.run(Interpreter(trusts_scripts=True).type_problems(script, ""))
    assert "cannot import name 'x' from partially initialized module" in problems[0].message
    assert problems[0].where == ("line", "b.py:1")
