"""Items of maps that are runs of their own: what such a run is started with, and how it has ended."""

from typing import Any

from sennit.activities.nodes.binding import Unit
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import SubAgentFailed
from sennit.activities.nodes.origins import subagent_ledger
from sennit.activities.storage.artifacts import encode
from sennit.activities.storage.media import copy_media
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.activities.storage.workspaces import copy_workspaces
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.edits.item_plan import name_of_value, plan_of_item, read_by_do
from sennit.workflows.plan.language.nodes import RESERVED_IDS, MapNode


def apart(checked: StoredPlan, unit: Unit) -> MapNode | None:
    """Return the map of an item that is a run of its own, None for any other unit."""
    node = checked.node(unit.id)
    is_item = isinstance(node, MapNode) and unit.item is not None
    return node if is_item and isinstance(node, MapNode) and node.runs_apart else None


async def item_request(library: ArtifactReader, context: NodeContext, node: MapNode) -> dict[str, Any]:
    """Return what the run of an item is started with, beside what every run below another one is given: its plan lies
    in the store. The outputs that it reads are loaded already.

    Raises BindError, BodyMissing, StoreUnavailable.
    """
    checked, run = context.checked, context.call.run
    names = read_by_do(node)
    given = {name: context.binder.lookup(name) for name in names if name not in RESERVED_IDS}
    declared = {name: spec.model_dump(mode="json", exclude_unset=True) for name, spec in checked.plan.inputs.items()}
    inputs = {name: value for name, value in checked.inputs.items() if "input" in names and name in declared}
    plan = plan_of_item(node, given, inputs, declared, checked.goal)
    namespace = context.run_prefix.rpartition("/")[0]
    below = f"{namespace}/{subagent_ledger(context).run_prefix}"
    values = [given, inputs]
    body = encode(values)
    await copy_media(library.store, context.run_prefix, below, values, body)
    await copy_workspaces(library.store, context.run_prefix, below, values, body)
    request: dict[str, Any] = {
        "title": f"{context.unit.path} of {checked.goal}"[:200],
        "draft": f"{run}/{await library.put(context.run_prefix, plan)}",
    }
    if checked.material:
        request["material"] = f"{run}/{checked.material}"
    return request


def item_output(report: Any, node: MapNode) -> NodeOutput | None:
    """Return the value of an item by the report of its run, None if a condition has skipped it.

    Raises SubAgentFailed if it has no value for another reason.
    """
    fields = report if isinstance(report, dict) else {}
    lines = {line["id"]: line for line in fields.get("nodes") or () if isinstance(line, dict) and "id" in line}
    given = [name for name in read_by_do(node) if name not in RESERVED_IDS]
    last = lines.get(name_of_value(node, dict.fromkeys(given)), {})
    usage = usage_in(report)
    if last.get("status") == "succeeded":
        return NodeOutput(fields.get("answer"), usage)
    failed = [f"{name}: {line.get('error')}" for name, line in lines.items() if line.get("status") == "failed"]
    if not failed and last.get("status") == "skipped":
        return None
    problem = "; ".join(failed[:2]) or fields.get("problem") or "it ended without a value"
    raise SubAgentFailed(problem, usage)
