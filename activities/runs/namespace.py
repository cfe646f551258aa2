"""Which of Sennit's search attributes the worker's namespace has."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from sennit.workflows.run.search_attributes import KEYS

FRESH = 60.0  # seconds
_LIMIT = timedelta(seconds=5)


class NamespaceAttributes:
    """Remembers the server's answer for a minute; new attributes serve the runs
    that start after that.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def attributes(self, client: Client) -> tuple[str, ...]:
        """Return the attributes that runs in the client's namespace may set.

        A server that does not say changes nothing: what is known holds on, at first nothing. A run
        must not fail, or wait, for what only lists show.
        """
        async with self._asking:
            if self._asked_at is None or time.monotonic() - self._asked_at > FRESH:
                with suppress(RPCError):
                    self._names = await attributes_in(client)
                    self._asked_at = time.monotonic()
            return self._names


async def attributes_in(client: Client) -> tuple[str, ...]:
    """Return those of our attributes that the client's namespace has with the right
    type. Raises RPCError.
    """
    request = ListSearchAttributesRequest(namespace=client.namespace)
    answer = await client.operator_service.list_search_attributes(request, timeout=_LIMIT)
    return usable(answer.custom_attributes)


def usable(there: Mapping[str, int]) -> tuple[str, ...]:
    """Return those of ours that exist with the right type."""
    names: list[str] = []
    for name, key in KEYS.items():
        if there.get(name) == key.indexed_value_type:
            names.append(name)
    return tuple(names)
