"""Tools: typed functions that a plan can call by name.

from sennit import tool, ToolContext, ToolError
"""

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
from sennit.activities.toolbox.paths import documents_root, open_inside
from sennit.activities.toolbox.registry import Registry, tool

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
