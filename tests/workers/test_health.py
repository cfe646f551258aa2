"""The probes answer over real HTTP and nobody can hurt them."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from sennit.workers import health
from sennit.workers.health import HealthServer, Readiness
from sennit.workers.settings import ListenAddress

LOCAL = ListenAddress("127.0.0.1", 0)


@pytest.fixture
async def server() -> AsyncIterator[HealthServer]:
    served = HealthServer(Readiness("tools", ("sennit.tools",), "s-1"), metrics=None)
    yield served
    served.close()


async def _get(at: ListenAddress, path: str, method: str = "GET") -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://{at}", trust_env=False) as client:
        return await client.request(method, path)


async def _raw(at: ListenAddress, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(sent)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_readyz_says_why_not_and_then_what_is_served(server: HealthServer) -> None:
    at = await server.start(LOCAL)
    before = await _get(at, "/readyz")
    assert (before.status_code, before.json()["reason"]) == (503, "starting")
    server.readiness.reason = None
    ready = await _get(at, "/readyz?verbose")
    assert ready.status_code == 200
    assert ready.json() == {"ready": True, "role": "tools", "queues": ["sennit.tools"], "store": "s-1"}
    server.readiness.reason = 'no "server"\n'
    after = await _get(at, "/readyz")
    assert (after.status_code, after.json()["reason"]) == (503, 'no "server"\n')


async def test_metrics_are_passed_on_from_the_sdks_own_port(server: HealthServer) -> None:
    async def prometheus(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"temporal_x 1\n" * 100_000)
        await writer.drain()
        writer.close()

    source = await asyncio.start_server(prometheus, "127.0.0.1", 0)
    async with source:
        server.metrics = ListenAddress("0.0.0.0", source.sockets[0].getsockname()[1])
        reply = await _get(await server.start(LOCAL), "/metrics")
    assert (reply.status_code, len(reply.content)) == (200, 1_300_000)
    assert reply.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("metrics", "status", "expected"),
    [(None, 404, "SENNIT_METRICS_PORT"), (ListenAddress("127.0.0.1", 1), 502, "127.0.0.1:1")],
)
async def test_metrics_that_are_not_there_are_named(
    server: HealthServer, metrics: ListenAddress | None, status: int, expected: str
) -> None:
    server.metrics = metrics
    reply = await _get(await server.start(LOCAL), "/metrics")
    assert reply.status_code == status
    assert expected in reply.text


async def test_livez_answers_and_other_paths_and_methods_are_refused(server: HealthServer) -> None:
    at = await server.start(LOCAL)
    assert (await _get(at, "/livez")).text == "alive\n"
    assert (await _get(at, "/livez", "HEAD")).content == b""
    assert (await _get(at, "/", "GET")).status_code == 404
    assert (await _get(at, "/livez", "DELETE")).status_code == 405


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/2\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\n\r\n",
    ],
)
async def test_a_malformed_request_costs_only_its_own_connection(server: HealthServer, sent: bytes) -> None:
    at = await server.start(LOCAL)
    answer = await _raw(at, sent)
    assert answer[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 404")
    assert (await _get(at, "/livez")).status_code == 200


async def test_a_caller_that_sends_nothing_is_cut_off(server: HealthServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_REQUEST_SECONDS", 0.05)
    assert await _raw(await server.start(LOCAL), b"GET /livez HT") == b""


async def test_more_callers_than_places_are_turned_away_and_the_others_served(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_MOST_CLIENTS", 2)
    at = await server.start(LOCAL)
    idle = [await asyncio.open_connection(at.host, at.port) for _ in range(2)]
    assert await _raw(at, b"GET /livez HTTP/1.1\r\n\r\n") == b""
    reader, writer = idle[0]
    writer.write(b"GET /livez HTTP/1.1\r\n\r\n")
    assert (await reader.read()).endswith(b"alive\n")
    for _, each in idle:
        each.close()
