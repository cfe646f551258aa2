"""One script of several files: a program, and behind it each module that it imports or runs.

Each line keeps its text and its number in its file. The names at the top of a module are qualified, so that files do
not take names from each other: `look` of helpers.py is `helpers__look`, and people read `helpers.look`.
"""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sennit.workflows.plan.bundles.renaming import Renaming
from sennit.workflows.plan.language.text import did_you_mean, format_name, nearest_or_known, text_bytes
from sennit.workflows.plan.limits import MAX_SCRIPT_BYTES, MAX_SCRIPT_FILES
from sennit.workflows.plan.programs.source import (
    FILE_MARK,
    QUALIFIED,
    Source,
    TooLarge,
    done_by_the_run,
    modules_in,
    parsed,
    with_name,
)
from sennit.workflows.plan.programs.vocabulary import INSTEAD, MODULES, RUN_PROGRAM

_OURS = ("sennit", "tools")


class Files(Protocol):
    """Where a program's modules are. Each may raise OSError, and UnicodeError."""

    def find(self, name: str, /) -> tuple[str, str] | None:
        """Return the path and the text of a module, None if there is none of that name."""

    def names(self) -> Collection[str]:
        """Return the names of all."""

    def is_folder(self, name: str, /) -> bool:
        """Whether a folder has that name."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A script, and the paths of the modules in it."""

    script: str
    paths: dict[str, str] = field(default_factory=dict)


class BadBundle(Exception):
    """A script cannot be put together. Each problem has the path of its file, "" for the program's, a line and a
    sentence.
    """

    def __init__(self, problems: Collection[tuple[str, int, str]]) -> None:
        super().__init__(
            "\n".join(f"{path or 'line '}{':' * bool(path)}{line}: {text}" for path, line, text in problems)
        )
        self.problems = tuple(problems)


@dataclass(slots=True)
class _File:
    """A file of a bundle. `name` is "" for the program."""

    name: str
    path: str
    text: str
    source: Source
    uses: list[str] = field(default_factory=list)


def bundled(script: str, files: Files, path: str = "") -> Bundle:
    """Return a script with the modules that it imports and the programs that it runs. A script that does not parse, or
    that uses no other file, stays as it is, but for the name of its file at its end. Raises BadBundle.
    """
    try:
        program = _File("", path, script, Source(parsed(script)))
    except SyntaxError:
        return Bundle(script)
    found = _Bundler(files, program)
    found.collect()
    if not found.problems and not any(file.uses for file in found.files.values()):
        return Bundle(with_name(script, path))
    return found.bundle()


class _Bundler:
    """Finds the files of one bundle, each once."""

    def __init__(self, files: Files, program: _File) -> None:
        self.files = {"": program}
        self.problems: list[tuple[str, int, str]] = []
        self._folder = files
        self._done: list[_File] = []
        """Modules in the order in which their top levels are to run."""
        self._left: list[tuple[_File, ast.Call]] = []
        """Calls of `run_program` that are to be read."""

    def collect(self) -> None:
        self._read(self.files[""], ("",))
        while self._left:
            file, call = self._left.pop(0)
            if problem := self._run(file, call):
                self._problem(file, call, problem)
        for file in self.files.values():
            bound = {name for names in file.source.bound.values() for name in names}
            for module in filter(None, self.files):
                taken = sorted(name for name in bound if name.startswith(QUALIFIED.format(module, "")))
                if taken:
                    text = f"names that begin with `{module}__` are those of {module}.py: give it another"
                    place = next(names[taken[0]] for names in file.source.bound.values() if taken[0] in names)
                    self._problem(file, place, text)

    def bundle(self) -> Bundle:
        """Return the script. Raises BadBundle."""
        program = self.files[""]
        parts = [with_name(self._rewritten(program), program.path).rstrip("\n")]
        for file in self._done:
            parts += [FILE_MARK.format(file.name), self._rewritten(file).rstrip("\n")]
        if self.problems:
            raise BadBundle(sorted(dict.fromkeys(self.problems)))
        script = "\n".join(parts) + "\n"
        if text_bytes(script) > MAX_SCRIPT_BYTES:
            text = f"with its {len(self._done)} modules the script has more than {MAX_SCRIPT_BYTES >> 20} MiB"
            raise BadBundle([("", 1, f"{text}: read data with tools")])
        return Bundle(script, {file.name: file.path for file in self._done})

    def _rewritten(self, file: _File) -> str:
        sources = {name: each.source for name, each in self.files.items()}
        renaming = Renaming(file.name, file.text, sources, self._program_of)
        text = renaming.text()
        self.problems += [(file.path if file.name else "", line, problem) for line, problem in renaming.problems]
        return text

    def _program_of(self, name: str) -> str | None:
        """Return the name of the module that `run_program` runs, "" for the program itself."""
        if name in self.files:
            return name
        found = self._folder.find(name)
        return "" if found is not None and found[0] == self.files[""].path else None

    def _read(self, file: _File, above: tuple[str, ...]) -> None:
        """Read what a file imports; what it runs comes later, as its top level needs none of it."""
        for node, name in self._imported(file):
            problem = self._import(file, name, above)
            if problem:
                self._problem(file, node, problem)
        self._left += [(file, call) for call in _calls(file.source)]
        if file.name:
            self._done.append(file)

    def _import(self, file: _File, name: str, above: tuple[str, ...]) -> str:
        """Read a module that a file imports, if it was not read; return why that cannot be."""
        path = self._folder.find(name)
        if name in above or (path is not None and path[0] == self.files[""].path):
            program = self.files[""].path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
            names = [each or program for each in above]
            circle = names[names.index(name) :] if name in names else names
            return f"files import each other in a circle: {' > '.join(f'{each}.py' for each in (*circle, name))}"
        file.uses.append(name)
        return self._add(name, above)

    def _run(self, file: _File, call: ast.Call) -> str:
        """Read a program that a file runs, if it was not read; return why that cannot be."""
        name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if not isinstance(name, str):
            return f'name the program as a text, before its arguments: {RUN_PROGRAM}("debate", question=...)'
        file.uses.append(name)
        if self._program_of(name) == "":
            return ""
        problem = self._add(name, (), "program")
        source = self.files[name].source if name in self.files else None
        if source is not None and not isinstance(source.bound.get(source.tree, {}).get("main"), ast.AsyncFunctionDef):
            return f"{name}.py has no `async def main(...)`, so it is no program"
        return problem

    def _add(self, name: str, above: tuple[str, ...], what: str = "module") -> str:
        if name in self.files:
            return ""
        found = self._folder.find(name) if name.isidentifier() else None
        if found is None:
            return f"there is no {what} {format_name(name)}{nearest_or_known(name, sorted(self._folder.names()))}"
        if len(self.files) > MAX_SCRIPT_FILES:
            return f"a script has at most {MAX_SCRIPT_FILES} modules"
        if modules_in(found[1]) or modules_in(self.files[""].text):
            return f"a file with a line like {FILE_MARK.format('name')!r} is put together already"
        try:
            self.files[name] = _File(name, *found, Source(parsed(found[1])))
        except SyntaxError as error:
            what = "the script is too large" if isinstance(error, TooLarge) else "this is not Python"
            text = f"{what}: {error.msg}"
            self.problems.append((found[0], error.lineno or 1, text))
            return ""
        self._read(self.files[name], (*above, name))
        return ""

    def _problem(self, file: _File, node: ast.AST, text: str) -> None:
        self.problems.append((file.path if file.name else "", getattr(node, "lineno", 1), text))

    def _imported(self, file: _File) -> Iterator[tuple[ast.AST, str]]:
        """Yield what a file imports of other files; what is wrong with that is a problem."""
        for statement in done_by_the_run(ast.parse(file.text)):
            module = str(statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
            if module and module not in _OURS and self._folder.find(module) is not None:
                text = f"{module}.py gives something the name of a word of programs: give it another"
                self._problem(file, statement, text)
        for node in file.source.nodes:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            for name in [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]:
                problem = self._refused(node, name)
                if problem:
                    self._problem(file, node, problem)
                elif name not in (*MODULES, *INSTEAD) and self._is_local(name):
                    yield node, name

    def _is_local(self, name: str) -> bool:
        """Whether a module is one of the files, or looks like one whose name is not quite right."""
        return self._folder.find(name) is not None or bool(did_you_mean(name, sorted(self._folder.names())))

    def _refused(self, node: ast.Import | ast.ImportFrom, name: str) -> str:
        """Return why a file cannot be imported like that."""
        if isinstance(node, ast.ImportFrom) and node.level:
            return f"write `import {name or node.names[0].name}`: the files beside a script are no package"
        root = name.partition(".")[0]
        if root in MODULES:
            is_file = name in MODULES and self._folder.find(name) is not None
            return f"{name}.py has the name of a module of Python: give it another" if is_file else ""
        if "." in name and (self._folder.is_folder(root) or self._folder.find(root) is not None):
            way = f"put the file beside the script, and write `import {name.rpartition('.')[2]}`"
            return f"`{name}` is in a package; {way}"
        if self._folder.find(name) is None:
            folder = f"`{name}` is a folder: put its files beside the script, and import them by their names"
            return folder if self._folder.is_folder(name) else ""
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return "name what you import, in the place of `*`"
        return ""


def _calls(source: Source) -> Iterator[ast.Call]:
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Name() as word) if word.id == RUN_PROGRAM and source.meaning(word) is None:
                yield node
