"""Connects to Temporal at start, when the server may come up after its workers."""

import asyncio
from collections.abc import Callable

from temporalio.client import Client

from sennit.workers.settings import WrongSetting
from sennit.workflows.messages.converter import cause_of, connect, connection_settings

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0


def server_address() -> str:
    """Return the address that TEMPORAL_* variables or the profile file name; raises WrongSetting if they are wrong."""
    try:
        return connection_settings().get("target_host") or "localhost:7233"
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None


async def connect_patiently(address: str, identity: str, report: Callable[[str], None]) -> Client:
    """Return a client, however long the server takes to come up; `report` gets each reason why there is none yet.

    Raises WrongSetting at once for an address that no server can have.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await connect(identity=identity)
        except (RuntimeError, TimeoutError) as problem:
            report(f"no Temporal server at {address}: {cause_of(problem)}; check TEMPORAL_ADDRESS and TEMPORAL_TLS")
        except ValueError as problem:
            raise WrongSetting(f"the Temporal address {address!r} cannot be used: {problem}") from None
        await asyncio.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)
