"""A worker waits for its server as long as it takes, and says why."""

import asyncio
from typing import Any, cast

import pytest
from temporalio.client import Client

from workers import connection
from workers.connection import connect_patiently, server_address, short_cause
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


async def _silent(*, identity: str) -> Client:
    await asyncio.Event().wait()
    return CLIENT


@pytest.mark.parametrize(("server", "cause"), [(Server(9), "Connection refused"), (_silent, "no answer within 0 s")])
async def test_a_server_is_waited_for_and_each_reason_told(
    monkeypatch: pytest.MonkeyPatch, server: Any, cause: str
) -> None:
    monkeypatch.setattr(connection, "_ATTEMPT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "connect", server)
    reasons: list[str] = []

    def report(reason: str) -> None:
        reasons.append(reason)
        if len(reasons) == 3:
            monkeypatch.setattr(connection, "connect", Server(0))

    assert await connect_patiently("here:1", "me", report) is CLIENT
    assert reasons == [f"no Temporal server at here:1: {cause}; is TEMPORAL_ADDRESS right?"] * 3


async def test_an_address_no_server_can_have_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(refusals=9, error=ValueError("invalid target URL: invalid IPv6 address"))
    monkeypatch.setattr(connection, "connect", server)
    with pytest.raises(WrongSetting, match=r"'\[::1:bad' cannot be used: invalid target URL"):
        await connect_patiently("[::1:bad", "me", print)
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
    monkeypatch.delenv("TEMPORAL_PROFILE")
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(tmp_path / "tls.crt"))
    with pytest.raises(WrongSetting, match=r"No such file or directory: '.*tls\.crt'"):
        server_address()


def test_the_short_cause_a_nested_error_is_its_innermost_message() -> None:
    missing = RuntimeError('Worker validation failed: Status { code: NotFound, message: "Namespace x is not found." }')
    assert short_cause(missing) == "Namespace x is not found."
    assert short_cause(ValueError("plain")) == "ValueError: plain"
