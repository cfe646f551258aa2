"""Reads outputs by their references: an output by its own, or what a join or a map has
gathered by its manifest.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from sennit.activities.storage.artifacts import BodyMissing, is_reference
from sennit.workflows.plan.scheduling.joins import is_manifest

AT_ONCE = 16
"""Outputs that are read at once, which a worker holds in memory together."""
Read = Callable[[str], Awaitable[Any]]
_LEVELS = 200
"""Lists and objects in each other in a manifest: more than any run makes, and fewer
than Python can follow.
"""


async def value_of(reference: str, read: Read) -> Any:
    """Return what a reference stands for; `read` gives an output by its own. The grammar of
    manifests is in `sennit.workflows.plan.scheduling.joins`.

    Raises BodyMissing, also for what is no reference, and what `read` raises.
    """
    if not is_manifest(reference):
        return await read(reference)
    try:
        part = json.loads(reference)
    except (ValueError, RecursionError):
        raise BodyMissing(f"{reference!r:.100} is no reference") from None
    references = list(_references(part, _LEVELS))
    found: list[Any] = []
    for start in range(0, len(references), AT_ONCE):
        found += await asyncio.gather(*map(read, references[start : start + AT_ONCE]))
    return _value(part, iter(found))


def _references(part: Any, levels: int) -> Iterator[str]:
    """Yield the references in a manifest in their order. Raises BodyMissing for
    anything else that is in it.
    """
    if not levels:
        raise BodyMissing("a manifest of so many levels is no reference")
    if isinstance(part, list):
        for each in part:
            if each is not None:
                yield from _references(each, levels - 1)
    elif isinstance(part, dict):
        if "value" in part:
            yield from _references(part["value"], levels - 1)
    elif isinstance(part, str) and is_reference(part):
        yield part
    else:
        raise BodyMissing(f"{part!r:.100} is no reference")


def _value(part: Any, found: Iterator[Any]) -> Any:
    """Return what a manifest stands for, with the outputs that were `found` for its references."""
    if part is None:
        return None
    if isinstance(part, list):
        return [_value(each, found) for each in part]
    if isinstance(part, dict):
        value = _value(part.get("value"), found)
        status, error = part.get("status", "succeeded"), part.get("error")
        return {"id": part.get("id"), "status": status, "value": value, "error": error}
    return next(found)
