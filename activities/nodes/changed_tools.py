"""Tools of servers that have changed since a run began: a plan is checked against a tool,
and calls that one alone.
"""

from typing import Final

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.early import EarlyRefused
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import McpToolChanged
from sennit.workflows.plan.language.workspaces import mentions_workspace
from sennit.workflows.plan.learning.trajectory import version_of


def keeps_folders(tool: Tool) -> bool:
    """Whether a tool is given workspaces, or leaves some: those belong to a call that is made."""
    return mentions_workspace(tool.schema) or mentions_workspace(tool.output_schema)


async def check_early(library: ArtifactReader, context: NodeContext, tool: Tool) -> None:
    """Raise EarlyRefused for a tool of which no call is made early: it may write or ask others, or
    it is another one than the run began with.
    """
    if tool.effect not in ("pure", "read") or tool.asks_agents or keeps_folders(tool):
        raise EarlyRefused(f"{tool.name} may do more than read")
    run_context = await library.run_context(context.run_prefix, context.checked.run_context)
    known = run_context.tools.get(tool.name)
    if known is None or version_of(known) != version_of(tool.describe()):
        raise EarlyRefused(f"{tool.name} is another tool than the run began with")


_CHECKED: Final = ("effect", "schema", "output_schema", "idempotent", "resource")
"""What checks of a plan, and its schedule, read of a tool."""


async def check_unchanged(library: ArtifactReader, context: NodeContext, tool: Tool) -> None:
    """Raise McpToolChanged if a tool is another one than the run began with;
    it was not called then.
    """
    run_context = await library.run_context(context.run_prefix, context.checked.run_context)
    checked = run_context.tools.get(tool.name)
    if checked is None:
        return
    now = tool.describe()
    changed = [name.replace("_", " ") for name in _CHECKED if checked.get(name) != now[name]]
    if changed:
        raise McpToolChanged(
            f"{tool.name}: its server has changed its {' and '.join(changed)} since this run "
            "began, and nothing was called; start the run again, or fork it: a new run is checked "
            "against the tool as it is now"
        )
