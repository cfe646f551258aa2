"""Failed calls to the server."""

import asyncio

import pytest
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import NoAnswer, Refused, SennitError, ServerUnreachable
from sennit.starter.client.server_errors import error_of, retry_outages, unless_stopped


def failure(status: RPCStatusCode) -> RPCError:
    return RPCError("said \x1b[31mso", status, b"")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (RPCStatusCode.NOT_FOUND, Refused),
        (RPCStatusCode.INVALID_ARGUMENT, Refused),
        (RPCStatusCode.DEADLINE_EXCEEDED, NoAnswer),
        (RPCStatusCode.FAILED_PRECONDITION, NoAnswer),
        (RPCStatusCode.PERMISSION_DENIED, ServerUnreachable),
        (RPCStatusCode.UNAUTHENTICATED, ServerUnreachable),
        (RPCStatusCode.UNAVAILABLE, ServerUnreachable),
        (RPCStatusCode.DATA_LOSS, ServerUnreachable),
    ],
)
def test_a_status_means_one_way_to_stop(status: RPCStatusCode, kind: type[SennitError]) -> None:
    stop = error_of(failure(status))
    assert type(stop) is kind
    assert ("said so" in str(stop)) is (status is not RPCStatusCode.DEADLINE_EXCEEDED)


def test_a_run_whose_code_fails_says_where_to_look() -> None:
    stuck = RPCError(
        "Unable to query workflow due to Workflow Task in failed state.", RPCStatusCode.FAILED_PRECONDITION, b""
    )
    assert "its log and the web UI say why" in str(error_of(stuck))


@pytest.mark.parametrize(
    "status", [RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED]
)
async def test_a_server_that_comes_back_is_waited_for(status: RPCStatusCode) -> None:
    """Also if the deadline of a call passed while all processes were stopped."""
    failures = [failure(status)] * 2

    async def call() -> int:
        if failures:
            raise failures.pop()
        return 7

    assert await retry_outages(call) == 7


@pytest.mark.parametrize(
    ("status", "patience", "kind"),
    [(RPCStatusCode.UNAVAILABLE, 0.0, ServerUnreachable), (RPCStatusCode.NOT_FOUND, 30.0, Refused)],
)
async def test_what_does_not_pass_is_not_waited_for(
    status: RPCStatusCode, patience: float, kind: type[SennitError]
) -> None:
    async def call() -> None:
        raise failure(status)

    with pytest.raises(kind):
        await retry_outages(call, patience)


async def test_a_server_that_nobody_runs_any_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that another client has just replaced is."""
    monkeypatch.setattr("sennit.starter.client.server_errors.STOPPED_FOR", 1)
    looks = iter([True, False, True])
    assert await unless_stopped(asyncio.sleep(2.2, "there"), lambda: next(looks)) == "there"
    with pytest.raises(ServerUnreachable, match="was stopped; its runs go on at the next start"):
        await unless_stopped(asyncio.Event().wait(), lambda: True)
