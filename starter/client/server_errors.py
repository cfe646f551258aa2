"""What a failed call to the server means for a person, and which failures are worth waiting out."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import (
    NoAnswer,
    NoNamespace,
    Refused,
    SennitError,
    ServerUnreachable,
)
from sennit.workflows.plan.language.text import one_line

OUTAGE = 30.0
"""Seconds without an answer after which a server is given up; a restart takes less."""

STOPPED_FOR = 3
"""Seconds after which a stopped local stack is not just being replaced by another client."""

# A call lasting longer was answered for a while: the SDK itself gives up after 10 s.
_SDK_RETRIES = 20.0

T = TypeVar("T")

_CUT_OFF = "transport error"  # of unknown status: the connection broke off under the call
_PASSING = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.INTERNAL,
}
# Also after a sleep of the machine.
_LATE = {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
_SLOW = {*_LATE, RPCStatusCode.FAILED_PRECONDITION}
_WRONG = {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.ALREADY_EXISTS}
_DENIED = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED}


def error_of(error: RPCError) -> SennitError:
    """Return the error that ends a command whose call fails like this."""
    message = one_line(error.message)[:300]
    if error.status is RPCStatusCode.NOT_FOUND and message.startswith("Namespace "):
        return NoNamespace(message.rstrip("."))
    if error.status in _WRONG:
        return Refused(message)
    if error.status in _SLOW and "failed state" in message:
        return NoAnswer(
            "the run's own code fails on its worker, which tries again; its log and the web UI "
            "say why"
        )
    if error.status in _LATE:  # the message is the transport's
        return NoAnswer("no worker answers for the run")
    if error.status in _SLOW:
        return NoAnswer(f"no worker answers for the run: {message}")
    if error.status in _DENIED:
        return ServerUnreachable(f"the Temporal server does not let us in: {message}")
    return ServerUnreachable(f"the Temporal server does not answer: {message}")


async def retry_outages(call: Callable[[], Awaitable[T]], longest: float = OUTAGE) -> T:
    """Return what `call` gives, trying again while the server is away for less
    than `longest` seconds.

    For reading only: `call` may run many times. Raises SennitError.
    """
    loop = asyncio.get_running_loop()
    failing_since, pause = loop.time(), 0.2
    while True:
        began = loop.time()
        try:
            return await call()
        except RPCError as error:
            if loop.time() - began > _SDK_RETRIES:
                failing_since, pause = loop.time(), 0.2
            passing = error.status in _PASSING or error.status in _LATE or error.message == _CUT_OFF
            if not passing or loop.time() - failing_since > longest:
                raise error_of(error) from None
        await asyncio.sleep(pause)
        pause = min(pause * 2, 2.0)


async def unless_stopped(call: Awaitable[T], stopped: Callable[[], bool]) -> T:
    """Return what `call` gives. Raises ServerUnreachable once `stopped` has been
    true for some seconds.
    """
    waiting, seconds = asyncio.ensure_future(call), 0
    try:
        while not (await asyncio.wait({waiting}, timeout=1))[0]:
            seconds = seconds + 1 if stopped() else 0
            if seconds > STOPPED_FOR:
                raise ServerUnreachable(
                    "the local stack was stopped; its runs go on at the next start"
                )
        return await waiting
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
