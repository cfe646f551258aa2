"""`sennit quota` on a real server: who goes on and who waits. An old or a missing quota is never taken for one."""

import io
import json
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from doubles.local_workers import serving
from temporalio.client import Client
from temporalio.service import RPCError

from sennit.activities.definitions import Activities
from sennit.activities.runs.quota import QuotaRule, quota_limits
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.client.errors import Exit, NoNamespace
from sennit.starter.commands import quota
from sennit.starter.terminal.console import Output, Terminal
from sennit.workflows.messages.quota import QUOTA_ID, PlaceCall
from sennit.workflows.plan.language.limits import Limits

pytestmark = pytest.mark.timeout(100)
Told = tuple[str, str]


@pytest.fixture
def told(client: Client, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command against the test's server, or another namespace of it; returns both of its streams."""

    async def run(form: Output = "text", namespace: str = "default") -> Told:
        config = client.config()
        config["namespace"] = namespace
        server = local_server(client.service_client.config.target_host, None)

        async def connect(*_: Any) -> Sennit:
            return Sennit(Client(**config), server)

        monkeypatch.setattr(quota, "connect", connect)
        out, err = io.StringIO(), io.StringIO()
        assert await quota.run(Namespace(), Terminal(output=form, out=out, err=err)) is Exit.ANSWER
        return out.getvalue(), err.getvalue()

    return run


async def test_it_shows_who_goes_on_who_waits_and_what_is_reserved(
    client: Client, host: Activities, told: Callable[..., Any]
) -> None:
    rule = QuotaRule(quota_limits("runs=1,tokens_a_day=10000,cost_usd_a_day=5"))
    budget = Limits(tokens=6_000, cost_usd=1.5)
    with suppress(RPCError):
        await client.get_workflow_handle(QUOTA_ID).terminate("that of an earlier test")
    async with serving(client, host):
        assert (await told())[1].startswith("no run has asked for a place")
        for number in (1, 2):
            call = PlaceCall(run=f"run-{number}", first_run=f"first-{number}", budget=budget)
            assert (await rule.take(client, call)).granted == (number == 1)
        out, err = await told()
        rows = json.loads((await told("json"))[0])
    assert [line.split()[:2] for line in out.splitlines()] == [["run-1", "running"], ["run-2", "queued"]]
    assert "6,000 tokens, $1.50" in out
    assert "runs: 1 of 1 go on" in err
    assert "tokens: 0 of 10,000 used today, 6,000 reserved" in err
    assert "cost: $0.00 of $5.00 used today, $1.50 reserved" in err
    assert rows[0] == {"id": "run-1", "status": "running", "tokens": 6_000, "cost_usd": 1.5}

    await client.get_workflow_handle(QUOTA_ID).terminate("the operator has taken the quota away")
    out, err = await told()
    assert (out.strip(), err.startswith("no run has asked for a place")) == ("", True), "it holds nobody any more"


async def test_a_namespace_that_is_missing_is_no_quota_without_runs(told: Callable[..., Any]) -> None:
    with pytest.raises(NoNamespace):
        await told(namespace="nowhere")
