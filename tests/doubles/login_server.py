"""An MCP server at which people log in by OAuth, made of the official package. Who opens its page is let in at once."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

ISSUED = 3600


class Logins(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Who is logged in. `access` and `refresh` are the tokens that are good now; each refresh token is so once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.pages = 0
        self.renewals = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.pages += 1
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=2e10,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewals += 1
        del self.refresh[refresh_token.token]
        return self._issue(client)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _issue(self, client: OAuthClientInformationFull) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
        self.access[access] = AccessToken(token=access, client_id=str(client.client_id), scopes=[])
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=str(client.client_id), scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=ISSUED)


@asynccontextmanager
async def login_server(logins: Logins) -> AsyncIterator[str]:
    """Serve a tool `echo` to those who are logged in; gives the URL."""
    place = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{place.getsockname()[1]}"
    settings = {
        "issuer_url": base,
        "resource_server_url": f"{base}/mcp",
        "validate_token_resource": False,
        "client_registration_options": {"enabled": True},
    }
    auth = AuthSettings.model_validate(settings)
    server: MCPServer[None] = MCPServer("login", auth_server_provider=logins, auth=auth, log_level="ERROR")

    async def echo(text: str) -> str:
        return text

    server.add_tool(echo, structured_output=False)
    running = uvicorn.Server(
        uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(running.serve(sockets=[place]))
    try:
        yield f"{base}/mcp"
    finally:
        running.should_exit = True
        await serving
        place.close()
