import asyncio
import os
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from sennit.activities.http import addresses
from sennit.activities.toolbox.errors import AddressRefused, ContentRefused, FetchFailed, HttpStatusError
from sennit.activities.toolbox.http.http_get import HttpGetArguments, http_get

URLS = [
    # other schemes
    "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_GET",
    "dict://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/", "ws://127.0.0.1:{port}/", "data:text/html,hello",
    "javascript:alert(1)", "jar:http://127.0.0.1:{port}/!/", "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "view-source:http://127.0.0.1:{port}/", "//127.0.0.1:{port}/",
    "127.0.0.1:{port}/", "http:127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http://",
    "http://:{port}/", "https://?", "",
    # the loopback, spelled plainly
    "http://127.0.0.1:{port}/", "http://127.0.0.2:{port}/", "http://127.255.255.254:{port}/",
    "http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://localhost.:{port}/",
    "http://localhost.localdomain:{port}/", "http://sub.localhost:{port}/", "http://0.0.0.0:{port}/",
    "http://0:{port}/", "http://[::1]:{port}/", "http://[::]:{port}/", "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://127.0.0.1.:{port}/",
    # the loopback, spelled oddly
    "http://127.1:{port}/", "http://127.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/",
    "http://0x7F.0x0.0x0.0x1:{port}/", "http://0x7f.1:{port}/", "http://0177.0.0.1:{port}/",
    "http://0177.0.0.01:{port}/", "http://017700000001:{port}/", "http://127.0.0.01:{port}/",
    "http://127.0.0.1%2f@example.com:{port}/", "http://127.0.0.1%00.example.com:{port}/", "http://127.0.0.%31:{port}/",
    "http://%6c%6f%63%61%6c%68%6f%73%74:{port}/", "http://4294967295:{port}/", "http://6425673729:{port}/",
    "http://0x17f000001:{port}/", "http://127.0.0.1x:{port}/", "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/", "http://127\u30020\u30020\u30021:{port}/",
    "http://127\uff0e0\uff0e0\uff0e1:{port}/", "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://loc\u00adalhost:{port}/",
    # IPv6 that holds an IPv4 address, zones
    "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[::127.0.0.1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/", "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b:1::127.0.0.1]:{port}/", "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:{port}/", "http://[fe80::5efe:127.0.0.1]:{port}/",
    "http://[2606:4700::5efe:127.0.0.1]:{port}/", "http://[fe80::1%25lo]:{port}/", "http://[fe80::1%lo]:{port}/",
    "http://[::1%25lo]:{port}/", "http://[::1%lo]:{port}/", "http://[::1]x:{port}/", "http://[127.0.0.1]:{port}/",
    "http://[::1:{port}/", "http://::1:{port}/",
    # user names and confused parsers
    "http://user@127.0.0.1:{port}/", "http://user:password@127.0.0.1:{port}/",
    "http://public.example@127.0.0.1:{port}/", "http://public.example:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@public.example/", "http://@127.0.0.1:{port}/", "http://public.example\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@public.example/", "http://public.example#@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@public.example/", "http://127.0.0.1:{port}?@public.example/",
    "http://127.0.0.1 public.example:{port}/", "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\r\nHost: public.example:{port}/", " http://127.0.0.1:{port}/", "http://127.0.0.1:{port}/\x00",
    "ht\ntp://127.0.0.1:{port}/", "http://127.0.0.1:0{port}/", "http://127.0.0.1:99999/", "http://127.0.0.1:-1/",
    "http://127.0.0.1:{port}{port}/",
    # names that lead inside
    "http://loopback.example:{port}/", "http://mapped.example:{port}/", "http://mixed.example:{port}/",
    "http://scoped.example:{port}/", "http://nat64.example:{port}/", "http://private.example/",
    "http://metadata.google.internal/computeMetadata/v1/", "http://127.0.0.1.nip.example:{port}/",
    # metadata services and private networks
    "http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/v2/credentials/",
    "http://[fd00:ec2::254]/latest/meta-data/", "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/machine?comp=goalstate", "http://192.0.0.192/opc/v1/", "http://2852039166/",
    "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://[::ffff:a9fe:a9fe]/", "http://10.0.0.1/",
    "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://[fc00::1]/", "http://[ff02::1]/", "http://" + "a" * 300 + "/", "http://" + "a." * 150 + "example/",
    "http://-/", "http://xn--/", "http://..:{port}/",
]  # fmt: skip

INSIDE = {
    "localhost": ["127.0.0.1", "::1"],
    "localhost.localdomain": ["127.0.0.1"],
    "sub.localhost": ["127.0.0.1"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "loopback.example": ["127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "mixed.example": ["93.184.216.34", "127.0.0.1"],
    "scoped.example": ["fe80::1%lo"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "private.example": ["10.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
}


class Canary:
    """A listener that must stay alone: it counts every connection to it."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Type: text/plain\r\n\r\ncanary"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def canary(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Canary]:
    """The canary on both loopbacks, its port open to tools and many names leading to it."""
    bird = Canary()

    async def resolve(host: str, port: int) -> list[str]:
        if host not in INSIDE:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return INSIDE[host]

    server = await asyncio.start_server(bird.serve, "127.0.0.1", 0)
    bird.port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(addresses, "resolve", resolve)
    monkeypatch.setattr(addresses, "_PORTS", {80, 443, bird.port})
    monkeypatch.delenv("SENNIT_HTTP_ALLOW", raising=False)
    yield bird
    server.close()


async def fetch(url: str) -> str:
    return (await http_get(HttpGetArguments.model_construct(url=url, max_bytes=1000, timeout_s=5.0))).text


async def test_no_url_reaches_what_is_inside(canary: Canary) -> None:
    for url in URLS:
        with pytest.raises((AddressRefused, FetchFailed)) as caught:
            await fetch(url.replace("{port}", str(canary.port)))
        assert canary.connections == 0, url
        assert not caught.value.retryable, url
        assert isinstance(caught.value, AddressRefused) or "cannot be resolved" in str(caught.value), url


def test_the_corpus_is_large() -> None:
    assert len(set(URLS)) >= 120


async def test_the_canary_would_sing(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard the plain URLs do reach it, so silence above means something."""
    monkeypatch.setattr(addresses, "is_blocked", lambda _address: False)
    assert await fetch(f"http://127.0.0.1:{canary.port}/") == "canary"
    assert await fetch(f"http://loopback.example:{canary.port}/") == "canary"
    assert canary.connections == 2


LOCATIONS = [
    "http://127.0.0.1:{port}/", "//localhost:{port}/", "http://2130706433:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "http://169.254.169.254/latest/meta-data/", "http://user:password@loopback.example:{port}/", "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/", "\\\\127.0.0.1:{port}\\", "http://loopback.example:{port}/ x",
]  # fmt: skip


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_no_redirect_reaches_what_is_inside(status: str, canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Canary()
    server = await asyncio.start_server(outside.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", f"127.0.0.1:{port}")
    for number, location in enumerate(LOCATIONS, 1):
        place = location.replace("{port}", str(canary.port))
        outside.answer = f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nLocation: {place}\r\n\r\n".encode()
        with pytest.raises((AddressRefused, FetchFailed, HttpStatusError)):
            await fetch(f"http://127.0.0.1:{port}/")
        assert (outside.connections, canary.connections) == (number, 0), location
    server.close()


async def test_a_name_that_changes_its_answer_after_the_check_changes_nothing(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes to the address that was checked, even if the name now says another."""
    asked: list[str] = []
    dialled: list[tuple[str, str]] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    async def dial(client: object, request: httpx.Request, **_: object) -> None:
        dialled.append((request.extensions["sni_hostname"], request.url.host))
        raise ContentRefused("nothing is sent in this test")

    monkeypatch.setattr(addresses, "resolve", rebinding)
    monkeypatch.setattr(httpx.AsyncClient, "send", dial)
    with pytest.raises(ContentRefused):
        await fetch(f"http://rebind.example:{canary.port}/")
    assert asked == ["rebind.example"]
    assert dialled == [("rebind.example", "93.184.216.34")]
    assert canary.connections == 0


async def test_proxies_of_the_environment_are_not_used(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Canary()
    server = await asyncio.start_server(outside.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", f"127.0.0.1:{port}")
    assert await fetch(f"http://127.0.0.1:{port}/") == "canary"
    server.close()
    assert (outside.connections, canary.connections) == (1, 0)
    assert os.environ["http_proxy"]
