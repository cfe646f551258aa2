"""Namespaces and search attributes: created where they are missing, on a real server."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Refused
from sennit.starter.commands import setup
from sennit.starter.commands.command_line import parse
from sennit.workflows.run.search_attributes import KINDS

INT = IndexedValueType.INDEXED_VALUE_TYPE_INT


def test_an_attribute_of_another_type_is_named() -> None:
    assert setup.wrong_types({"SennitStatus": 2, "SennitTokens": 99}) == ["SennitTokens should be Double"]


def test_what_was_done_is_printed() -> None:
    assert setup.attribute_lines("agents", {"SennitTokens": "Double"})[0] == "created in agents: SennitTokens (Double)"
    assert "already in" not in " ".join(setup.attribute_lines("agents", KINDS))
    assert [line[:32] for line in setup.attribute_lines("agents", {})] == ["already in agents: SennitStatus,"]


def test_views_are_links_only_where_the_web_ui_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'AND `SennitStatus`="blocked"' in setup.view_lines(local_server("h:1", None, "a b"))[1]
    line = setup.view_lines(local_server("h:1", "http://ui/", "a b"))[1]
    assert line.endswith("%20AND%20%60SennitStatus%60%3D%22blocked%22")
    assert "http://ui/namespaces/a%20b/workflows?query=%60WorkflowType%60%3D%22AgentRun%22%20AND" in line


@pytest.mark.timeout(60)
async def test_what_is_missing_is_created_once(
    server_address: str, client: Client, make_terminal: Callable[..., Any]
) -> None:
    args = parse(["setup", "--address", server_address, "--namespace", "agents", "--output", "json"])
    created = []
    for _ in range(2):
        terminal = make_terminal("json")
        await setup.run(args, terminal)
        answer = json.loads(terminal.out.getvalue())
        created.append((answer["namespace_created"], answer["created"]))
    assert created == [(True, list(KINDS)), (False, [])]


async def test_the_store_is_created_without_a_server(
    make_terminal: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_ARTIFACTS", str(tmp_path / "store"))
    args = ["setup", "--store", "--address", "127.0.0.1:9", "--output", "json"]
    for created in (True, False):
        terminal = make_terminal("json")
        await setup.run(parse(args), terminal)
        assert json.loads(terminal.out.getvalue()) == {"store": str(tmp_path / "store"), "created": created}
    monkeypatch.setenv("SENNIT_ARTIFACTS", str(tmp_path / "store" / ".store-id" / "below"))
    with pytest.raises(Refused, match=r"the artifact store cannot be created: .*Not a directory"):
        await setup.run(parse(args), make_terminal("json"))
    with pytest.raises(Refused, match="--store creates the artifact store and does nothing else"):
        await setup.run(parse([*args, "--rates", "openai=1"]), make_terminal("json"))


@pytest.mark.parametrize("rates", ["openai", "openai=-1", "openai=1.5", "=60", "openai:m=60"])
async def test_a_rate_that_is_none_is_named(make_terminal: Callable[..., Any], rates: str) -> None:
    with pytest.raises(Refused, match="is no rate; give calls a minute, like openai=600"):
        await setup.run(parse(["setup", "--rates", rates]), make_terminal("text"))


async def test_a_provider_is_capped_for_all_workers_together_and_let_go(
    server_address: str, client: Client, make_terminal: Callable[..., Any]
) -> None:
    async def rate() -> float | None:
        asked = DescribeTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name="sennit.llm.anthropic"),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_config=True,
        )
        found = (await client.workflow_service.describe_task_queue(asked)).config.queue_rate_limit
        return found.rate_limit.requests_per_second if found.HasField("rate_limit") else None

    for text, expected in (("anthropic=90", 1.5), ("anthropic=0", None)):
        terminal = make_terminal("text")
        await setup.run(parse(["setup", "--address", server_address, "--rates", text]), terminal)
        assert await rate() == expected
        text = "at most 90 calls a minute" if expected else "no cap"
        assert f"sennit.llm.anthropic: {text}, of all workers together" in terminal.out.getvalue()


@pytest.mark.parametrize("query", setup.VIEWS.values(), ids=list(setup.VIEWS))
async def test_the_server_takes_the_filters(client: Client, query: str) -> None:
    assert (await client.count_workflows(query)).count >= 0


async def test_a_namespace_without_room_is_named(
    server_address: str, client: Client, make_terminal: Callable[..., Any]
) -> None:
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace="full", workflow_execution_retention_period=Duration(seconds=86_400))
    )
    taken = AddSearchAttributesRequest(namespace="full", search_attributes={"A": INT, "B": INT})
    async with asyncio.timeout(100):
        while True:
            with suppress(RPCError):  # the server learns of a new namespace a moment later
                await client.operator_service.add_search_attributes(taken)
                break
    with pytest.raises(Refused, match="more than 3 search attribute of type Int in namespace full; use a"):
        await setup.run(parse(["setup", "--address", server_address, "--namespace", "full"]), make_terminal())


@pytest.mark.parametrize("status", [RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED])
def test_without_permission_it_says_what_to_ask_for(status: RPCStatusCode) -> None:
    refusal = setup.attributes_error("default", RPCError("no", status, b""))
    assert isinstance(refusal, Refused)
    assert "add these to default: SennitStatus (Keyword), " in str(refusal)
