"""An HTTP client for the SDKs of others: it asks one origin, at admitted addresses alone,
and bounds what it reads.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import httpx

from sennit.activities.http.addresses import Destination, admit
from sennit.activities.http.client import (
    CONNECT_SECONDS,
    HttpError,
    certificates,
    http_error,
    retry_after,
)
from sennit.activities.http.cookies import no_cookies
from sennit.activities.http.headers_command import HeadersCommand
from sennit.activities.http.turns import Turns
from sennit.activities.limits import MAX_SAID_CHARACTERS, MAX_SERVER_MESSAGE_BYTES
from sennit.activities.toolbox.errors import AddressRefused, HttpStatusError
from sennit.activities.toolbox.redaction import redact

_EVENTS: Final = "text/event-stream"
_ENDS_OF_EVENTS: Final = (b"\n\n", b"\r\n\r\n")
_RETRYABLE: Final = (408, 425, 429)


def pinned_client(
    url: str, headers: Mapping[str, str], printed: HeadersCommand | None, *, silence: float
) -> httpx.AsyncClient:
    """Return a client for the origin of a URL that an operator has declared, for one call.
    Redirects are answers, and no cookie is kept.

    A request raises AddressRefused and CommandFailed before anything was sent, HttpStatusError for
    an answer from 300 on, and HttpError if no whole answer comes; a stream raises HttpError too if
    it is silent for that many seconds.
    """
    return httpx.AsyncClient(
        headers={"user-agent": "sennit", "accept-encoding": "identity", **headers},
        transport=_PinnedTransport(httpx.URL(url), printed),
        cookies=no_cookies(),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(silence, connect=CONNECT_SECONDS),
    )


def has_origin(url: str, declared: str) -> bool:
    """Whether a URL, which somebody else may have written, has the scheme, the host and the
    port of a declared one.
    """
    try:
        return _origin(httpx.URL(url)) == _origin(httpx.URL(declared))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return False


class _PinnedTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address that was admitted for it, for a
    certificate of the URL's host.
    """

    def __init__(self, declared: httpx.URL, printed: HeadersCommand | None) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=certificates(), trust_env=False)
        self._declared = declared
        self._printed = printed

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # A server may name any URL as its own, and credentials are for the declared one.
        if _origin(request.url) != _origin(self._declared):
            elsewhere, here = _shown(request.url), _shown(self._declared)
            raise AddressRefused(
                f"it sends to {elsewhere}, and {here} is declared; declare the URL that it "
                "answers at"
            )
        place = await admit(str(request.url), declared=True)

        used = await self._printed.current() if self._printed is not None else None
        request.headers.update(used or {})
        response = await self._sent(request, place)
        if (
            response.status_code == httpx.codes.UNAUTHORIZED
            and self._printed is not None
            and used is not None
        ):
            # The server has done nothing, so the request may go out once more.
            await response.aclose()
            request.headers.update(await self._printed.renewed(used))
            response = await self._sent(request, place)

        if response.status_code >= httpx.codes.MULTIPLE_CHOICES:
            raise await _status_error(response, place)
        return _bounded(response)

    async def _sent(self, request: httpx.Request, place: Destination) -> httpx.Response:
        """Ask the admitted addresses, one after the other until one takes the
        connection. Raises HttpError.
        """
        *others, last = place.addresses
        for address in others:
            try:
                return await self._inner.handle_async_request(_pinned(request, place, address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        try:
            return await self._inner.handle_async_request(_pinned(request, place, last))
        except httpx.ReadTimeout:
            raise HttpError("timeout", "no answer in time") from None
        except httpx.TransportError as error:
            raise http_error(error) from None


def _pinned(request: httpx.Request, place: Destination, address: str) -> httpx.Request:
    """Return the request to an address. The URL's host stays in the Host header and in
    the certificate's check.
    """
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": place.host},
    )


async def _status_error(response: httpx.Response, place: Destination) -> HttpStatusError:
    """Return the error that an answer is, with the beginning of what it says."""
    status = response.status_code
    said = ""
    try:
        async for piece in _Bounded(response.stream, is_events=False):
            said += piece.decode("utf-8", "replace")
            if len(said) > MAX_SAID_CHARACTERS:
                break
    except HttpError:
        said = ""
    await response.aclose()
    retryable = status in _RETRYABLE or status >= httpx.codes.INTERNAL_SERVER_ERROR
    message = f"{status} {response.reason_phrase} from {place.host}"
    if said:
        message = f"{message}: {redact(said)[:MAX_SAID_CHARACTERS]}"
    return HttpStatusError(
        message,
        status=status,
        retryable=retryable,
        retry_after=retry_after(response.headers) if retryable else None,
    )


def _bounded(response: httpx.Response) -> httpx.Response:
    """Return an answer that can be read in bounded memory. Raises HttpError
    for one that is packed.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HttpError("encoding", "it answers compressed, which it was not asked to")
    is_events = response.headers.get("content-type", "").lower().startswith(_EVENTS)
    return httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=_Bounded(response.stream, is_events=is_events),
        extensions=response.extensions,
    )


class _Bounded(httpx.AsyncByteStream):
    """The bytes of an answer: 16 MiB, or as many in each event of a stream. Other calls
    have their turn meanwhile.
    """

    def __init__(
        self, inner: httpx.SyncByteStream | httpx.AsyncByteStream, *, is_events: bool
    ) -> None:
        assert isinstance(inner, httpx.AsyncByteStream)
        self._inner = inner
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises HttpError."""
        turns, received, tail = Turns(), 0, b""
        try:
            async for piece in self._inner:
                await turns.give_way()
                received += len(piece)
                if received > MAX_SERVER_MESSAGE_BYTES:
                    raise HttpError(
                        "size", f"its answer has over {MAX_SERVER_MESSAGE_BYTES:,} bytes"
                    )
                if self._is_events:
                    # The end of an event may be divided between two pieces.
                    seen = tail + piece
                    begun = _bytes_of_next_event(seen)
                    if begun is not None:
                        received = begun
                    tail = seen[-3:]
                yield piece
        except httpx.ReadTimeout:
            raise HttpError("timeout", "it has fallen silent") from None
        except httpx.TransportError as error:
            raise http_error(error) from None

    async def aclose(self) -> None:
        await self._inner.aclose()


def _bytes_of_next_event(seen: bytes) -> int | None:
    """Return how many bytes come after the last end of an event, None if no event has ended."""
    ends = [seen.rfind(end) + len(end) for end in _ENDS_OF_EVENTS if end in seen]
    if not ends:
        return None
    return len(seen) - max(ends)


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    default = 443 if url.scheme == "https" else 80
    return url.scheme, url.host.lower(), url.port or default


def _shown(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')[:100]}"
