"""What a script may import. All of it is loaded before the process is confined, for it can open no file then."""

import builtins
import importlib
from typing import Any, Final

from sennit.activities.programs.cpython.names import MODULE
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


def guard_imports() -> None:
    """Refuse other modules to scripts, by a message that says what to write."""
    # `from __import__` of the library itself goes on as ever: modules import each other late.
    builtins.__import__ = _import  # type: ignore[assignment]


def _import(
    name: str,
    given: dict[str, Any] | None = None,
    local: dict[str, Any] | None = None,
    names: tuple[str, ...] = (),
    level: int = 0,
) -> Any:
    if given is not None and given.get("__name__") == MODULE and (level or name not in _ALLOWED):
        instead = INSTEAD.get(name.partition(".")[0], "a script reaches no files and no network")
        raise ModuleNotFoundError(f"No module named {name!r}: {instead}", name=name)
    return _IMPORT(name, given, local, names, level)
