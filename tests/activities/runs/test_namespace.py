"""Which search attributes a worker finds: asked of a real server, once a minute, and never at a run's expense."""

from collections.abc import Mapping
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.runs.namespace import NamespaceAttributes, usable
from sennit.workflows.run.search_attributes import KEYS


async def test_they_are_found_and_remembered(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    visibility = NamespaceAttributes()
    assert await visibility.attributes(client) == tuple(KEYS)
    monkeypatch.setattr(type(client), "operator_service", None)
    assert await visibility.attributes(client) == tuple(KEYS)


async def test_a_server_that_does_not_say_leaves_a_run_without(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise RPCError("no", RPCStatusCode.PERMISSION_DENIED, b"")

    with monkeypatch.context() as patch:
        patch.setattr(client.operator_service, "list_search_attributes", refused)
        visibility = NamespaceAttributes()
        assert await visibility.attributes(client) == ()
    assert await visibility.attributes(client) == tuple(KEYS), "a refusal is not remembered"


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({}, ()),
        ({"SennitStatus": 2, "SennitTokens": 2, "Other": 2}, ("SennitStatus",)),
        ({"SennitNodesDone": 3}, ("SennitNodesDone",)),
    ],
)
def test_only_those_of_the_right_type_are_used(there: Mapping[str, int], found: tuple[str, ...]) -> None:
    assert usable(there) == found
