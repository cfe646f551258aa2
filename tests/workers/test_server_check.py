"""What is in the way of work is named with its remedy, by a real server."""

import asyncio
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio import activity
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from sennit.starter.dev.server import DevServer
from sennit.workers import server_check
from sennit.workers.server_check import ServerCheck, with_store
from sennit.workflows.messages import queues

HERE = "here:7233"


@activity.defn
async def nothing() -> None:
    """An activity, because a worker needs one."""


async def test_a_server_that_has_everything_is_good(client: Client) -> None:
    check = ServerCheck(client, HERE, None)
    assert (await check.lost(), await check.obstacle(), await check.note()) == (None, None, "")
    assert await ServerCheck(client, HERE, None, ("sennit", "2")).note() == (
        "sennit:2 is not current, no version is: `sennit setup --promote sennit:2` gives it new runs"
    )


async def test_a_missing_namespace_is_named_until_there_is_one(client: Client, dev_server: DevServer) -> None:
    strange = await Client.connect(dev_server.address, namespace="bare")
    check = ServerCheck(strange, HERE, None)
    assert await check.obstacle() == (
        "Temporal at here:7233 has no namespace 'bare': create it with `sennit setup --namespace bare`, "
        "or set TEMPORAL_NAMESPACE"
    )
    await _register(client, "bare")
    async with asyncio.timeout(60):  # the server learns of a new namespace a moment later
        while await check.obstacle() or not (note := await check.note()):
            await asyncio.sleep(0.2)
    assert "namespace 'bare' lacks the search attributes SennitStatus, SennitPhase," in note
    assert "until you run `sennit setup`" in note


async def test_a_server_that_is_too_old_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_check, "LEAST_SERVER", (99, 0))
    told = await ServerCheck(client, HERE, None).obstacle()
    assert told is not None
    assert told.startswith("Temporal at here:7233 is version 1.31.")
    assert told.endswith(": upgrade it to 99.0 or newer")


async def test_a_worker_waits_for_others_with_another_store_to_go(client: Client, dev_server: DevServer) -> None:
    """It is a worker of the tools queue, known by its identity as one with the store `a`."""
    await _register(client, "stores")
    other = await Client.connect(dev_server.address, namespace="stores", identity=with_store("tools@pod:1 2.0", "a"))
    same, different, none = (ServerCheck(other, HERE, store) for store in ("a", "b", None))
    async with asyncio.timeout(60):
        while await same.obstacle():
            await asyncio.sleep(0.2)
        async with Worker(other, task_queue=queues.TOOLS, activities=[nothing]):
            while (told := await different.obstacle()) is None:
                await asyncio.sleep(0.05)
    assert told.startswith("tools@pod:1 2.0 has the artifact store a, this worker has b: SENNIT_ARTIFACTS of all")
    assert (await same.obstacle(), await none.obstacle()) == (None, None)


async def test_a_server_that_does_not_let_the_worker_in_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RPCError("Request unauthorized.", RPCStatusCode.PERMISSION_DENIED, b"")

    monkeypatch.setattr(client.workflow_service, "describe_namespace", refuse)
    told = await ServerCheck(client, HERE, None).obstacle()
    assert told == (
        "Temporal at here:7233 refuses this worker: Request unauthorized.; "
        "check TEMPORAL_API_KEY and the certificates of TEMPORAL_TLS_*"
    )


async def _register(client: Client, name: str) -> None:
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=Duration(seconds=86_400))
    )
