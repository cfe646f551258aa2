import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from sennit.activities.http import addresses, client
from sennit.activities.toolbox import load_tools
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import AddressRefused, ContentRefused, FetchFailed, HttpStatusError
from sennit.activities.toolbox.http.http_get import HttpGetArguments, WebPage, http_get

if TYPE_CHECKING:
    from .conftest import Request, Web
else:
    Request = Web = Any


async def fetch(url: str, **options: Any) -> WebPage:
    return await http_get(HttpGetArguments(url=url, **options))


async def test_a_page_becomes_title_and_text(web: Web, context: ToolContext) -> None:
    url = web.page("/nile?x=1", b"<title>Nile</title><h1>Nile</h1><p>6,650&nbsp;km", "text/html; charset=utf-8")
    assert await load_tools().get("http_get").call({"url": url + "#part"}, context) == {
        "url": url,
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "title": "Nile",
        "text": "# Nile\n\n6,650 km",
        "truncated": False,
    }


async def test_the_request_carries_no_credentials_and_says_who_asks(web: Web) -> None:
    await fetch(web.page("/", b"x"))
    headers = web.requests[0].headers
    assert headers["host"] == f"127.0.0.1:{web.port}"
    assert headers["user-agent"] == "sennit"
    assert headers["accept-encoding"] == "gzip"
    assert not {"authorization", "cookie", "referer", "proxy-authorization"} & set(headers)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b'{"a": [1]}', "application/json", '{"a": [1]}'),
        (b'{"a": 1}', "application/vnd.api+json; charset=utf-8", '{"a": 1}'),
        (b"<rss>&amp;</rss>", "application/rss+xml", "<rss>&amp;</rss>"),
        (b"a\tb", "text/csv", "a\tb"),
        (b"plain <b>", "TEXT/PLAIN", "plain <b>"),
        (b"caf\xe9", "text/plain; charset=ISO-8859-1", "caf\xe9"),
        (b"caf\xe9", "text/plain; charset=no-such", "caf\xe9"),
        (b"caf\xe9", "text/plain; charset=unicode_escape", "caf\xe9"),
        (b"+AGE-", "text/plain; charset=utf-7", "+AGE-"),
        (b"eJxLBAAAYgBi", "text/plain; charset=base64", "eJxLBAAAYgBi"),
        (b"\xef\xbb\xbfbom", "text/plain", "bom"),
        ("<meta charset=windows-1252><p>\u20ac".encode("cp1252"), "text/html", "\u20ac"),
        (b"<!doctype html><p>no type", "", "no type"),
        (b"no type", "", "no type"),
    ],
)
async def test_text_is_decoded_by_its_declared_charset(web: Web, body: bytes, kind: str, text: str) -> None:
    assert (await fetch(web.page("/", body, kind))).text == text


@pytest.mark.parametrize(
    ("kind", "body"),
    [("image/png", b"\x89PNG"), ("application/octet-stream", b"x"), ("application/pdf", b"%PDF"), ("", b"\0\1")],
)
async def test_what_is_not_text_is_refused(web: Web, kind: str, body: bytes) -> None:
    with pytest.raises(ContentRefused, match="which is not text"):
        await fetch(web.page("/", body, kind))


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        ("400 Bad Request", False), ("401 Unauthorized", False), ("403 Forbidden", False), ("404 Not Found", False),
        ("410 Gone", False), ("408 Request Timeout", True), ("429 Too Many Requests", True),
        ("500 Internal Server Error", True), ("502 Bad Gateway", True), ("503 Service Unavailable", True),
        ("304 Not Modified", False), ("302 Found", False),
    ],
)  # fmt: skip
async def test_an_error_status_is_named_and_says_whether_to_try_again(web: Web, status: str, retryable: bool) -> None:
    url = web.page("/page?key=secret", b"", status=status)
    with pytest.raises(HttpStatusError) as caught:
        await fetch(url)
    assert str(caught.value) == f"{status} from {web.url('/page')}"
    assert (caught.value.status, caught.value.retryable) == (int(status[:3]), retryable)


async def test_a_long_body_is_cut_and_says_so(web: Web) -> None:
    url = web.page("/", b"x" * 100, "text/plain")
    assert (await fetch(url, max_bytes=99)).model_dump()["truncated"]
    assert len((await fetch(url, max_bytes=99)).text) == 99
    assert not (await fetch(url, max_bytes=100)).truncated


async def test_a_gzip_bomb_is_cut_at_the_cap(web: Web) -> None:
    """100 MB of zeros in 100 KB: decompression stops at the cap, so it takes no memory."""
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b"0" * 1_000_000) for _ in range(100)) + packer.flush()
    url = web.page("/", bomb, "text/plain", extra="Content-Encoding: gzip\r\n")
    tracemalloc.start()
    page = await fetch(url, max_bytes=5000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(page.text), page.truncated) == (5000, True)
    assert peak < 8_000_000


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd", "x"])
async def test_other_encodings_are_refused(web: Web, encoding: str) -> None:
    with pytest.raises(ContentRefused, match="only gzip is read"):
        await fetch(web.page("/", b"x", extra=f"Content-Encoding: {encoding}\r\n"))


@pytest.mark.parametrize("status", ["404 Not Found", "503 Service Unavailable"])
async def test_a_refusal_and_a_redirect_count_whatever_their_encoding(web: Web, status: str) -> None:
    br = "Content-Encoding: br\r\n"
    with pytest.raises(HttpStatusError) as refused:
        await fetch(web.page("/", b"x", status=status, extra=br))
    assert refused.value.retryable is (refused.value.status == 503)
    web.page("/to", b"there", "text/plain")
    assert (await fetch(web.page("/", b"x", status="302 Found", extra=f"Location: /to\r\n{br}"))).text == "there"


async def test_false_gzip_is_refused_and_cut_gzip_is_tried_again(web: Web) -> None:
    with pytest.raises(ContentRefused, match="says gzip and is not"):
        await fetch(web.page("/", b"plain", extra="Content-Encoding: gzip\r\n"))
    cut = gzip.compress(bytes(range(256)) * 100)[:-20]
    with pytest.raises(FetchFailed, match="ended early") as caught:
        await fetch(web.page("/", cut, "text/plain", extra="Content-Encoding: gzip\r\n"))
    assert caught.value.retryable


async def test_an_endless_body_ends_at_the_cap(web: Web) -> None:
    async def endless(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    web.answers["/"] = endless
    assert len((await fetch(web.url("/"), max_bytes=50_000)).text) == 50_000


@pytest.mark.parametrize("drip", [b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"])
async def test_a_server_that_drips_is_left_at_the_deadline(web: Web, drip: bytes) -> None:
    async def slow(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(drip)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    web.answers["/"] = slow
    with pytest.raises(FetchFailed, match=r"no complete answer within 0\.3 s") as caught:
        await fetch(web.url("/"), timeout_s=0.3)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"not http\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: text/plain\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\nZZ\r\n",
    ],
    ids=["nothing", "nonsense", "cut", "huge-head", "bad-chunk"],
)  # fmt: skip
async def test_a_broken_answer_is_a_retryable_failure(web: Web, answer: bytes) -> None:
    web.answers["/"] = answer
    with pytest.raises(FetchFailed, match=r"127\.0\.0\.1: ") as caught:
        await fetch(web.url("/"))
    assert caught.value.retryable


async def test_a_closed_port_is_a_retryable_failure(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        monkeypatch.setenv("SENNIT_HTTP_ALLOW", "127.0.0.1")
        with pytest.raises(FetchFailed) as caught:
            await fetch(f"http://127.0.0.1:{port}/")
    assert caught.value.retryable


async def test_redirects_are_followed_and_the_last_url_is_returned(web: Web) -> None:
    web.redirect("/1", "/2?x=y", "301 Moved")
    web.redirect("/2?x=y", f"//127.0.0.1:{web.port}/3", "308 Permanent")
    web.page("/3", b"here", "text/plain")
    page = await fetch(web.url("/1"))
    assert (page.url, page.text) == (web.url("/3"), "here")


async def test_cookies_are_not_carried_to_the_next_request(web: Web) -> None:
    web.redirect("/1", "/2")
    web.page("/2", b"x")
    await fetch(web.url("/1"))
    assert ["cookie" in request.headers for request in web.requests] == [False, False]


async def test_redirects_end_after_five(web: Web) -> None:
    for number in range(7):
        web.redirect(f"/{number}", f"/{number + 1}")
    web.page("/7", b"end")
    assert (await fetch(web.url("/2"))).status == 200
    with pytest.raises(FetchFailed, match="more than 5 redirects"):
        await fetch(web.url("/1"))


async def test_a_redirect_to_a_metadata_service_is_refused(web: Web) -> None:
    with pytest.raises(AddressRefused, match=r"169\.254\.169\.254 is a cloud"):
        await fetch(web.redirect("/", "http://169.254.169.254/latest/meta-data/"))


async def test_the_next_checked_address_is_asked_when_one_does_not_answer(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    monkeypatch.setattr(addresses, "resolve", resolve)
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", "two.example")
    web.page("/", b"x", "text/plain")
    assert (await fetch(f"http://two.example:{web.port}/")).text == "x"
    assert web.requests[0].headers["host"] == f"two.example:{web.port}"


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": ""}, {"url": "http://x/" + "a" * 2048}, {"url": "http://x", "max_bytes": 4_000_001},
        {"url": "http://x", "timeout_s": 61}, {"url": "http://x", "timeout_s": float("nan")},
        {"url": "http://x", "headers": {}},
    ],
)  # fmt: skip
def test_arguments_are_bounded(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HttpGetArguments(**arguments)


@pytest.fixture
async def secure(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of a TLS server whose certificate, trusted here, is for sennit.example only."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=sennit.example"
    names = ["-addext", "subjectAltName=DNS:sennit.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *command.split(), *names], check=True, capture_output=True)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=serving)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "resolve", resolve)
    monkeypatch.setattr(client, "certificates", lambda: ssl.create_default_context(cafile=str(certificate)))
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", "sennit.example,other.example,127.0.0.1")
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_the_certificate_is_checked_against_the_name_and_not_the_address(web: Web, secure: int) -> None:
    web.page("/", b"safe", "text/plain")
    assert (await fetch(f"https://sennit.example:{secure}/")).text == "safe"
    for wrong in ("other.example", "127.0.0.1"):
        with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED") as caught:
            await fetch(f"https://{wrong}:{secure}/")
        assert not caught.value.retryable
