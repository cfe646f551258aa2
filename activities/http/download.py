"""Fetches a URL for a tool: addresses checked, redirects and bytes bounded, and whatever
goes wrong a ToolError.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import httpx

from sennit.activities.http.addresses import Destination, admit
from sennit.activities.http.client import Answer, HttpClient, HttpError, Request, retry_after
from sennit.activities.limits import MAX_REDIRECTS, MAX_SAID_CHARACTERS
from sennit.activities.toolbox.errors import ContentRefused, FetchFailed, HttpStatusError, ToolError
from sennit.activities.toolbox.redaction import redact

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_RETRYABLE: Final = frozenset({408, 425, 429})
_PATIENCE: Final = 2.0  # seconds for the body of an error, of which the status is known
_ACCEPT: Final = "text/html, application/json, text/*;q=0.9, application/xml;q=0.8, */*;q=0.1"


@dataclass(frozen=True, slots=True)
class Download:
    """The answer to the last request; `truncated` when the decoded body was longer than asked for,
    `location` where it points to elsewhere.
    """

    url: str
    status: int
    content_type: str
    body: bytes
    truncated: bool
    location: str = ""


async def download(url: str, max_bytes: int) -> Download:
    """GET `url`, following at most 5 redirects, each checked like the first; no
    credentials are ever sent.

    Raises AddressRefused, HttpStatusError, ContentRefused, or FetchFailed. The
    caller sets the deadline.
    """
    target = url
    for _ in range(MAX_REDIRECTS + 1):
        destination = await admit(target)
        async with _sent(Request("GET", url), destination) as answer:
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                return await _finish(destination, answer, max_bytes)
        target = _join(destination, location)
    raise FetchFailed(f"more than {MAX_REDIRECTS} redirects from {_shown(url)}")


async def exchange(request: Request, max_bytes: int) -> Download:
    """Send one request, to a host that an operator has declared, and return the answer; a redirect
    is an answer, since headers may hold credentials.

    Raises as `download` does. An error that carries `sent` came after the request may
    have reached the server.
    """
    destination = await admit(request.url, declared=True)
    async with _sent(request, destination) as answer:
        return await _finish(destination, answer, max_bytes, below=400)


@asynccontextmanager
async def _sent(request: Request, destination: Destination) -> AsyncIterator[Answer]:
    """Send a request to the checked addresses. The client lives for one request, so that no cookie
    and no connection is carried to the next; proxies of the environment, which would choose an
    address of their own, are not used.
    """
    client = HttpClient({}, proxies=False)
    headers = {"Accept": _ACCEPT, **request.headers, "Accept-Encoding": "gzip"}
    try:
        async with client.send(
            replace(request, headers=headers, destination=destination)
        ) as answer:
            yield answer
    except HttpError as error:
        raise _tool_error(destination.host, error) from None
    finally:
        await client.close()


def _tool_error(host: str, error: HttpError) -> ToolError:
    if error.cause == "encoding":
        return ContentRefused(str(error))
    may_pass = error.cause not in ("certificate", "proxy")
    return FetchFailed(f"{host}: {error}", retryable=may_pass, sent=error.sent)


async def _finish(
    destination: Destination, answer: Answer, max_bytes: int, below: int = 300
) -> Download:
    if not 200 <= answer.status < below:
        retryable = answer.status in _RETRYABLE or answer.status >= 500
        message = f"{answer.status} {answer.reason} from {_shown(str(destination.url))}"
        wait = retry_after(answer.headers) if retryable else None
        if said := await _said(answer):
            message = f"{message}: {said}"
        raise HttpStatusError(message, status=answer.status, retryable=retryable, retry_after=wait)
    body = await answer.read(most=max_bytes + 1)
    return Download(
        url=str(destination.url),
        status=answer.status,
        content_type=answer.headers.get("content-type", ""),
        body=body[:max_bytes],
        truncated=len(body) > max_bytes,
        location=answer.headers.get("location", ""),
    )


async def _said(answer: Answer) -> str:
    """Return the beginning of the body of an error, without secrets; nothing of what is no
    text, or does not come.
    """
    try:
        body = await answer.read(
            asyncio.get_running_loop().time() + _PATIENCE, 4 * MAX_SAID_CHARACTERS
        )
    except HttpError:
        return ""
    if b"\0" in body:
        return ""
    return redact(body.decode("utf-8", "ignore"))[:MAX_SAID_CHARACTERS].strip()


def _join(destination: Destination, location: str) -> str:
    try:
        return str(destination.url.join(location))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise FetchFailed(f"{destination.host} redirects to what is no URL") from None


def _shown(url: str) -> str:
    """The URL without its query, which may hold a secret."""
    return url.partition("?")[0][:200]
