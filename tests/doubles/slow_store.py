"""Makes the artifact store of a worker slow, by random amounts, while there is a file `slow` in SENNIT_STATE.

Named as a module of tools: what a store does comes late then, and its answer later still.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from doubles.tools import nap

from sennit.activities.storage.directory import DirectoryStore

LONGEST = 2.0
SLOW = Path(os.environ.get("SENNIT_STATE", ".")) / "slow"
TOOLS = (nap,)


def _slow(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def call(*inputs: Any) -> Any:
        await _pause()
        found = await function(*inputs)
        await _pause()
        return found

    return call


async def _pause() -> None:
    if SLOW.exists():
        await asyncio.sleep(random.uniform(0, LONGEST))


for _name in ("put", "get", "has", "mark", "marked", "unmark", "replace_marker"):
    setattr(DirectoryStore, _name, _slow(getattr(DirectoryStore, _name)))
