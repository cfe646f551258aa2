"""The plan of a run, from what its workers have stored of it and what its client has sent."""

from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from sennit.starter.client.errors import Refused
from sennit.starter.client.output import read_output
from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.outputs import PLAN
from sennit.workflows.messages.views import ScriptView
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan


async def run_plan(
    client: Client,
    run: str,
    script_of: Callable[[str], Awaitable[ScriptView]],
    on_mask: Callable[[], None] | None,
) -> Plan:
    """Return the plan of a run as `Run.plan` says. `script_of` gives a
    program of it as it is now.
    """
    stored = await read_output(client, run, PLAN, "plan", on_mask)
    typed = await _typed_inputs(client, run)
    nodes = [await _with_script(node, script_of) for node in stored["nodes"]]
    inputs = stored.get("inputs") or {}
    declared = {name: _with_value(name, spec, typed) for name, spec in inputs.items()}
    try:
        return parse_plan({**stored, "nodes": nodes, "inputs": declared})
    except InvalidPlan as error:
        raise Refused(
            f"{run} is not a run of this Sennit: its plan has another form: {error}"
        ) from None


async def _typed_inputs(client: Client, run: str) -> dict[str, Any]:
    """Return the inputs in a run's request. Attached files are not among them: only this
    run may read its copies.
    """
    try:
        async for event in client.get_workflow_handle(run).fetch_history_events(page_size=1):
            sent = event.workflow_execution_started_event_attributes.input.payloads[:1]
            [request] = await client.data_converter.decode(sent)
            break
    except RPCError as error:
        raise error_of(error) from None
    return dict(request.get("inputs") or {})


async def _with_script(
    node: dict[str, Any], script_of: Callable[[str], Awaitable[ScriptView]]
) -> dict[str, Any]:
    if node["kind"] != "program":
        return node
    shown = await script_of(node["id"])
    return {**node, "script": shown.script}


def _with_value(name: str, spec: dict[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    if name not in typed:
        return spec
    return {**spec, "default": typed[name]}
