"""`sennit setup`: prepare a namespace, create the artifact store, limit how often all
workers together may call a model provider, promote a version of the workers, and delete
those that no run needs any more.

It creates the namespace and the search attributes it lacks, and names the lists of runs that
these make possible. With `--store` it only creates the store of workers with this environment.
You have to ask for that, because nobody can tell by an empty folder whether it is new or a
volume that is not mounted.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.taskqueue.v1 import RateLimit
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest, UpdateTaskQueueConfigRequest
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import TemporalServer, configured_server
from sennit.starter.client.deployment import Version, promote, prune
from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.client.runs import WORKFLOW_TYPE
from sennit.starter.client.server_errors import error_of
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import connect
from sennit.starter.dev.messages import LocalStackFailed
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.workers import create_store, worker_environment
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import llm_queue, rates_in
from sennit.workflows.run.search_attributes import KINDS

# A terminated run keeps its SennitStatus, so a list of open runs has to ask for
# Temporal's own status too.
_OPEN = f'`WorkflowType`="{WORKFLOW_TYPE}" AND `ExecutionStatus`="Running"'
VIEWS = {
    "blocked": f'{_OPEN} AND `SennitStatus`="blocked"',
    "running": f'{_OPEN} AND `SennitStatus`="running"',
    "over budget": f'{_OPEN} AND `SennitBlockedOn` STARTS_WITH "budget"',
    "with failed nodes": f'`WorkflowType`="{WORKFLOW_TYPE}" AND `SennitNodesFailed` > 0',
}
"""Filters of lists worth saving, written as the web UI writes them, so that it
shows each part as a chip.
"""

_NOT_ALLOWED = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED)

RETENTION_DAYS = 3
NAMESPACE_SECONDS = 30
"""How long the server may take to let a new namespace be used."""


def add_arguments(parser: Parser) -> None:
    parser.describe(
        "",
        "sennit setup --address temporal.example.com:7233 --namespace agents --rates "
        "openai=600\nsennit setup --store",
    )
    rates_help = "most calls a minute of all workers together; 0 lifts a limit"
    parser.add_argument("--rates", metavar="PROVIDER=N,...", help=rates_help)
    store_help = (
        "create the artifact store of workers with this environment (SENNIT_ARTIFACTS), unless it "
        "is there"
    )
    parser.add_argument("--store", action="store_true", help=store_help)
    promote_help = "give new runs, and those that wait, to this version of the workflow workers"
    parser.add_argument("--promote", metavar="DEPLOYMENT:BUILD", help=promote_help)
    prune_help = "have the server forget the versions of this deployment that no run needs any more"
    parser.add_argument("--prune", metavar="DEPLOYMENT", help=prune_help)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Create what is missing and report it; running it again changes nothing."""
    try:
        rates = rates_in(args.rates or "")
    except ValueError as error:
        raise Refused(f"--rates {error}; 0 lifts a cap") from None
    version = None
    if args.promote:
        version = Version.parse(args.promote)
    if args.store:
        return await _create_store(args, terminal)
    sennit = await connect(args, terminal)
    server = sennit.server

    # The namespace comes first: attributes and rates belong to it.
    is_new = await _create_namespace(sennit)
    patience = NAMESPACE_SECONDS if is_new else 0
    existing = await _existing_attributes(sennit, patience)
    wrong = wrong_types(existing)
    if wrong:
        remedy = (
            "remove them with `temporal operator search-attribute remove`, or use another namespace"
        )
        raise Refused(
            f"search attributes of another type are in the way: {', '.join(wrong)}; {remedy}"
        )
    missing = {name: kind for name, kind in KINDS.items() if name not in existing}
    if missing:
        await _create_attributes(sennit, missing)
    for provider, calls in rates.items():
        await _limit_rate(sennit, provider, calls)

    # What was done, as lines for a person and as data.
    lines: list[str] = []
    if is_new:
        lines.append(
            f"created namespace {server.namespace}; it keeps ended runs for {RETENTION_DAYS} days"
        )
    lines += attribute_lines(server.namespace, missing)
    lines += _rate_lines(rates)
    data: dict[str, Any] = {
        "namespace": server.namespace,
        "namespace_created": is_new,
        "created": list(missing),
        "kept": _kept(missing),
        "rates": rates,
    }
    if version:
        moving = await promote(sennit.client, version)
        lines.append(_promotion_line(args.promote, moving))
        data["promoted"] = args.promote
        data["moving"] = moving
    if args.prune:
        builds = await prune(sennit.client, args.prune)
        for build, why in builds.items():
            fate = "is deleted"
            if why:
                fate = f"stays: {why}"
            lines.append(f"{args.prune}:{build} {fate}")
        data["builds"] = dict(builds)
    lines += ["", *view_lines(server)]
    data["views"] = {
        name: {"query": query, "url": server.list_link(query)} for name, query in VIEWS.items()
    }
    terminal.result("\n".join(lines), data)
    return Exit.ANSWER


async def _create_store(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Create the artifact store, and ask no server: without a store of its own a local
    stack does not even start.
    """
    if args.rates or args.promote or args.prune:
        raise Refused(
            "--store creates the artifact store and does nothing else; run `sennit setup` again "
            "for the rest"
        )
    environment: Mapping[str, str] = os.environ
    try:
        if configured_server(args.address, args.namespace) is None:
            state = StateDir.find()
            state.prepare()
            environment = worker_environment(state, "", 0, environment)
        store = await create_store(environment)
    except LocalStackFailed as failure:
        raise Refused(str(failure)) from None
    news = "created the artifact store" if store.created else "the artifact store is there:"
    terminal.result(f"{news} {store.store}", store.model_dump())
    return Exit.ANSWER


def attribute_lines(namespace: str, missing: Mapping[str, str]) -> list[str]:
    """Return which attributes were created and which were there."""
    lines = []
    if missing:
        lines.append(f"created in {namespace}: {_attribute_list(missing)}")
        lines.append("runs that start a minute from now set them; runs that are under way do not")
    kept = _kept(missing)
    if kept:
        lines.append(f"already in {namespace}: {', '.join(kept)}")
    return lines


def _attribute_list(attributes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in attributes.items())


def _rate_lines(rates: Mapping[str, int]) -> list[str]:
    lines: list[str] = []
    for provider, calls in rates.items():
        cap = "no cap"
        if calls:
            cap = f"at most {calls:,} calls a minute"
        lines.append(f"{llm_queue(provider)}: {cap}, of all workers together")
    return lines


def _promotion_line(version: str, moving: int) -> str:
    if not moving:
        return f"{version} is current; no run is on another version"
    runs = "1 run moves"
    if moving != 1:
        runs = f"{moving:,} runs move"
    return (
        f"{version} is current; {runs} to it as soon as nothing of theirs runs, and the old "
        "workers must stay till then"
    )


def view_lines(server: TemporalServer) -> list[str]:
    """Return the views to save in the web UI: links, or filters if nobody said where the UI is."""
    how = "open one, then Save as New"
    if not server.ui:
        how = "paste as filter; with SENNIT_UI=http://HOST:PORT they are links"
    lines = [f"views for the web UI ({how}):"]
    for name, query in VIEWS.items():
        link = server.list_link(query) or query
        lines.append(f"  {name:<17} {link}")
    return lines


def wrong_types(existing: Mapping[str, int]) -> list[str]:
    """Return those of our attributes that exist with another type."""
    wrong: list[str] = []
    for name, kind in KINDS.items():
        if name in existing and existing[name] != _value_type(kind):
            wrong.append(f"{name} should be {kind}")
    return wrong


def _kept(missing: Mapping[str, str]) -> list[str]:
    return [name for name in KINDS if name not in missing]


def _value_type(kind: str) -> IndexedValueType.ValueType:
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")


async def _create_namespace(sennit: Sennit) -> bool:
    """Create the namespace and return True, or False if it is there or
    clients may not create one.
    """
    request = RegisterNamespaceRequest(namespace=sennit.server.namespace)
    request.workflow_execution_retention_period.seconds = RETENTION_DAYS * 86_400
    try:
        await sennit.client.workflow_service.register_namespace(request)
    except RPCError as error:
        if error.status in (RPCStatusCode.ALREADY_EXISTS, *_NOT_ALLOWED):
            return False
        raise error_of(error) from None
    return True


async def _existing_attributes(sennit: Sennit, patience: int) -> Mapping[str, int]:
    """Return the custom attributes; a namespace may need some seconds of `patience`
    until the server knows it.
    """
    request = ListSearchAttributesRequest(namespace=sennit.server.namespace)
    while True:
        try:
            found = await sennit.client.operator_service.list_search_attributes(request)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND or patience == 0:
                raise attributes_error(sennit.client.namespace, error) from None
            patience -= 1
            await asyncio.sleep(1)
        else:
            attributes: Mapping[str, int] = found.custom_attributes
            return attributes


async def _create_attributes(sennit: Sennit, missing: Mapping[str, str]) -> None:
    kinds = {name: _value_type(kind) for name, kind in missing.items()}
    request = AddSearchAttributesRequest(namespace=sennit.server.namespace, search_attributes=kinds)
    try:
        await sennit.client.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise attributes_error(sennit.client.namespace, error) from None


def attributes_error(namespace: str, error: RPCError) -> SennitError:
    """Return what to do if a namespace is full, or if clients may not create
    attributes, as on Temporal Cloud.
    """
    if error.status in _NOT_ALLOWED:
        wanted = _attribute_list(KINDS)
        return Refused(
            f"this server lets no client create search attributes; add these to {namespace}: "
            f"{wanted}"
        )
    if "cannot have more than" in error.message:
        return Refused(
            f"{error.message.rstrip('.')} in namespace {namespace}; use a namespace with room"
        )
    return error_of(error)


async def _limit_rate(sennit: Sennit, provider: str, calls: int) -> None:
    """Have the server dispatch at most so many calls a minute; 0 lifts the limit.
    Workers need no restart.
    """
    rate = None
    if calls:
        rate = RateLimit(requests_per_second=calls / 60)
    request = UpdateTaskQueueConfigRequest(
        namespace=sennit.server.namespace,
        task_queue=llm_queue(provider),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        update_queue_rate_limit=UpdateTaskQueueConfigRequest.RateLimitUpdate(
            rate_limit=rate, reason="sennit setup --rates"
        ),
    )
    try:
        await sennit.client.workflow_service.update_task_queue_config(request)
    except RPCError as error:
        if error.status == RPCStatusCode.UNIMPLEMENTED:
            raise Refused(
                "this server cannot limit the rate of task queues; a newer Temporal server can"
            ) from None
        raise error_of(error) from None
