"""A worker waits for its server as long as it takes, and says why."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from doubles.runs import call
from doubles.tls_door import tls_door, write_certificates
from doubles.worker_processes import WorkerProcesses, readiness
from temporalio.client import Client

from sennit.starter.dev.server import DevServer, free_port
from sennit.workers import connection
from sennit.workers.connection import connect_patiently, server_address
from sennit.workers.server_check import ServerCheck
from sennit.workers.settings import WrongSetting
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import cause_of

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
    await asyncio.sleep(0)
    raise TimeoutError


@pytest.mark.parametrize(("server", "cause"), [(Server(9), "Connection refused"), (_silent, "no answer within 10 s")])
async def test_a_server_is_waited_for_and_each_reason_told(
    monkeypatch: pytest.MonkeyPatch, server: Any, cause: str
) -> None:
    monkeypatch.setattr(connection, "connect", server)
    reasons: list[str] = []

    def report(reason: str) -> None:
        reasons.append(reason)
        if len(reasons) == 3:
            monkeypatch.setattr(connection, "connect", Server(0))

    assert await connect_patiently("here:1", "me", report) is CLIENT
    assert reasons == [f"no Temporal server at here:1: {cause}; check TEMPORAL_ADDRESS and TEMPORAL_TLS"] * 3


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


def test_the_cause_of_a_nested_error_is_its_innermost_message() -> None:
    missing = RuntimeError('Worker validation failed: Status { code: NotFound, message: "Namespace x is not found." }')
    assert cause_of(REFUSED) == "Connection refused"
    assert cause_of(missing) == "Namespace x is not found."
    certificate = "(Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) })"
    assert cause_of(RuntimeError(certificate)) == "TLS failed: InvalidCertificate(UnknownIssuer)"
    assert cause_of(ValueError("plain")) == "ValueError: plain"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    write_certificates(folder)
    return folder


@pytest.fixture
async def guarded(dev_server: DevServer, certificates: Path) -> AsyncIterator[str]:
    async with tls_door(dev_server.address, certificates) as address:
        yield address


async def test_the_certificates_of_the_environment_open_a_door_that_is_shut_without(
    guarded: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", guarded)
    reasons: list[str] = []
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connect_patiently(guarded, "me", reasons.append), 2)
    assert reasons
    for name, file in (("CLIENT_CERT", "tls.crt"), ("CLIENT_KEY", "tls.key"), ("SERVER_CA_CERT", "ca.crt")):
        monkeypatch.setenv(f"TEMPORAL_TLS_{name}_PATH", str(certificates / file))
    client = await asyncio.wait_for(connect_patiently(guarded, "me", reasons.append), 30)
    assert await ServerCheck(client, guarded, None).obstacle() is None


async def test_a_worker_goes_on_with_renewed_certificates_without_a_new_start(
    client: Client, dev_server: DevServer, tmp_path: Path
) -> None:
    """The authority is another one as well, so nothing of the old connection can be used any more."""
    tls = tmp_path / "tls"
    tls.mkdir()
    write_certificates(tls)
    health = free_port(0)
    files = {"CLIENT_CERT": "tls.crt", "CLIENT_KEY": "tls.key", "SERVER_CA_CERT": "ca.crt"}
    env = {f"TEMPORAL_TLS_{name}_PATH": str(tls / file) for name, file in files.items()}
    async with tls_door(dev_server.address, tls) as address:
        workers = WorkerProcesses(address, tmp_path / "state", SENNIT_HEALTH_PORT=f"127.0.0.1:{health}", **env)
        (pid,) = workers.start("all")
        try:
            await becomes_ready(health)
            write_certificates(tls)
            port = int(address.rpartition(":")[2])
        except BaseException:
            workers.kill()
            raise
    try:
        async with tls_door(dev_server.address, tls, port):
            given = {"plan": {"nodes": [call("a", args={"value": "renewed"})], "answer": "$a.value"}}
            handle = await client.start_workflow("AgentRun", given, id="agent-renewed", task_queue=queues.WORKFLOW)
            report = await asyncio.wait_for(handle.result(), 100)
            await becomes_ready(health)
            assert workers.running(pid)
    finally:
        workers.kill()
    assert (report["status"], report["answer"]) == ("done", "renewed")


async def becomes_ready(port: int) -> None:
    """Wait until a worker says that it can serve."""
    async with asyncio.timeout(100):
        while not (await asyncio.to_thread(readiness, port))["ready"]:
            await asyncio.sleep(0.2)
