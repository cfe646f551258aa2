"""The parent of the processes of scripts, before its rehearsal and after it.

`python -m doubles.rehearsed_process` in `tests/` prints where the two differ, one place a line, and nothing if they are
equal. With a statement as its argument, that is run behind the rehearsal: what it changes must be printed.
"""

import asyncio
import contextvars
import decimal
import gc
import itertools
import os
import random
import sys
import types
from collections.abc import Iterator, Sized
from typing import Any

from doubles import unrehearsed_service

from sennit.activities.programs.cpython import fixed_world, rehearsal, service
from sennit.workflows.plan.bounded_cache import BoundedCache

ADDRESS_OF = id
"""As it is before the world is settled."""
PLAIN = (str, bytes, int, float, complex, range, itertools.count, types.NoneType)
"""Types of which the text says all."""
CLOSED = (types.FrameType, types.CodeType, type(vars(Sized)["_abc_impl"]), BoundedCache)
"""Types that are not looked into: code, which the rehearsal is to change, and what is kept to save time alone. That is
which classes are none of an abstract class, and of `BoundedCache` the lines of the rehearsed script's files.
"""
MOST_PLACES = 20
"""Which are printed."""


def roots() -> dict[str, Any]:
    """Return all from where a script can look around, and what Python keeps behind its objects."""
    return {
        "modules": sys.modules,
        "context": dict(contextvars.copy_context()),
        "decimal": str(decimal.getcontext()),
        "loop": asyncio._get_running_loop(),
        "limits": [sys.getrecursionlimit(), gc.get_threshold(), gc.isenabled()],
        "random": random.getstate(),
    }


def parts_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a thing refers to, each part with a name."""
    if isinstance(thing, (*PLAIN, *CLOSED)) or thing is sys.modules["__main__"]:
        return
    if isinstance(thing, types.ModuleType):
        # Modules in C also refer to their free lists.
        yield "names", vars(thing)
        return
    if type(thing) is dict:
        for key, value in thing.items():
            name = repr(key)[:40] if isinstance(key, PLAIN) else "..."
            yield f"key {name}", key
            yield name, value
        return
    for number, part in enumerate(gc.get_referents(thing)):
        yield str(number), part
    if isinstance(thing, type):
        yield "subclasses", type.__subclasses__(thing)


def picture() -> list[str]:
    """Return all that this process reaches from its roots, in one order: where it is, and what it is."""
    found: list[str] = []
    numbers: dict[int, int] = {}
    kept: list[Any] = []
    waiting = list(roots().items())
    while waiting:
        place, thing = waiting.pop()
        if isinstance(thing, PLAIN):
            found.append(f"{place}: {thing!r:.200}")
            continue
        kind = type(thing).__qualname__
        number = numbers.get(ADDRESS_OF(thing))
        if number is not None:
            found.append(f"{place}: {kind} {number} again")
            continue
        found.append(f"{place}: {kind}")
        numbers[ADDRESS_OF(thing)] = len(numbers)
        # Nothing else may get its address.
        kept.append(thing)
        parts = [(f"{place[-100:]} {name}", part) for name, part in parts_of(thing)]
        waiting += reversed(parts)
    return found


def main(behind: str) -> None:
    output, rehearse = sys.stdout, rehearsal.rehearse
    unrehearsed_service.prepare()
    unrehearsed_service.settle()
    # As random as this process is until then, no two are equal. A script enters a state of its own.
    fixed_world.State().enter()
    # To look for the first time fills caches, too.
    picture()
    gc.collect()
    before = picture()

    rehearse(service.serve)
    exec(behind)
    gc.collect()

    places = 0
    for earlier, later in itertools.zip_longest(before, picture()):
        if earlier != later and places < MOST_PLACES:
            places += 1
            print(f"{earlier} => {later}", file=output)
    # The world is settled for scripts, and not for the end of Python.
    output.flush()
    os._exit(0)


if __name__ == "__main__":
    main("".join(sys.argv[1:]))
