"""Loads the built-in tools and those of users' modules."""

import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import ToolDefinitionError, ToolModuleError
from sennit.activities.toolbox.registry import Registry, default_registry

BUILT_IN: Final = (
    "sennit.activities.programs.calculate",
    "sennit.activities.toolbox.http.http_get",
    "sennit.activities.toolbox.files.list_files",
    "sennit.activities.toolbox.files.read",
    "sennit.activities.toolbox.read_output",
    "sennit.activities.toolbox.search.tool",
    "sennit.activities.toolbox.table",
)


def load_tools(
    modules: Sequence[str] = (), paths: Sequence[Path] = (), offered: Iterable[Tool] = ()
) -> Registry:
    """Return the built-in tools, those in `offered`, and those of `modules`, which may be
    in the folders `paths`.

    A module has the tools that it defines, those of its submodules that are imported with it, and
    those that it imports by name. Equal arguments give equal registries in every process. Raises
    ToolModuleError, one line naming the module and the reason, for a module that does not import,
    has no tool, or takes the name of another tool.
    """
    sys.path += [str(path) for path in paths if str(path) not in sys.path]
    importlib.invalidate_caches()
    registry = Registry()
    for name in BUILT_IN:
        _add(registry, _tools_of(name))
    _add(registry, offered)
    for name in modules:
        found = _tools_of(name)
        if not found:
            raise ToolModuleError(
                f"tool module {name!r} has no tools; mark its functions with @tool(effect=...)"
            )
        _add(registry, found)
    return registry


def _add(registry: Registry, found: Iterable[Tool]) -> None:
    for each in found:
        if each.name not in registry or registry.get(each.name) is not each:
            registry.add(each)


def _tools_of(name: str) -> list[Tool]:
    """Return the tools of a module. Raises ToolModuleError for whatever its import raises, and
    removes what that has registered by then.
    """
    before = {each.name for each in default_registry}
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        for each in default_registry:
            if each.name not in before:
                default_registry.discard(each.name)
        raise ToolModuleError(f"tool module {name!r} does not import: {_reason(error)}") from error
    return [each for each in default_registry if _belongs(each, module)]


def _belongs(candidate: Tool, module: ModuleType) -> bool:
    home = candidate.function.__module__
    if home == module.__name__ or home.startswith(module.__name__ + "."):
        return True
    return any(value is candidate.function for value in vars(module).values())


def _reason(error: BaseException) -> str:
    """Return what an import raised, with the line of the module where that
    is not in the message.
    """
    if isinstance(error, ToolDefinitionError):
        return str(error)
    frames: list[traceback.FrameSummary] = []
    for frame in traceback.extract_tb(error.__traceback__):
        if "importlib" not in frame.filename and frame.filename != __file__:
            frames.append(frame)
    place = ""
    if frames and not isinstance(error, SyntaxError):
        last = frames[-1]
        place = f" ({Path(last.filename).name}, line {last.lineno})"
    return f"{type(error).__name__}: {error}{place}"
