"""What a sub-agent is started with: its goal with its values, its tools, and what it
takes over from the run.
"""

from typing import Any

from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.item_runs import apart, folder_request, item_request
from sennit.activities.prompts.outputs import bind_goal, refers_to_goal
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.plan.language.nodes import AgentCall


async def subagent_request(
    library: ArtifactReader, context: NodeContext, agent: AgentCall
) -> dict[str, Any]:
    """Return the fields of the request with which the sub-agent of a node is started. The outputs
    that it reads are loaded already.

    Raises WorkspaceRefused, BindError, BodyMissing, StoreUnavailable.
    """
    run_context = await library.run_context(context.run_prefix, context.checked.run_context)

    # An item of a map that runs apart has a plan of its own, and the tools of the run.
    item = apart(context.checked, context.unit)
    allowed = [entry["name"] for entry in run_context.catalogue]
    if item is not None:
        request = await item_request(library, context, item)
    else:
        if agent.tools is not None:
            allowed = [name for name in allowed if name in agent.tools]
        goal, material = bind_goal(agent.goal, context.binder.lookup)
        if refers_to_goal(agent.goal):
            above = await library.material(context.run_prefix, run_context)
            material = {**above, **material}
        request = {"goal": goal}
        if material:
            digest = await library.put(context.run_prefix, material)
            request["material"] = f"{context.call.run}/{digest}"
        if agent.workspace is not None:
            request |= await folder_request(library, context, agent, goal, allowed)

    # What it has from the run.
    request["tools"] = allowed
    request["docs"] = run_context.docs
    request["approval"] = run_context.approval
    request["budget"] = None
    if agent.budget:
        request["budget"] = agent.budget.model_dump(mode="json", exclude_none=True)
    request["on_failure"] = "partial"
    instructions = list(filter(None, (run_context.instructions, agent.instructions)))
    if instructions:
        request["instructions"] = "\n\n".join(instructions)
    return request
