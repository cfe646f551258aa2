"""Runs with a plan that nobody has planned for them: items of maps, and sub-agents that work in a
folder. What such a run is started with, and how it has ended.
"""

from collections.abc import Sequence
from typing import Any

from sennit.activities.limits import MAX_FOLDER_TURNS
from sennit.activities.nodes.binding import Unit
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import SubAgentFailed
from sennit.activities.nodes.origins import subagent_ledger
from sennit.activities.storage.artifacts import ArtifactStore, encode
from sennit.activities.storage.media import copy_media
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.activities.storage.workspaces import copy_workspaces
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.edits.item_plan import name_of_value, plan_of_item, read_by_do
from sennit.workflows.plan.language.nodes import RESERVED_IDS, AgentCall, MapNode
from sennit.workflows.plan.language.workspaces import takes_workspace


def apart(checked: StoredPlan, unit: Unit) -> MapNode | None:
    """Return the map of an item that is a run of its own, None for any other unit."""
    node = checked.node(unit.id)
    if unit.item is None or not isinstance(node, MapNode) or not node.runs_apart:
        return None
    return node


async def item_request(
    library: ArtifactReader, context: NodeContext, node: MapNode
) -> dict[str, Any]:
    """Return what the run of an item is started with, beside what every run below another one is
    given: its plan lies in the store. The outputs that it reads are loaded already.

    Raises BindError, BodyMissing, StoreUnavailable.
    """
    checked, run = context.checked, context.call.run
    names = read_by_do(node)
    given = {name: context.binder.lookup(name) for name in names if name not in RESERVED_IDS}
    declared: dict[str, Any] = {}
    for name, spec in checked.plan.inputs.items():
        declared[name] = spec.model_dump(mode="json", exclude_unset=True)
    inputs: dict[str, Any] = {}
    if "input" in names:
        inputs |= {name: value for name, value in checked.inputs.items() if name in declared}
    plan = plan_of_item(node, given, inputs, declared, checked.goal)
    below = _home_below(context)
    values = [given, inputs]
    body = encode(values)
    await copy_media(library.store, context.run_prefix, below, values, body)
    await copy_workspaces(library.store, context.run_prefix, below, values, body, is_strange=True)
    title = f"{context.unit.path} of {checked.goal}"
    draft = await library.put(context.run_prefix, plan)
    request: dict[str, Any] = {"title": title[:200], "draft": f"{run}/{draft}"}
    if checked.material:
        request["material"] = f"{run}/{checked.material}"
    return request


async def folder_request(
    library: ArtifactReader,
    context: NodeContext,
    agent: AgentCall,
    goal: str,
    allowed: Sequence[str],
) -> dict[str, Any]:
    """Return what a sub-agent with a workspace is started with beside its goal. Nobody knows yet
    what it will find in the folder, so it plans nothing: its plan is one model that works there
    turn by turn. Without tools of its own it has those that work in folders.

    Raises WorkspaceRefused, BindError, BodyMissing, StoreUnavailable.
    """
    workspace = context.workspace(agent)
    below = _home_below(context)
    await copy_workspaces(library.store, context.run_prefix, below, workspace, encode(workspace))
    tools = agent.tools
    if tools is None:
        run_context = await library.run_context(context.run_prefix, context.checked.run_context)
        catalogue = run_context.tools
        tools = tuple(name for name in allowed if takes_workspace(catalogue[name]))
    offered = [name for name in allowed if name in tools]
    work = {
        "id": "work",
        "kind": "llm",
        "prompt": "$goal",
        "tools": offered,
        "max_turns": MAX_FOLDER_TURNS,
        "workspace": workspace,
    }
    plan = {"goal": goal, "nodes": [work], "answer": "$work"}
    draft = await library.put(context.run_prefix, plan)
    return {"draft": f"{context.call.run}/{draft}"}


async def take_workspaces(store: ArtifactStore, context: NodeContext, answer: Any) -> None:
    """Keep the workspaces that a sub-agent's answer names in this run too. Raises
    BodyMissing, StoreUnavailable.
    """
    home, body = _home_below(context), encode(answer)
    await copy_workspaces(store, home, context.run_prefix, answer, body, is_strange=True)


def _home_below(context: NodeContext) -> str:
    """Return what the artifacts of a node's sub-agent lie below."""
    namespace = context.run_prefix.rpartition("/")[0]
    return f"{namespace}/{subagent_ledger(context).run_prefix}"


def item_output(report: Any, node: MapNode) -> NodeOutput | None:
    """Return the value of an item by the report of its run, None if a condition has skipped it.

    Raises SubAgentFailed if it has no value for another reason.
    """
    fields: dict[str, Any] = {}
    if isinstance(report, dict):
        fields = report
    lines: dict[str, dict[str, Any]] = {}
    failed: list[str] = []
    for line in fields.get("nodes") or ():
        if isinstance(line, dict) and "id" in line:
            lines[line["id"]] = line
            if line.get("status") == "failed":
                failed.append(f"{line['id']}: {line.get('error')}")

    # The last node of the chain has the value.
    given = [name for name in read_by_do(node) if name not in RESERVED_IDS]
    last = lines.get(name_of_value(node, dict.fromkeys(given)), {})
    usage = usage_in(report)
    if last.get("status") == "succeeded":
        return NodeOutput(fields.get("answer"), usage)
    if not failed and last.get("status") == "skipped":
        return None
    problem = "; ".join(failed[:2]) or fields.get("problem") or "it ended without a value"
    raise SubAgentFailed(problem, usage)
