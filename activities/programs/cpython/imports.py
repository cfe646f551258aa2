"""What a script may import. All of it is loaded before the process is confined, for it
can open no file then.
"""

import builtins
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

from sennit.activities.programs.cpython.names import FILE
from sennit.activities.programs.cpython.private_interfaces import frame_above
from sennit.workflows.plan.programs.vocabulary import INSTEAD, MODULES

_LOADED_BY_MODULES: Final = (
    "_strptime",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.ascii",
    "encodings.utf_16",
    "encodings.utf_32",
    "encodings.cp1252",
    "encodings.punycode",
    "unicodedata",
)
"""What those modules import only when they are used."""
_ALLOWED: Final = frozenset((*MODULES, *_LOADED_BY_MODULES))
"""A function of a module in C imports for the script that calls it."""
_IMPORT: Final = builtins.__import__


def load_modules() -> None:
    """Import all that a script may import."""
    for name in (*MODULES, *_LOADED_BY_MODULES):
        importlib.import_module(name)


def guard_imports(is_of_script: Callable[[str], bool]) -> None:
    """Refuse other modules to scripts than those of Python that they may import,
    and than their own ones.

    What this process has loaded already is none of their own, whatever name a file of a script has.
    """
    loaded = frozenset(sys.modules)

    def guarded(
        name: str,
        given: dict[str, Any] | None = None,
        local: dict[str, Any] | None = None,
        names: tuple[str, ...] = (),
        level: int = 0,
    ) -> Any:
        # The library itself imports as ever: its modules import each other late. A relative import
        # of a script stays within its own packages.
        is_script = frame_above(1).f_code.co_filename == FILE
        root = name.partition(".")[0]
        is_allowed = bool(level) or name in _ALLOWED or (root not in loaded and is_of_script(root))
        if is_script and not is_allowed:
            instead = INSTEAD.get(root, "a script reaches no files and no network")
            raise ModuleNotFoundError(f"No module named {name!r}: {instead}", name=name)
        return _IMPORT(name, given, local, names, level)

    builtins.__import__ = guarded  # type: ignore[assignment]
