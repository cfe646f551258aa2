"""The files of a script: a program, and behind it each module that it imports,
with its text as it is.

A line with the path of its file stands before each module, so that one text is the whole program:
it is what runs, what a person approves and what the store keeps. Lines are counted over the whole
text; people read them by their files.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.limits import MAX_KEPT_MODULES_BYTES

FILE_MARK = "# ==== file: {} ===="
"""Stands before a module, with its path: `helpers.py`, `pack/__init__.py`."""
NAME_MARK = "# ==== main: {} ===="
"""Stands behind a program that was read from a file, with the name of that."""
_PACKAGE = "__init__.py"
_MARKED = re.compile(r"^# ==== file: ((?:[^\W\d]\w*/)*[^\W\d]\w*\.py) ====$", re.MULTILINE)
_NAMED = re.compile(r"^# ==== main: (\S.{,80}) ====(?:\n|\Z)(?=\Z|# ==== file: )", re.MULTILINE)
"""Nothing but modules stands behind it: a line like it in a text of the program is none."""


class ScriptFile(NamedTuple):
    """A file of a script. The `path` of the program is "". `before` is the number of lines
    of the script before it.
    """

    path: str
    before: int
    text: str

    @property
    def module(self) -> str:
        """The name by which scripts import it, "" for the program."""
        return module_of(self.path)

    @property
    def is_package(self) -> bool:
        return self.path.rpartition("/")[2] == _PACKAGE


def module_of(path: str) -> str:
    """Return the name by which scripts import a file: `pack` of `pack/__init__.py`,
    `pack.dates` of `pack/dates.py`.
    """
    return path.removesuffix(f"/{_PACKAGE}").removesuffix(".py").replace("/", ".")


def paths_of(module: str) -> tuple[str, str]:
    """Return the paths that a module may have: that of a package comes first, as in Python."""
    path = module.replace(".", "/")
    return f"{path}/{_PACKAGE}", f"{path}.py"


def files_in(script: str) -> list[ScriptFile]:
    """Return the files of a script, the program first."""
    marks = list(_MARKED.finditer(script))
    ends = [mark.start() for mark in marks]
    ends.append(len(script))
    files = [ScriptFile("", 0, script[: ends[0]])]

    # The text of a module goes from the line behind its mark to the next mark.
    modules = modules_in(script)
    for mark, end, (before, path) in zip(marks, ends[1:], modules, strict=True):
        start = mark.end() + 1
        files.append(ScriptFile(path, before, script[start:end]))
    return files


def modules_in(script: str) -> tuple[tuple[int, str], ...]:
    """Return the modules of a script: the number of the line before the first one
    of each, and its path.
    """
    return _MODULES.get_or_make(script, lambda: _modules_in(script))  # each call of a program asks


def _modules_in(script: str) -> tuple[tuple[int, str], ...]:
    modules = []
    line = 1
    begin = 0
    for mark in _MARKED.finditer(script):
        line += script.count("\n", begin, mark.start())
        begin = mark.start()
        modules.append((line, mark[1]))
    return tuple(modules)


_MODULES = BoundedCache[str, tuple[tuple[int, str], ...]](MAX_KEPT_MODULES_BYTES)


def with_name(script: str, path: str) -> str:
    """Return a program that says from which file it was read; of "" it says nothing."""
    if not path:
        return script
    name = path.rpartition("/")[2]
    program = without_name(script).rstrip()
    return f"{program}\n{NAME_MARK.format(name[-80:])}\n"


def without_name(script: str) -> str:
    """Return a script without the name of its file."""
    return _NAMED.sub("", script)


def shown_text(script: str) -> str:
    """Return a script as people are shown it: without the name of its file, with
    each line in its place.
    """
    return _NAMED.sub(lambda name: "" if name.end() == len(script) else "\n", script)


def file_of(script: str) -> str:
    """Return the name of the file that a program was read from, "" if it does not say it."""
    named = _NAMED.search(script)
    if named is None:
        return ""
    return named[1]


def own_name(script: str) -> str:
    """Return the name by which `run_program` runs a script itself, "" if it does not say it."""
    return file_of(script).removesuffix(".py")


def place_in(script: str, line: int) -> int | str:
    """Return a line of a script as people know it: `12` of the program,
    `"helpers.py:3"` of a module.
    """
    return place_among(modules_in(script), line)


def place_among(modules: Sequence[tuple[int, str]], line: int) -> int | str:
    """Return a line as people know it in a script that has these modules, as
    `modules_in` gives them.
    """
    number = bisect_left(modules, (line, ""))
    if not number:
        return line
    before, path = modules[number - 1]
    return f"{path}:{line - before}"


def in_call_site(place: str) -> str:
    """Return a place in a module as call sites have it, where `/` stands between
    tasks: `pack.dates.py:3`.
    """
    return place.replace("/", ".")


def line_text(place: int | str) -> str:
    """Return a place in a script as people read it: `line 12`, `helpers.py:3`."""
    if isinstance(place, str):
        return place
    return f"line {place}"


def line_in_file(script: str, line: int) -> str:
    """Return a line of a script as people read it, with its file if that is
    known: `research.py:12`.
    """
    place = place_in(script, line)
    file = file_of(script)
    if file and isinstance(place, int):
        return f"{file}:{place}"
    return line_text(place)
