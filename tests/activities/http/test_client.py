"""The HTTP client: what of an answer is read, how far, and what each failure is called."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sennit.activities.http.client import HttpClient, HttpError, Request, retry_after
from sennit.activities.limits import MAX_WAIT_SECONDS

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": at(20)}, 20),
        ({"retry-after": at(-300)}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "1000000000"}, MAX_WAIT_SECONDS),
        ({"retry-after": "inf"}, MAX_WAIT_SECONDS),
        ({"retry-after": at(10**8)}, MAX_WAIT_SECONDS),
        ({"retry-after-ms": "1e300"}, MAX_WAIT_SECONDS),
    ],
)
def test_every_form_of_a_wait_is_read_and_capped(
    headers: dict[str, str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.http.client.time.time", NOW.timestamp)
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("text", ["", "soon", "nan", "Wed, 99 Foo 2026", "\x00", "Mon, 01 Jan 99999 00:00:00 GMT"])
def test_a_wait_that_makes_no_sense_is_none(text: str) -> None:
    assert retry_after({"retry-after": text}) is None


def head(length: int, encoding: str = "") -> bytes:
    line = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    return f"HTTP/1.1 200 OK\r\n{line}Content-Length: {length}\r\n\r\n".encode()


SHORT = gzip.compress(b"word " * 100, mtime=0)[:-8]
NOTHING = gzip.compress(b"", mtime=0)
PACKED = gzip.compress(b"word " * 100_000, mtime=0)


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    """A client that is closed at the end."""
    found = HttpClient({}, proxies=False, connect=2.0)
    yield found
    await found.close()


async def read(client: HttpClient, answer: bytes, limit: int = 1_000, most: int | None = None) -> bytes:
    """Return what the client reads of an answer within a second; the server says no more and keeps the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if answer.endswith(b"CUT"):
            writer.close()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    request = Request("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    ends = asyncio.get_running_loop().time() + 1
    try:
        async with client.send(request, limit=limit, deadline=ends) as found:
            return await found.read(ends, most)
    finally:
        await client.close()
        server.close()


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"", "timeout"),
        (head(9) + b"four", "timeout"),
        (head(9) + b"CUT", "cut"),
        (head(2_000) + b"x" * 2_000, "size"),
        (head(len(PACKED), "gzip") + PACKED, "size"),
        (head(4, "gzip") + b"four", "encoding"),
        (head(4, "br") + b"four", "encoding"),
        (head(len(SHORT), "gzip") + SHORT, "cut"),
        (head(20 + len(SHORT), "gzip") + NOTHING + SHORT, "cut"),
        (head(20 + len(PACKED), "gzip") + NOTHING + PACKED, "size"),
        (head(40_000, "gzip") + NOTHING * 2_000, "encoding"),
        (head(600_000, "gzip") + NOTHING[:10] + b"\0\0\0\xff\xff" * 118_000, "size"),
    ],
)
async def test_each_failure_has_its_cause(client: HttpClient, answer: bytes, cause: str) -> None:
    with pytest.raises(HttpError) as caught:
        await read(client, answer)
    assert (caught.value.cause, caught.value.sent) == (cause, True)


@pytest.mark.parametrize("behind", [b"", b"\0" * 9, b"garbage", NOTHING, NOTHING + b"\0garbage"])
async def test_all_members_of_gzip_are_read(client: HttpClient, behind: bytes) -> None:
    body = gzip.compress(b"one ", mtime=0) + NOTHING + gzip.compress(b"two", mtime=0) + behind
    assert await read(client, head(len(body), "gzip") + body) == b"one two"


async def test_where_nobody_listens_nothing_was_sent(client: HttpClient, unused_tcp_port: int) -> None:
    with pytest.raises(HttpError) as caught:
        async with client.send(Request("GET", f"http://127.0.0.1:{unused_tcp_port}/")):
            pass
    assert (caught.value.cause, caught.value.sent) == ("unreachable", False)


@pytest.mark.parametrize("answer", [head(2_000) + b"word " * 400, head(len(PACKED), "gzip") + PACKED])
async def test_a_beginning_is_read_however_long_the_rest_is(client: HttpClient, answer: bytes) -> None:
    assert await read(client, answer, most=7) == b"word wo"


async def test_no_cookie_is_kept(client: HttpClient) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: who=me; Path=/\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(2):
            async with client.send(Request("GET", url)) as answer:
                await answer.read()
    assert len(heads) == 2
    assert not [head for head in heads if b"cookie" in head.lower()]


class Counter:
    """A server that keeps its connections, and counts them."""

    def __init__(self) -> None:
        self.connections = 0
        self.open = 0
        self.waiting = 0
        self.gate = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.waiting += 1
                await self.gate.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except asyncio.IncompleteReadError:
            writer.close()
            self.open -= 1


async def send_at_once(client: HttpClient, url: str, count: int, counter: Counter) -> None:
    """Send requests that are all under way before the first is answered."""
    counter.waiting = 0
    counter.gate.clear()

    async def send() -> bytes:
        async with client.send(Request("GET", url)) as answer:
            return await answer.read()

    sent = [asyncio.ensure_future(send()) for _ in range(count)]
    async with asyncio.timeout(20):
        while counter.waiting < count:
            await asyncio.sleep(0.01)
        counter.gate.set()
        assert await asyncio.gather(*sent) == [b"ok"] * count


async def test_many_requests_at_once_use_their_connections_again(client: HttpClient) -> None:
    """Also where there are more of them than one pool of httpx keeps."""
    counter = Counter()
    async with await asyncio.start_server(counter.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(3):
            await send_at_once(client, url, 60, counter)
        await client.close()
    assert counter.connections == 60


async def test_what_many_requests_have_opened_is_closed_when_they_are_over(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.activities.http.pools.KEPT_SECONDS", 0.05)
    counter = Counter()
    async with await asyncio.start_server(counter.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await send_at_once(client, url, 60, counter)
        async with asyncio.timeout(20):
            while counter.open:
                await asyncio.sleep(0.01)
        # What comes later opens connections anew.
        await send_at_once(client, url, 20, counter)
        assert counter.connections == 80
        await client.close()
