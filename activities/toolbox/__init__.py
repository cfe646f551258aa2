"""Tools: typed functions that a plan can call by name.

from sennit import tool, ToolContext, ToolError

A name is imported when it is first used: most of those who import a module of
this package run no tool.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sennit.activities.toolbox.definition import Effect, Preview, Tool, ToolContext
    from sennit.activities.toolbox.errors import (
        ToolArgumentError,
        ToolDefinitionError,
        ToolError,
        ToolModuleError,
        ToolSetupError,
        UnknownTool,
    )
    from sennit.activities.toolbox.loader import load_tools
    from sennit.activities.toolbox.media import MediaFile
    from sennit.activities.toolbox.paths import documents_root, open_inside
    from sennit.activities.toolbox.registry import Registry, tool
    from sennit.workflows.plan.language.workspaces import Workspace

_HOMES = {
    "definition": ("Effect", "Preview", "Tool", "ToolContext"),
    "errors": (
        "ToolArgumentError", "ToolDefinitionError", "ToolError", "ToolModuleError",
        "ToolSetupError", "UnknownTool",
    ),
    "loader": ("load_tools",),
    "media": ("MediaFile",),
    "paths": ("documents_root", "open_inside"),
    "registry": ("Registry", "tool"),
}  # fmt: skip


def _places() -> dict[str, str]:
    """Return for each name of this package the module that has it."""
    places: dict[str, str] = {}
    for module, names in _HOMES.items():
        for name in names:
            places[name] = f"{__name__}.{module}"
    places["Workspace"] = "sennit.workflows.plan.language.workspaces"
    return places


_PLACES = _places()

__all__ = [
    "Effect",
    "MediaFile",
    "Preview",
    "Registry",
    "Tool",
    "ToolArgumentError",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolModuleError",
    "ToolSetupError",
    "UnknownTool",
    "Workspace",
    "documents_root",
    "load_tools",
    "open_inside",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found
