"""The servers over HTTP, of the Model Context Protocol and of A2A: where they
listen, and whom they serve.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request

from sennit.starter.client.errors import Refused
from sennit.starter.limits import (
    MAX_SERVE_BODY_BYTES,
    MAX_SERVE_IDLE_SECONDS,
    MAX_SERVE_REQUESTS,
    MAX_SERVE_SESSIONS,
)

PATH: Final = "/mcp"
_SECONDS_TO_END: Final = 2
_App = Callable[[Any, Any, Any], Awaitable[None]]
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. `names` are the hosts by which clients reach it from elsewhere."""

    host: str
    port: int
    names: Sequence[str] = ()

    @classmethod
    def of(cls, text: str, names: Sequence[str]) -> "Listen":
        """Return where a text `[HOST:]PORT` says; raises Refused."""
        host, _, port = text.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise Refused(f"--http {text[:60]}: write [HOST:]PORT, such as 8765")
        return cls(host.strip("[]") or "127.0.0.1", int(port), names)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def url(self, place: socket.socket, path: str) -> str:
        """Return the URL of what listens at a place, by the host that it listens at."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{place.getsockname()[1]}{path}"

    def security(self) -> TransportSecuritySettings:
        """Return which hosts a request may name, and which origins: none but these, so that no
        web page gets here, not even one whose own name leads to this address. Raises Refused if
        no client could name it.
        """
        names = list(self.names)
        if self.is_loopback:
            names += _LOOPBACK
        elif not names:
            raise Refused(
                f"--http {self.host}:{self.port}: name the host that clients call it by: --name "
                "HOST"
            )
        hosts = names + [f"{name}:*" for name in names]
        origins: list[str] = []
        for host in hosts:
            origins += [f"http://{host}", f"https://{host}"]
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


class _Bounded:
    """An ASGI application that serves so many requests at once, and answers others with 503.

    The bound of uvicorn counts connections that ask for nothing: whoever opens enough of them
    would keep all others out. A request without a token ends at once, so that it takes no place
    from those that have one.
    """

    def __init__(self, app: _App) -> None:
        self._app = app
        self._requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._requests == MAX_SERVE_REQUESTS:
            headers = [
                (b"content-type", b"text/plain"),
                (b"retry-after", b"5"),
                (b"connection", b"close"),
            ]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send(
                {"type": "http.response.body", "body": b"too many requests at once; come later"}
            )
            return
        self._requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1


async def serve_http(server: MCPServer[Any], listen: Listen, ready: Callable[[str], None]) -> None:
    """Serve until the process is told to end; `ready` gets the URL once it listens. Raises Refused.

    More requests or sessions at once than it has room for are answered with 503,
    larger requests with 413.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=listen.host,
        transport_security=listen.security(),
        max_request_body_size=MAX_SERVE_BODY_BYTES,
        session_idle_timeout=MAX_SERVE_IDLE_SECONDS,
        max_sessions=MAX_SERVE_SESSIONS,
    )
    with _listening(listen) as place:
        ready(listen.url(place, PATH))
        await _serve(app, place)


async def serve_a2a(
    application: Callable[[str], _App],
    listen: Listen,
    path: str,
    tokens: TokenVerifier | None,
    ready: Callable[[str], None],
) -> None:
    """Serve the application of an agent, which is told its URL, as `serve_http` does: to
    the same clients alone.
    """
    with _listening(listen) as place:
        url = listen.url(place, path)
        # Behind a proxy that ends TLS.
        named = f"https://{listen.names[0]}{path}" if listen.names else url
        app: _App = RequestBodyLimitMiddleware(application(named), MAX_SERVE_BODY_BYTES)
        if tokens is not None:
            app = RequireAuthMiddleware(app, required_scopes=[])
            app = AuthenticationMiddleware(app, backend=BearerAuthBackend(tokens))
        ready(url)
        await _serve(_Admitting(app, TransportSecurityMiddleware(listen.security())), place)


class _Admitting:
    """An ASGI application for requests of the hosts and origins that may reach it."""

    def __init__(self, app: _App, security: TransportSecurityMiddleware) -> None:
        self._app = app
        self._security = security

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = None
        if scope["type"] == "http":
            refusal = await self._security.validate_request(
                Request(scope, receive), scope["method"] == "POST"
            )
        await (refusal or self._app)(scope, receive, send)


async def _serve(app: _App, place: socket.socket) -> None:
    config = uvicorn.Config(
        _Bounded(app),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    await uvicorn.Server(config).serve(sockets=[place])


def _listening(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        return socket.create_server(
            (listen.host, listen.port), family=family, backlog=MAX_SERVE_REQUESTS
        )
    except OSError as error:
        raise Refused(f"--http {listen.host}:{listen.port}: {error.strerror or error}") from None
