"""What of a plan needs tools that are not there now, but may come: those of a
server that does not answer.
"""

from collections.abc import Iterator

from sennit.activities.storage.run_context import RunContext
from sennit.activities.toolbox.registry import absence_of
from sennit.workflows.plan.language.dependencies import programs_in, works_of
from sennit.workflows.plan.language.nodes import Node, Plan, ToolCall
from sennit.workflows.plan.programs.program_plan import tools_called


def absent_tools(plan: Plan, context: RunContext) -> dict[str, str]:
    """Return why each tool is not there that the plan names and the run
    lacks for now, by its name.
    """
    if not context.absences:
        return {}
    absent: dict[str, str] = {}
    for node in plan.nodes:
        for name in _named(node):
            reason = absence_of(name, context.absences)
            if name not in context.tools and reason:
                absent[name] = reason
    return absent


def _named(node: Node) -> Iterator[str]:
    for _, program in programs_in(node):
        yield from tools_called(program.script)
    for _, work in works_of(node):
        if isinstance(work, ToolCall):
            yield work.tool
        else:
            yield from work.tools or ()
