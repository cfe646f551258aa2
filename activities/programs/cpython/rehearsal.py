"""Sessions that the parent of all processes of scripts plays before any script is there.

CPython changes code while it runs for the first few times: instructions take faster forms, and keep
what they have looked up. A process that changes code takes copies of its pages. The parent has
changed it here, so the processes of scripts share these pages.

No script does anything else because there was a rehearsal: `rehearse` puts back what a session
changes. Only caches keep something, which answer the same without it: which classes are none of an
abstract class, and where the modules of the rehearsed text begin.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from sennit.activities.programs.cpython import fixed_world
from sennit.activities.programs.cpython.names import MODULE
from sennit.activities.sandbox.computing_parent import Lines

_SCRIPT: Final = """
async def main(count: int):
    texts = []
    for number in range(count):
        texts.append(await search(query=f"query {number}"))
    return texts
"""
"""It does what all scripts do, and no more: tasks would leave patterns in a cache of `re`."""
_CALLS: Final = 3
_SESSIONS: Final = 12
"""CPython 3.11 changes a function once it has run eight times."""


class _Worker(Lines):
    """The worker's side of one session: it starts the script, and ends its calls one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._open: list[int] = []
        """The calls that have not ended, by their numbers."""
        start = {
            "text": _SCRIPT,
            "function": "main",
            "arguments": {"count": _CALLS},
            "seed": "",
            "runs": [[0, ""]],
            "clock": 0,
        }
        self._message: dict[str, Any] | None = {"start": start}
        """What the session reads next, None if it is over."""

    def read(self) -> bytes | None:
        if self._message is None:
            return None
        return json.dumps(self._message).encode()

    def write(self, line: bytes) -> None:
        said = json.loads(line)
        if "calls" in said:
            self._open += [call[0] for call in said["calls"]]
            self._message = {"replies": [{} for _ in said["calls"]]}
        elif self._open:
            self._message = {"ends": [[self._open.pop(0), "passage", None, 0]]}
        else:
            self._message = None


def rehearse(serve: Callable[[Lines], None]) -> None:
    """Have `serve` play whole sessions. What they leave is garbage, which the caller collects."""
    output, errors = sys.stdout, sys.stderr
    finders = sys.meta_path.copy()

    for _ in range(_SESSIONS):
        serve(_Worker())

    # Each script begins with these as they were.
    sys.stdout, sys.stderr = output, errors
    sys.meta_path[:] = finders
    del sys.modules[MODULE]
    fixed_world.State().enter()
