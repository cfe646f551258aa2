"""The modules of a script: Python imports them from its text, as it imports files."""

import ast
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any, Final

from sennit.activities.programs.cpython.names import FILE, MODULE
from sennit.workflows.plan.programs.files import ScriptFile

Define = Callable[[ast.Module, dict[str, Any]], None]
"""Gives a module what it names and does not define: words, errors that it catches, and tools."""
_OWN: Final = {MODULE}
"""The names of the modules of this process that are of its script."""


def is_own(module: object) -> bool:
    """Whether a module of that name is the program, or one of its modules."""
    return isinstance(module, str) and module in _OWN


def whole_name(thing: Any) -> str:
    """Return the name of a class or a function of the script as people know it:
    `helpers.look`, or `main`.
    """
    name = str(thing.__name__)
    if thing.__module__ == MODULE or not is_own(thing.__module__):
        return name
    return f"{thing.__module__}.{name}"


class ScriptModules:
    """Finds and runs the modules of one script. A line of a module has the number that it
    has in the whole script.
    """

    def __init__(self, files: Sequence[ScriptFile], define: Define) -> None:
        self._define = define
        self._files = {file.module: file for file in files}
        for file in files:
            # A folder without `__init__.py` is an empty package.
            package = file.module.rpartition(".")[0]
            while package and package not in self._files:
                path = f"{package.replace('.', '/')}/__init__.py"
                self._files[package] = ScriptFile(path, file.before, "")
                package = package.rpartition(".")[0]
        _OWN.update(self._files)

    def begin(self) -> None:
        """Have `import` find them from now on."""
        sys.meta_path.insert(0, self)

    def has(self, name: str) -> bool:
        return name in self._files

    def run_all(self) -> None:
        """Import each module that is not imported yet."""
        for name in self._files:
            importlib.import_module(name)

    # What Python asks of a finder and of a loader.

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how a module is loaded, None if the script has none of that name."""
        del path, target
        file = self._files.get(name)
        if file is None:
            return None
        spec = ModuleSpec(name, self, origin=file.path, is_package=file.is_package)  # type: ignore[arg-type]
        # Errors of imports name the file.
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Have Python make the module."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the text of a module. Raises what it raises, and SyntaxError."""
        run_file(self._files[module.__name__], module.__dict__, self._define)


def run_file(file: ScriptFile, names: dict[str, Any], define: Define) -> ast.Module:
    """Run the text of a file in a namespace; return its tree."""
    tree = ast.parse("\n" * file.before + file.text, FILE)
    define(tree, names)
    code = compile(tree, FILE, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102 - the script, in its own process
    return tree
