"""Fetches a URL with everything bounded: where, how long, how many bytes, how many redirects."""

import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import httpx

from activities.http.addresses import Destination, admit
from activities.providers.errors import wait_of
from activities.toolbox.errors import ContentRefused, FetchFailed, HttpStatusError

MOST_REDIRECTS: Final = 5

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_RETRYABLE: Final = frozenset({408, 425, 429})
_CONNECT_SECONDS: Final = 10.0
_CHUNK: Final = 16_384


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent besides the URL."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """The answer to the last request; `truncated` when the decoded body was longer than asked for, `location` where
    it points to elsewhere."""

    url: str
    status: int
    content_type: str
    body: bytes
    truncated: bool
    location: str = ""


async def download(url: str, max_bytes: int) -> Download:
    """GET `url`, following at most 5 redirects, each checked like the first; no credentials are ever sent.

    Raises AddressRefused, HttpStatusError, ContentRefused, or FetchFailed. The caller sets the deadline.
    """
    target = url
    for _ in range(MOST_REDIRECTS + 1):
        destination = await admit(target)
        async with _answer(destination) as response:
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or location is None:
                return await _finish(destination, response, max_bytes)
        target = _join(destination, location)
    raise FetchFailed(f"more than {MOST_REDIRECTS} redirects from {_shown(url)}")


async def exchange(url: str, sending: Sending, max_bytes: int) -> Download:
    """Send one request to `url`, whose host an operator has declared, and return the answer; a redirect is an answer,
    since headers may hold credentials.

    Raises as `download` does. An error that carries `sent` came after the request may have reached the server.
    """
    destination = await admit(url, declared=True)
    async with _answer(destination, sending) as response:
        return await _finish(destination, response, max_bytes, below=400)


@asynccontextmanager
async def _answer(destination: Destination, sending: Sending = Sending()) -> AsyncIterator[httpx.Response]:
    """Ask the checked addresses in turn until one takes the connection; a client lives for one request, so no
    cookie and no connection is carried to the next."""
    try:
        async with httpx.AsyncClient(
            verify=_certificates(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        ) as client:
            response = await _send(client, destination, sending)
            try:
                yield response
            finally:
                await response.aclose()
    except httpx.TransportError as error:
        sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        late = isinstance(error, httpx.TimeoutException)
        broken = "CERTIFICATE_VERIFY_FAILED" in str(error)
        message = " did not answer in time" if late else f": {str(error) or type(error).__name__}"
        raise FetchFailed(f"{destination.host}{message}", retryable=not broken, sent=sent) from None


async def _send(client: httpx.AsyncClient, destination: Destination, sending: Sending) -> httpx.Response:
    *others, last = destination.addresses
    for address in others:
        try:
            return await client.send(_request(client, destination, address, sending), stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await client.send(_request(client, destination, last, sending), stream=True)


def _request(client: httpx.AsyncClient, destination: Destination, address: str, sending: Sending) -> httpx.Request:
    """Ask `address` for what the URL names: its host stays in the Host header and in the certificate's check."""
    return client.build_request(
        sending.method,
        destination.url.copy_with(host=address),
        headers={
            "Host": destination.url.netloc.decode("ascii"),
            "User-Agent": "sennit",
            "Accept": "text/html, application/json, text/*;q=0.9, application/xml;q=0.8, */*;q=0.1",
            **sending.headers,
            "Accept-Encoding": "gzip",
        },
        content=sending.body,
        extensions={"sni_hostname": destination.host},
    )


async def _finish(destination: Destination, response: httpx.Response, max_bytes: int, below: int = 300) -> Download:
    status = response.status_code
    if not 200 <= status < below:
        retryable = status in _RETRYABLE or status >= 500
        message = f"{status} {response.reason_phrase} from {_shown(str(destination.url))}"
        wait = wait_of(response.headers) if retryable else None
        raise HttpStatusError(message, status=status, retryable=retryable, retry_after=wait)
    body = await _read_body(response, max_bytes + 1)
    return Download(
        url=str(destination.url),
        status=status,
        content_type=response.headers.get("content-type", ""),
        body=body[:max_bytes],
        truncated=len(body) > max_bytes,
        location=response.headers.get("location", ""),
    )


async def _read_body(response: httpx.Response, most: int) -> bytes:
    """Return at most `most` bytes of the decoded body; decompression stops there whatever the ratio."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ContentRefused(f"the answer is encoded as {encoding[:40]!r}; only gzip is read")
    unzip = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
    body = bytearray()
    async for raw in response.aiter_raw(_CHUNK):
        try:
            body += unzip.decompress(raw, most - len(body)) if unzip else raw
        except zlib.error:
            raise ContentRefused("the answer says gzip and is not") from None
        if len(body) >= most:
            return bytes(body[:most])
    if unzip and body and not unzip.eof:
        raise FetchFailed("the compressed answer ended early", retryable=True, sent=True)
    return bytes(body)


def _join(destination: Destination, location: str) -> str:
    try:
        return str(destination.url.join(location))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise FetchFailed(f"{destination.host} redirects to what is no URL") from None


def _shown(url: str) -> str:
    """The URL without its query, which may hold a secret."""
    return url.partition("?")[0][:200]


@cache
def _certificates() -> ssl.SSLContext:
    """Load the trusted certificates once; SSL_CERT_FILE and SSL_CERT_DIR are honoured."""
    return httpx.create_ssl_context()
