"""Tools: typed functions that a plan can call by name.

from activities.toolbox import tool, ToolContext, ToolError
"""

from activities.toolbox.definition import Effect, Preview, Tool, ToolContext
from activities.toolbox.errors import (
    ToolArgumentError,
    ToolDefinitionError,
    ToolError,
    ToolModuleError,
    ToolSetupError,
    UnknownTool,
)
from activities.toolbox.loader import load_tools
from activities.toolbox.paths import documents_root, open_inside
from activities.toolbox.registry import Registry, tool

__all__ = [
    "Effect",
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
    "documents_root",
    "load_tools",
    "open_inside",
    "tool",
]
