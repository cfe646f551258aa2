"""`sennit setup`: create the search attributes that a namespace lacks, name the lists they make possible, and cap what
all workers together ask of a model provider.
"""

import argparse
from collections.abc import Mapping

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import RateLimit
from temporalio.api.workflowservice.v1 import UpdateTaskQueueConfigRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from starter.client.client import WORKFLOW_TYPE, Sennit
from starter.client.connection import TemporalServer
from starter.client.errors import CliError, Exit, Refused
from starter.client.server_errors import meaning
from starter.commands.launch import connect
from starter.terminal.console import Terminal
from workflows.messages.queues import llm_queue, rates_in
from workflows.run.search_attributes import KINDS

# A terminated run keeps the SennitStatus it had, so a list of open runs has to ask Temporal's own status too.
_OPEN = f'`WorkflowType`="{WORKFLOW_TYPE}" AND `ExecutionStatus`="Running"'
VIEWS = {
    "blocked": f'{_OPEN} AND `SennitStatus`="blocked"',
    "running": f'{_OPEN} AND `SennitStatus`="running"',
    "over budget": f'{_OPEN} AND `SennitBlockedOn` STARTS_WITH "budget"',
    "with failed nodes": f'`WorkflowType`="{WORKFLOW_TYPE}" AND `SennitNodesFailed` > 0',
}
"""Filters of lists worth saving, written as the web UI writes them, so that it shows each part as a chip."""


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Create what is missing and say what was done; running it again changes nothing."""
    try:
        rates = rates_in(args.rates or "")
    except ValueError as error:
        raise Refused(f"--rates {error}; 0 lifts a cap") from None
    sennit = await connect(args, terminal)
    there = await _attributes(sennit)
    wrong = mistyped(there)
    if wrong:
        remedy = "remove them with `temporal operator search-attribute remove`, or use another namespace"
        raise Refused(f"search attributes of another type are in the way: {', '.join(wrong)}; {remedy}")
    missing = {name: kind for name, kind in KINDS.items() if name not in there}
    if missing:
        await _create(sennit, missing)
    for provider, calls in rates.items():
        await _cap(sennit, provider, calls)
    if terminal.output in ("json", "jsonl"):
        views = {name: {"query": query, "url": sennit.place.list_link(query)} for name, query in VIEWS.items()}
        done = {"namespace": sennit.place.namespace, "created": list(missing), "kept": _kept(missing), "rates": rates}
        terminal.answer_json({**done, "views": views})
    else:
        terminal.answer("\n".join([*told(sennit.place.namespace, missing), *capped(rates), "", *listed(sennit.place)]))
    return Exit.ANSWER


def told(namespace: str, missing: Mapping[str, str]) -> list[str]:
    """Return what was done, a line for each kind of thing."""
    lines = []
    if missing:
        lines.append(f"created in {namespace}: " + ", ".join(f"{name} ({kind})" for name, kind in missing.items()))
        lines.append("runs that start from a minute on set them; those that go on already do not")
    if _kept(missing):
        lines.append(f"already in {namespace}: " + ", ".join(_kept(missing)))
    return lines


def capped(rates: Mapping[str, int]) -> list[str]:
    """Return what was set, a line for each provider."""
    return [
        f"{llm_queue(provider)}: {f'at most {calls:,} calls a minute' if calls else 'no cap'}, of all workers together"
        for provider, calls in rates.items()
    ]


def listed(place: TemporalServer) -> list[str]:
    """Return the views to save in the web UI: links, or their filters where nobody said where the UI is."""
    where = (
        "open one, then Save as New" if place.ui else "paste as filter; with SENNIT_UI=http://HOST:PORT they are links"
    )
    lines = [f"views for the web UI ({where}):"]
    return lines + [f"  {name:<17} {place.list_link(query) or query}" for name, query in VIEWS.items()]


def mistyped(there: Mapping[str, int]) -> list[str]:
    """Return those of our attributes that exist with another type."""
    return [
        f"{name} should be {kind}" for name, kind in KINDS.items() if name in there and there[name] != _value_type(kind)
    ]


def _kept(missing: Mapping[str, str]) -> list[str]:
    return [name for name in KINDS if name not in missing]


def _value_type(kind: str) -> IndexedValueType.ValueType:
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")


async def _attributes(sennit: Sennit) -> Mapping[str, int]:
    request = ListSearchAttributesRequest(namespace=sennit.place.namespace)
    try:
        return (await sennit.client.operator_service.list_search_attributes(request)).custom_attributes
    except RPCError as error:
        raise _refusal(sennit.client, error) from None


async def _create(sennit: Sennit, missing: Mapping[str, str]) -> None:
    kinds = {name: _value_type(kind) for name, kind in missing.items()}
    request = AddSearchAttributesRequest(namespace=sennit.place.namespace, search_attributes=kinds)
    try:
        await sennit.client.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise _refusal(sennit.client, error) from None


async def _cap(sennit: Sennit, provider: str, calls: int) -> None:
    """Have the server give out so many calls of a provider a minute; 0 lifts the cap. Workers need no restart."""
    update = UpdateTaskQueueConfigRequest.RateLimitUpdate(
        rate_limit=RateLimit(requests_per_second=calls / 60) if calls else None, reason="sennit setup --rates"
    )
    request = UpdateTaskQueueConfigRequest(
        namespace=sennit.place.namespace,
        task_queue=llm_queue(provider),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        update_queue_rate_limit=update,
    )
    try:
        await sennit.client.workflow_service.update_task_queue_config(request)
    except RPCError as error:
        if error.status == RPCStatusCode.UNIMPLEMENTED:
            raise Refused("this server knows no rates of task queues; a newer Temporal server does") from None
        raise meaning(error) from None


def _refusal(client: Client, error: RPCError) -> CliError:
    """Return what to do where a namespace is full, or attributes are made by other means, as on Temporal Cloud."""
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
        wanted = ", ".join(f"{name} ({kind})" for name, kind in KINDS.items())
        return Refused(f"this server lets no client create search attributes; have {client.namespace} given {wanted}")
    if "cannot have more than" in error.message:
        return Refused(f"{error.message.rstrip('.')} in namespace {client.namespace}; use a namespace with room")
    return meaning(error)
