"""A run as its client has it, where the server fails it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client import run as client_run
from sennit.starter.client.errors import ServerUnreachable
from sennit.starter.client.outcome import RunOutcome
from sennit.starter.client.run import Run
from sennit.workflows.messages.result import RunReport, WriteLine


@pytest.mark.parametrize("call", ["describe", "look up"])
async def test_a_server_that_fails_while_writes_are_looked_up_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    async def fails(*_: Any) -> Any:
        raise RPCError("no longer", RPCStatusCode.PERMISSION_DENIED, b"")

    async def last(_: Run[Any]) -> Any:
        return SimpleNamespace(status=WorkflowExecutionStatus.TERMINATED)

    run: Run[Any] = Run(
        cast("Any", SimpleNamespace(get_workflow_handle=lambda *_, **__: None)), "agent-a", "id", fork=cast("Any", None)
    )
    report = RunReport(id="agent-a", run_id="id", status="failed", writes=(WriteLine(node="w", status="unknown"),))
    run._outcome = RunOutcome(report)
    monkeypatch.setattr(Run, "_last", fails if call == "describe" else last)
    monkeypatch.setattr(client_run, "looked_up", fails)
    with pytest.raises(ServerUnreachable, match="the Temporal server does not let us in: no longer"):
        await run.result()


async def test_nobody_listens_to_a_run_that_is_over() -> None:
    """A listener would start a stream, which runs on without it."""

    async def describe() -> Any:
        return SimpleNamespace(status=WorkflowExecutionStatus.COMPLETED)

    async def starts_a_stream(*_: Any, **__: Any) -> Any:
        raise AssertionError("a stream was started")

    handle = SimpleNamespace(describe=describe)
    client = SimpleNamespace(
        get_workflow_handle=lambda *_, **__: handle, execute_update_with_start_workflow=starts_a_stream
    )
    run: Run[Any] = Run(cast("Any", client), "agent-a", "id", fork=cast("Any", None))
    assert [text async for text in run.texts()] == []
