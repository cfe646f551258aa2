"""`http_get`: the text behind a public URL."""

import asyncio
import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.http.download import Download, download
from sennit.activities.limits import MAX_URL_CHARACTERS
from sennit.activities.toolbox.errors import ContentRefused, FetchFailed
from sennit.activities.toolbox.files.encodings import NotText, codec_of, decoded
from sennit.activities.toolbox.files.markup import html_to_text
from sennit.activities.toolbox.registry import tool

_TEXT_TYPE: Final = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson|ld\+json|toml)"
    r"|image/svg\+xml"
)
_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


class HttpGetArguments(BaseModel):
    """What to fetch and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[
        str, Field(min_length=1, max_length=MAX_URL_CHARACTERS, description="http or https, public")
    ]
    max_bytes: Annotated[int, Field(ge=1, le=4_000_000, description="Of the decoded body")] = (
        1_000_000
    )
    timeout_s: Annotated[
        float, Field(ge=0.1, le=60, allow_inf_nan=False, description="For everything")
    ] = 20


class WebPage(BaseModel):
    """The answer as text; HTML is turned into plain text, everything else stays as it came."""

    url: str
    status: int
    content_type: str
    title: str
    text: str
    truncated: bool


@tool(effect="read", timeout="65s")
async def http_get(args: HttpGetArguments) -> WebPage:
    """Fetch a public web page or API by http(s) GET and return its text.

    Private and local addresses are refused, redirects included; no cookies or credentials are sent.
    """
    try:
        async with asyncio.timeout(args.timeout_s):
            answer = await download(args.url, args.max_bytes)
    except TimeoutError:
        raise FetchFailed(
            f"no complete answer within {args.timeout_s:g} s", retryable=True
        ) from None
    return await asyncio.to_thread(_page, answer)


def _page(answer: Download) -> WebPage:
    kind = answer.content_type.partition(";")[0].strip().lower()
    if kind:
        is_text = _TEXT_TYPE.fullmatch(kind) is not None
    else:
        is_text = b"\0" not in answer.body
    if not is_text:
        raise ContentRefused(f"the answer is {kind or 'binary'}, which is not text")
    text = _decode(answer, kind)
    title = ""
    is_html = kind in _HTML_TYPES
    if not kind:
        is_html = text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))
    if is_html:
        title, text = html_to_text(text)
    return WebPage(
        url=answer.url,
        status=answer.status,
        content_type=answer.content_type[:200],
        title=title[:300],
        text=text,
        truncated=answer.truncated,
    )


def _decode(answer: Download, kind: str) -> str:
    """Return the text by the encoding that the server names, else as that
    of a file; never fails.
    """
    named = _CHARSET.search(answer.content_type)
    codec = ""
    if named:
        codec = codec_of(named[1])
    if codec:
        return answer.body.decode("utf-8-sig" if codec == "utf-8" else codec, errors="replace")
    try:
        return decoded(answer.body, whole=not answer.truncated, html=kind in _HTML_TYPES)[0]
    except NotText:
        return answer.body.decode(errors="replace")
