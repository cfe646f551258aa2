"""Connects to Temporal at start, when the server may come up after its workers."""

import asyncio
import re
import time

import structlog
from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from workers.settings import WrongSetting
from workflows.messages.converter import connect

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0
_ATTEMPT_SECONDS = 10.0
_QUOTED = re.compile(r'(?:message|error): \\?"((?:[^"\\]|\\.)+?)\\?"')

log = structlog.stdlib.get_logger(__name__)


class Unreachable(Exception):
    """Temporal did not answer in time. The message is one line naming the address and the cause."""


def server_address() -> str:
    """Return the address that TEMPORAL_* variables or the profile file name; raises WrongSetting if they are wrong."""
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError) as problem:
        first = str(problem).strip().partition("\n")[0]
        raise WrongSetting(f"the settings of the Temporal connection are wrong: {first}") from None
    return config.get("target_host") or "localhost:7233"


async def connect_patiently(address: str, identity: str, patience: float = 60.0) -> Client:
    """Return a client; try again for `patience` seconds, with one line in the log. Raises Unreachable then.

    Raises WrongSetting at once for an address that no server can have.
    """
    deadline = time.monotonic() + patience
    pause = _FIRST_PAUSE
    while True:
        try:
            return await asyncio.wait_for(connect(identity=identity), _ATTEMPT_SECONDS)
        except (RuntimeError, TimeoutError) as problem:
            cause = short_cause(problem)
        except ValueError as problem:
            raise WrongSetting(f"the Temporal address {address!r} cannot be used: {problem}") from None
        left = deadline - time.monotonic()
        if left <= 0:
            raise Unreachable(f"no Temporal server at {address} after {patience:.0f} s: {cause}")
        if pause == _FIRST_PAUSE:
            log.warning("no Temporal server yet; trying on", address=address, cause=cause, patience_s=patience)
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.6, _LONGEST_PAUSE)


def short_cause(problem: BaseException) -> str:
    """Return in a few words why the SDK failed; its own messages are dumps of nested errors."""
    if isinstance(problem, TimeoutError):
        return f"no answer within {_ATTEMPT_SECONDS:.0f} s"
    found = _QUOTED.findall(str(problem))
    return found[-1] if found else f"{type(problem).__name__}: {problem}"[:300]
