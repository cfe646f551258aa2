"""Loads the built-in tools and those of users' modules."""

import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final, Self

from activities.toolbox.definition import Tool
from activities.toolbox.errors import ToolDefinitionError, ToolModuleError
from activities.toolbox.registry import Registry, default_registry

BUILT_IN: Final = (
    "activities.toolbox.calculate",
    "activities.toolbox.http.http_get",
    "activities.toolbox.files.list_files",
    "activities.toolbox.files.read",
    "activities.toolbox.read_output",
    "activities.toolbox.search.tool",
    "activities.toolbox.table",
)


def load_tools(modules: Sequence[str] = (), paths: Sequence[Path] = (), offered: Iterable[Tool] = ()) -> Registry:
    """Return the built-in tools, those `offered` on this worker, and those of `modules`, importable from `paths` too.

    A module gives the tools it defines, those of its submodules that are imported with it, and those it imports
    by name. Equal arguments give equal registries in every process. Raises ToolModuleError, one line naming the
    module and the reason, for a module that does not import, has no tool, or takes another tool's name.
    """
    for path in paths:
        if str(path) not in sys.path:
            sys.path.append(str(path))
    importlib.invalidate_caches()
    registry = Registry()
    for name in BUILT_IN:
        _add(registry, _tools_of(name))
    _add(registry, offered)
    for name in modules:
        found = _tools_of(name)
        if not found:
            raise ToolModuleError(f"tool module {name!r} has no tools; mark its functions with @tool(effect=...)")
        _add(registry, found)
    return registry


def _add(registry: Registry, found: Iterable[Tool]) -> None:
    for each in found:
        if each.name not in registry or registry.get(each.name) is not each:
            registry.add(each)


def _tools_of(name: str) -> list[Tool]:
    with _Importing(name):
        module = importlib.import_module(name)
    return [each for each in default_registry if _belongs(each, module)]


def _belongs(candidate: Tool, module: ModuleType) -> bool:
    home = candidate.function.__module__
    if home == module.__name__ or home.startswith(module.__name__ + "."):
        return True
    return any(value is candidate.function for value in vars(module).values())


class _Importing:
    """Turns whatever an import raises into a ToolModuleError and forgets what it registered by then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before = {each.name for each in default_registry}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, KeyboardInterrupt):
            return
        for each in default_registry:
            if each.name not in self._before:
                default_registry.discard(each.name)
        reason = str(error) if isinstance(error, ToolDefinitionError) else f"{type(error).__name__}: {error}"
        message = f"tool module {self._name!r} does not import: {reason}{self._place(error)}"
        raise ToolModuleError(message) from error

    @staticmethod
    def _place(error: BaseException) -> str:
        if isinstance(error, ToolDefinitionError | SyntaxError):
            return ""
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename != __file__ and "importlib" not in frame.filename
        ]
        return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
