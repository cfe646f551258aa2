"""Logins at MCP servers by OAuth: a person logs in once in a browser, and workers of the
same user go on with that.

The SDK does the protocol. A login is a file that only its owner reads. It holds for the URL that it
was made for, so that no other server is ever given its tokens.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from filelock import FileLock
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel, ValidationError

from sennit.activities.http.cookies import no_cookies
from sennit.activities.toolbox.errors import ToolSetupError
from sennit.activities.toolbox.mcp.http_transport import AdmittedTransport

_SECONDS_FOR_A_PERSON: Final = 300.0
_EARLY_SECONDS: Final = 60.0
"""So long before its end a token is renewed: it is kept for a while by those who ask."""
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "sennit", "version": "1"},
    },
}
_THANKS: Final = "You are logged in. You can close this page, and go back to the terminal."
_SORRY: Final = "The login was refused. Go back to the terminal."


class Login(BaseModel):
    """What a login has given, and what is needed to renew it. `ends` is when its access token does,
    None if nobody says so.
    """

    url: str
    tokens: OAuthToken
    client: OAuthClientInformationFull | None = None
    ends: float | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None

    @property
    def is_fresh(self) -> bool:
        return self.ends is None or time.time() < self.ends - _EARLY_SECONDS


def login_file(folder: Path, server: str) -> Path:
    """Return where the login of a server is kept."""
    return folder / f"{server}.json"


class _File(TokenStorage):
    """The file of one login, as the SDK stores into it: it is whole at every moment, also if
    the process dies. A token that takes the place of another is written before anything else
    is asked of the server.
    """

    def __init__(self, path: Path, url: str, login: Login | None) -> None:
        self._path = path
        self._url = url
        self._login = login
        self._client = login.client if login is not None else None
        self.context: OAuthContext | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._login.tokens if self._login is not None else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.context is not None
        self._login = Login(
            url=self._url,
            tokens=tokens,
            client=self._client,
            ends=time.time() + tokens.expires_in if tokens.expires_in else None,
            metadata=self.context.oauth_metadata,
            resource=self.context.protected_resource_metadata,
        )
        _write(self._path, self._login.model_dump_json())

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _write(path: Path, text: str) -> None:
    """Replace a file that only its owner reads."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with open(part, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
    part.replace(path)


def read_login(path: Path, url: str) -> Login:
    """Return the login at a server. Raises ToolSetupError if there is none for this URL."""
    try:
        login = Login.model_validate_json(path.read_text())
    except FileNotFoundError:
        raise ToolSetupError("nobody is logged in there") from None
    except (OSError, ValidationError):
        raise ToolSetupError(f"the login in {path} cannot be read") from None
    if login.url != url:
        raise ToolSetupError("the login was made for another URL")
    return login


async def log_in(path: Path, url: str, show: Callable[[str], None]) -> None:
    """Have a person log in at a server, and keep what that gives. `show` gets the address to open
    in a browser. Raises ToolSetupError if the server wants no login, or does not let the person
    in within five minutes.
    """
    async with _redirects() as (address, answered):
        metadata = OAuthClientMetadata.model_validate(
            {"redirect_uris": [address], "client_name": "Sennit"}
        )

        async def open_page(page: str) -> None:
            show(page)

        async def answer() -> AuthorizationCodeResult:
            async with asyncio.timeout(_SECONDS_FOR_A_PERSON):
                return await answered

        storage = _File(path, url, None)
        provider = OAuthClientProvider(url, metadata, storage, open_page, answer)
        storage.context = provider.context
        status = await _ask(provider, "POST", url, json=_HELLO)
    if await storage.get_tokens() is None:
        raise ToolSetupError(f"it asks for no login, and answers {status}")


async def headers_of(path: Path, url: str, *, is_refused: bool) -> dict[str, Any]:
    """Return the headers of a login, as a `headers_command` prints them, renewed if they are about
    to end or the server `is_refused` them. One process renews at a time: a refresh token may be
    good for one use. Raises ToolSetupError if a person must log in again.
    """
    with FileLock(f"{path}.lock", mode=0o600):
        login = read_login(path, url)
        if is_refused or not login.is_fresh:
            login = await _renewed(path, login)
    headers = {"Authorization": f"Bearer {login.tokens.access_token}"}
    if login.ends is None:
        return {"headers": headers}
    left = login.ends - time.time() - _EARLY_SECONDS
    return {"headers": headers, "expires_in": max(left, 0.0)}


async def _renewed(path: Path, login: Login) -> Login:
    """Return the login with a new token. The SDK asks for one before a
    request whose token is over.
    """
    if login.tokens.refresh_token is None:
        raise ToolSetupError("its token is over, and the server gives no other without a person")
    redirects = login.client.redirect_uris if login.client is not None else None
    metadata = OAuthClientMetadata.model_validate(
        {"redirect_uris": redirects or ["http://127.0.0.1/"]}
    )
    storage = _File(path, login.url, login)
    provider = OAuthClientProvider(login.url, metadata, storage)
    storage.context = provider.context
    provider.context.oauth_metadata = login.metadata
    provider.context.protected_resource_metadata = login.resource
    provider.context.token_expiry_time = time.time() - 1
    with suppress(ToolSetupError):  # whether there is a new token is what counts
        await _ask(provider, "HEAD", login.url)
    renewed = read_login(path, login.url)
    if _digest(renewed) == _digest(login):
        raise ToolSetupError("the server does not renew it")
    return renewed


def _digest(login: Login) -> str:
    return hashlib.sha256(login.tokens.access_token.encode()).hexdigest()


async def _ask(provider: OAuthClientProvider, method: str, url: str, **body: Any) -> int:
    """Send one request with the SDK's flow around it; return the status of its answer.
    Raises ToolSetupError.
    """
    try:
        async with (
            httpx2.AsyncClient(
                auth=provider,
                transport=AdmittedTransport(_ignore),
                cookies=no_cookies(),
                trust_env=False,
                timeout=30,
            ) as client,
            client.stream(method, url, headers=_ACCEPT, **body) as response,
        ):
            return response.status_code
    except TimeoutError:
        raise ToolSetupError(f"nobody has logged in within {_SECONDS_FOR_A_PERSON:g} s") from None
    except (OAuthFlowError, httpx2.HTTPError, ValidationError, ValueError) as error:
        raise ToolSetupError(str(error) or type(error).__name__) from None


def _ignore(_: str) -> None:
    """No list of tools is asked for here."""


@asynccontextmanager
async def _redirects() -> AsyncIterator[tuple[str, "asyncio.Future[AuthorizationCodeResult]"]]:
    """Listen on loopback for the browser that comes back from the login; give the
    address and what it brings.
    """
    answered: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = urlsplit(head.split(" ", 2)[1])
            found = {name: values[0] for name, values in parse_qs(target.query).items()}
            if target.path == "/callback" and not answered.done():
                _settle(answered, found)
            text = _THANKS if "code" in found else _SORRY
            fields = (
                f"Content-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n"
            )
            writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n{text}".encode())
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback", answered


def _settle(answered: "asyncio.Future[AuthorizationCodeResult]", found: dict[str, str]) -> None:
    """Take what a browser brings. The SDK refuses a state that is not its own."""
    if "code" in found:
        result = AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )
        answered.set_result(result)
    else:
        why = found.get("error_description") or found.get("error") or "the browser brings no code"
        answered.set_exception(OAuthFlowError(why[:300]))
