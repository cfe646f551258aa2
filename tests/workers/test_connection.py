"""A worker waits for its server, says so once, and gives up in time."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from temporalio.client import Client

from workers import connection
from workers.connection import Unreachable, connect_patiently, server_address, short_cause
from workers.settings import WrongSetting

CLIENT = cast("Client", object())
REFUSED = RuntimeError(
    'Failed client connect: tonic::transport::Error(Transport, ConnectError(ConnectError("tcp connect error", '
    '127.0.0.1:1, Os { code: 111, kind: ConnectionRefused, message: "Connection refused" })))'
)


class Server:
    """A fake `connect`: refuses a given number of times."""

    def __init__(self, refusals: int, error: Exception = REFUSED) -> None:
        self.left, self.error, self.calls = refusals, error, 0

    async def __call__(self, *, identity: str) -> Client:
        self.calls += 1
        if self.left > 0:
            self.left -= 1
            raise self.error
        return CLIENT


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_PAUSE", 0.001)


def _use(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    monkeypatch.setattr(connection, "connect", server)


async def test_a_server_that_comes_up_later_is_found_with_one_line_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(refusals=4)
    _use(monkeypatch, server)
    with capture_logs() as logs:
        assert await connect_patiently("here:1", "me") is CLIENT
    assert server.calls == 5
    assert [(entry["address"], entry["cause"]) for entry in logs] == [("here:1", "Connection refused")]


async def _silent(*, identity: str) -> Client:
    await asyncio.Event().wait()
    return CLIENT


@pytest.mark.parametrize(
    ("server", "cause"), [(Server(refusals=10_000), "Connection refused"), (_silent, "no answer within 0 s")]
)
async def test_patience_ends_in_one_line_with_address_and_cause(
    monkeypatch: pytest.MonkeyPatch, server: Any, cause: str
) -> None:
    monkeypatch.setattr(connection, "_ATTEMPT_SECONDS", 0.01)
    _use(monkeypatch, server)
    with pytest.raises(Unreachable, match=f"no Temporal server at here:1 after 0 s: {cause}"):
        await connect_patiently("here:1", "me", patience=0.02)


async def test_an_address_no_server_can_have_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(refusals=9, error=ValueError("invalid target URL: invalid IPv6 address"))
    _use(monkeypatch, server)
    with pytest.raises(WrongSetting, match=r"'\[::1:bad' cannot be used: invalid target URL"):
        await connect_patiently("[::1:bad", "me")
    assert server.calls == 1


def test_the_address_is_the_one_the_temporal_command_would_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.delenv("TEMPORAL_ADDRESS", raising=False)
    assert server_address() == "localhost:7233"
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal:7233")
    assert server_address() == "temporal:7233"
    monkeypatch.setenv("TEMPORAL_PROFILE", "nope")
    with pytest.raises(WrongSetting, match="nope"):
        server_address()


def test_the_short_cause_a_nested_error_is_its_innermost_message() -> None:
    missing = RuntimeError('Worker validation failed: Status { code: NotFound, message: "Namespace x is not found." }')
    assert short_cause(missing) == "Namespace x is not found."
    assert short_cause(ValueError("plain")) == "ValueError: plain"
