"""One script of several files: a program, and behind it each module that it imports or runs,
with its text as it is.
"""

import ast
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from sennit.workflows.plan.language.text import (
    did_you_mean,
    format_name,
    nearest_or_known,
    text_bytes,
)
from sennit.workflows.plan.limits import MAX_SCRIPT_BYTES, MAX_SCRIPT_FILES
from sennit.workflows.plan.programs.files import (
    FILE_MARK,
    files_in,
    modules_in,
    own_name,
    paths_of,
    with_name,
)
from sennit.workflows.plan.programs.parsing import TooLarge, done_by_the_run, parsed
from sennit.workflows.plan.programs.source import Source
from sennit.workflows.plan.programs.vocabulary import RUN_PROGRAM

_WORDS_FROM = ("sennit", "tools")
"""From where scripts import words and tools, so that editors know them."""
_OTHERWISE = "that is where a module begins, so write it otherwise"


class Files(Protocol):
    """Where a program's modules are. Each may raise OSError, and UnicodeError."""

    def find(self, path: str, /) -> tuple[str, str] | None:
        """Return where a file is and its text, None if there is none: of
        `helpers.py`, `pack/dates.py`.
        """

    def names(self) -> Collection[str]:
        """Return the names of all modules that are in no package."""

    def is_folder(self, name: str, /) -> bool:
        """Whether a folder has that name, which is a package."""

    def is_of_python(self, name: str, /) -> bool:
        """Whether Python itself has a module of that name."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A script, and where the files of its modules are, by their paths in it."""

    script: str
    paths: dict[str, str] = field(default_factory=dict)


class BadBundle(Exception):
    """A script cannot be put together. Each problem has the path of its file, "" for the program's,
    a line and a sentence.
    """

    def __init__(self, problems: Collection[tuple[str, int, str]]) -> None:
        lines = []
        for path, line, text in problems:
            place = f"line {line}"
            if path:
                place = f"{path}:{line}"
            lines.append(f"{place}: {text}")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)


@dataclass(slots=True)
class _File:
    """A file that is read: its module, "" for the program, and where it is, "" for the program."""

    module: str
    place: str
    text: str
    is_package: bool = False


def bundled(script: str, files: Files, path: str = "") -> Bundle:
    """Return a script with the modules that it imports and the programs that it runs. Modules that
    it has already come before those of the files. A script that does not parse, or that uses no
    other file, stays as it is, but for the name of its file at its end. Raises BadBundle.
    """
    try:
        parsed(script)
    except SyntaxError as error:
        mark = None
        if not isinstance(error, TooLarge):
            mark = _mark_in_a_text(script)
        if mark is not None:
            text = f"this is a line like {FILE_MARK.format('name.py')!r}: {_OTHERWISE}"
            raise BadBundle([("", mark, text)]) from None
        return Bundle(script)
    bundler = _Bundler(script, files, path)
    bundler.read_all()
    return bundler.bundle()


def _mark_in_a_text(script: str) -> int | None:
    """Return the line of what looks like the beginning of a module, and stands in a text of a
    program that is Python as a whole; None if that is not what is wrong.
    """
    modules = modules_in(script)
    if not modules:
        return None
    try:
        ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    line, _ = modules[0]
    return line


class _Bundler:
    """Finds the files of one script, each once."""

    def __init__(self, script: str, files: Files, path: str) -> None:
        program, *modules = files_in(script)
        self.problems: list[tuple[str, int, str]] = []
        self._program = with_name(program.text, path)
        self._path = path
        self._files = files
        self._within = {module.path: module.text for module in modules}
        """The files that the script has already."""
        self._own = own_name(self._program)
        self._modules: dict[str, _File] = {}
        """The modules of the script, by their paths in it."""
        self._waiting = [_File("", "", program.text)]
        """Files whose imports are not read yet."""

    def read_all(self) -> None:
        """Read the program, and each module that it needs."""
        while self._waiting:
            file = self._waiting.pop(0)
            try:
                tree = parsed(file.text)
            except SyntaxError as error:
                kind = (
                    "the script is too large"
                    if isinstance(error, TooLarge)
                    else "this is not Python"
                )
                self.problems.append((file.place, error.lineno or 1, f"{kind}: {error.msg}"))
                continue
            self._read(file, Source({"": tree}))

    def bundle(self) -> Bundle:
        """Return the script. Raises BadBundle."""
        if self.problems:
            raise BadBundle(sorted(dict.fromkeys(self.problems)))
        if not self._modules:
            return Bundle(self._program)
        parts = [self._program]
        paths: dict[str, str] = {}
        for path, file in self._modules.items():
            parts += [FILE_MARK.format(path), file.text]
            paths[path] = file.place
        rows = [part.rstrip("\n") for part in parts]
        script = "\n".join(rows) + "\n"
        if text_bytes(script) > MAX_SCRIPT_BYTES:
            text = (
                f"with its {len(self._modules)} modules the script has more than "
                f"{MAX_SCRIPT_BYTES >> 20} MiB"
            )
            raise BadBundle([("", 1, f"{text}: read data with tools")])
        return Bundle(script, paths)

    def _read(self, file: _File, source: Source) -> None:
        """Add what a file imports and runs."""
        # Imports of words are no imports of files: what a file gives such a
        # name cannot be imported.
        for statement in done_by_the_run(ast.parse(file.text)):
            module = ""
            if isinstance(statement, ast.ImportFrom):
                module = str(statement.module or "")
            if module and module not in _WORDS_FROM and self._find(module) is not None:
                text = (
                    f"{module}.py gives something the name of a word of programs: give it another"
                )
                self._problem(file, statement, text)
        for node in source.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._import(file, node, alias.name)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(file, node)
            elif isinstance(node, ast.Call):
                self._run(file, node, source)

    def _import(self, file: _File, node: ast.AST, module: str) -> bool:
        """Add a module and the packages around it; return whether it is one of the files."""
        root, *_ = names = module.split(".")
        if self._files.is_of_python(root) or root in _WORDS_FROM:
            if self._find(root) is not None:
                self._problem(
                    file,
                    node,
                    f"{root}.py has the name of a module of Python or Sennit: give it another",
                )
            return False
        is_file = self._find(root) is not None or self._find(module) is not None
        if not is_file and not self._is_folder(root):
            hint = did_you_mean(root, sorted(self._files.names()))
            # What is no file of ours is for the check, which knows Python's modules.
            if hint:
                self._problem(file, node, f"there is no module {format_name(root)}{hint}")
            return False
        for count in range(1, len(names) + 1):
            part = ".".join(names[:count])
            is_there = self._add(file, node, part)
            if not is_there and part == module and not self._is_folder(part):
                self._problem(file, node, f"there is no module {format_name(module)}")
        return True

    def _import_from(self, file: _File, node: ast.ImportFrom) -> None:
        """Add a module from which a file imports, and those that it imports from a package."""
        module = node.module or ""
        if node.level:
            package = file.module.split(".")
            if not file.is_package:
                package.pop()
            above = node.level - 1
            if len(package) <= above or not package[0]:
                name = module or node.names[0].name
                self._problem(file, node, f"this file is in no package: write `import {name}`")
                return
            names = package[: len(package) - above]
            if module:
                names.append(module)
            module = ".".join(names)
        if self._import(file, node, module):
            for alias in node.names:
                self._add(file, node, f"{module}.{alias.name}")

    def _run(self, file: _File, call: ast.Call, source: Source) -> None:
        """Add a program that a file runs."""
        word = call.func
        if not isinstance(word, ast.Name) or word.id != RUN_PROGRAM:
            return
        if source.meaning(word) is not None:
            return
        name: object = None
        if call.args and isinstance(call.args[0], ast.Constant):
            name = call.args[0].value
        if not isinstance(name, str):
            text = (
                f'name the program as a text, before its arguments: {RUN_PROGRAM}("debate", '
                "question=...)"
            )
            self._problem(file, call, text)
        elif name == self._own:
            return
        elif not self._add(file, call, name):
            hint = nearest_or_known(name, sorted(self._files.names()))
            self._problem(file, call, f"there is no program {format_name(name)}{hint}")
        elif not self._is_program(name):
            self._problem(
                file, call, f"{name}.py has no `async def main(...)`, so it is no program"
            )

    def _is_program(self, name: str) -> bool:
        found = self._find(name)
        text = ""
        if found is not None:
            _, _, text = found
        try:
            source = Source({"": parsed(text)})
        except SyntaxError:
            return True  # which is a problem already
        return isinstance(source.top.get("main"), ast.AsyncFunctionDef)

    def _add(self, file: _File, node: ast.AST, module: str) -> bool:
        """Add a module, if it was not added; return whether there is one."""
        found = self._find(module)
        if found is None:
            return False
        path, place, text = found
        if path in self._modules:
            return True
        if len(self._modules) >= MAX_SCRIPT_FILES:
            self._problem(file, node, f"a script has at most {MAX_SCRIPT_FILES} modules")
            return True
        if modules_in(text):
            self._problem(
                file, node, f"{place} has a line like {FILE_MARK.format('name.py')!r}: {_OTHERWISE}"
            )
            return True
        added = _File(module, place, text, is_package=path == paths_of(module)[0])
        self._modules[path] = added
        self._waiting.append(added)
        return True

    def _find(self, module: str) -> tuple[str, str, str] | None:
        """Return the path of a module in the script, where it is, and its text;
        None if there is none.
        """
        if not all(name.isidentifier() for name in module.split(".")):
            return None
        for path in paths_of(module):
            if path in self._within:
                return path, path, self._within[path]
        for path in paths_of(module):
            found = self._files.find(path)
            if found is not None:
                return path, *found
        return None

    def _is_folder(self, module: str) -> bool:
        folder = module.replace(".", "/")
        if self._files.is_folder(folder):
            return True
        return any(path.startswith(f"{folder}/") for path in self._within)

    def _problem(self, file: _File, node: ast.AST, text: str) -> None:
        self.problems.append((file.place, getattr(node, "lineno", 1), text))
