"""`python -m sennit.workers login NAME`: log in at an MCP server; `token NAME URL` prints
the headers of a login.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence

from sennit.activities.toolbox import ToolSetupError
from sennit.activities.toolbox.configuration import read_declared
from sennit.workers.settings import WorkerSettings, WrongSetting, read_settings


def main(arguments: Sequence[str]) -> int:
    """Log a person in, with the address for their browser on stderr. Raises
    WrongSetting with what is wrong.
    """
    name = arguments[0] if arguments else ""
    settings = read_settings()
    url = _url_of(name, settings)
    from sennit.activities.toolbox.mcp.logins import log_in, login_file

    try:
        asyncio.run(log_in(login_file(settings.logins, name), url, _show))
    except ToolSetupError as problem:
        raise WrongSetting(f"the login at {name} has failed: {problem}") from None
    return 0


def print_headers(arguments: Sequence[str]) -> int:
    """Write the headers of the login at a server as a `headers_command`
    does. Raises WrongSetting.
    """
    name, url = arguments
    from sennit.activities.http.headers_command import REFUSED_VARIABLE
    from sennit.activities.toolbox.mcp.logins import headers_of, login_file

    file = login_file(read_settings().logins, name)
    try:
        found = asyncio.run(
            headers_of(file, url, is_refused=os.environ.get(REFUSED_VARIABLE) == "1")
        )
    except ToolSetupError as problem:
        raise WrongSetting(f"{problem}; log in with: sennit tools login {name}") from None
    sys.stdout.write(json.dumps(found))
    return 0


def _show(page: str) -> None:
    sys.stderr.write(f"open this page in a browser, and log in there:\n  {page}\n")
    sys.stderr.flush()


def _url_of(name: str, settings: WorkerSettings) -> str:
    """Return the URL of a declared server at which a person can log in."""
    if settings.mcp is None:
        raise WrongSetting("SENNIT_MCP names no file with servers")
    try:
        from sennit.activities.toolbox.mcp.configuration import Declarations
    except ModuleNotFoundError as missing:
        raise WrongSetting(
            f"SENNIT_MCP='{settings.mcp}': needs sennit[mcp]; {missing.name} is not installed"
        ) from None
    try:
        servers = read_declared(settings.mcp, Declarations).enabled
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_MCP: {problem}") from None
    if name not in servers:
        raise WrongSetting(
            f"{name[:40]!r} is no server of {settings.mcp}; there are "
            f"{', '.join(servers) or 'none'}"
        )
    declared = servers[name]
    if declared.url is None:
        raise WrongSetting(
            f"{name} is started by a command; a person logs in at servers with a url"
        )
    if declared.headers_command is not None:
        raise WrongSetting(
            f"{name} has a headers_command, which would be asked in place of a login"
        )
    return declared.url
