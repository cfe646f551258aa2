"""Search attributes: created where they are missing, on a real server."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client

from starter.arguments import parse
from starter.commands import setup
from starter.dev.server import SEARCH_ATTRIBUTES
from starter.exits import Refused


def test_an_attribute_of_another_type_is_named() -> None:
    assert setup.mistyped({"WeftStatus": 2, "WeftTokens": 99}) == ["WeftTokens should be Double"]


def test_what_was_done_is_told() -> None:
    assert setup.told("agents", {"WeftTokens": "Double"}).splitlines()[0] == "created in agents: WeftTokens (Double)"
    assert setup.told("agents", SEARCH_ATTRIBUTES).count("\n") == 0
    assert setup.told("agents", {}).startswith("already in agents: WeftStatus, ")


@pytest.mark.server
@pytest.mark.timeout(60)
async def test_what_is_missing_is_created_once(
    server_address: str, client: Client, make_terminal: Callable[..., Any]
) -> None:
    from google.protobuf.duration_pb2 import Duration

    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace="agents", workflow_execution_retention_period=Duration(seconds=86_400))
    )
    args = parse(["setup", "--address", server_address, "--namespace", "agents", "--output", "json"])
    created: list[list[str]] = []
    while len(created) < 2:
        terminal = make_terminal("json")
        with suppress(Refused):  # the server learns of a new namespace a moment later
            await setup.run(args, terminal)
            created.append(json.loads(terminal.out.getvalue())["created"])
    assert created == [list(SEARCH_ATTRIBUTES), []]
