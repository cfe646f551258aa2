"""Connects to Temporal: at start, when the server may come up after its workers, and
with renewed certificates.
"""

import asyncio
from collections.abc import Callable

from temporalio.client import Client

from sennit.workers.settings import WrongSetting
from sennit.workflows.messages.converter import cause_of, connect, connection_settings

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0


def server_address() -> str:
    """Return the address that TEMPORAL_* variables or the profile file name; raises
    WrongSetting if they are wrong.
    """
    try:
        return connection_settings().get("target_host") or "localhost:7233"
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None


async def connect_patiently(address: str, identity: str, report: Callable[[str], None]) -> Client:
    """Return a client, however long the server takes to come up; `report` gets each reason
    why there is none yet.

    Raises WrongSetting at once for an address that no server can have.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await connect(identity=identity)
        except (RuntimeError, TimeoutError) as problem:
            report(
                f"no Temporal server at {address}: {cause_of(problem)}; check TEMPORAL_ADDRESS "
                "and TEMPORAL_TLS"
            )
        except ValueError as problem:
            raise WrongSetting(
                f"the Temporal address {address!r} cannot be used: {problem}"
            ) from None
        await asyncio.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)


async def connect_again(client: Client, identity: str) -> Client | None:
    """Return a client with the certificates that the settings name now; None if these are
    still those of `client`.

    Raises ValueError for files that cannot be used, and RuntimeError or TimeoutError if the server
    does not answer with them: they may be half written, so ask again.
    """
    settings = connection_settings()
    if settings.get("tls") == client.service_client.config.tls:
        return None
    return await connect(config=settings, identity=identity)
