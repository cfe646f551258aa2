"""Names that the process of a script and the worker agree on."""

import re
from collections.abc import Iterator
from typing import Final

FILE: Final = "script"
"""The file name that a script is compiled with."""
MODULE: Final = "__program__"
"""The module that a script is."""
BEGUN: Final = "__begun"
ENDED: Final = "__ended"
JOINED: Final = "__joined"
"""Words with which the process tells that a task of the script has begun, how it has ended, and of
which tasks the script knows that.
"""
TOLD: Final = (BEGUN, ENDED, JOINED)
BOUNDED: Final = "__bounded"
"""The word with which the process asks whether a task may have a budget."""
_PHASE: Final = re.compile(r"/=[^/]*")
_TASK_NUMBER: Final = re.compile(r"(~[0-9a-f]{12}\.\d+)#\d+")
_TASK_IDENTITY: Final = re.compile(r"~[0-9a-f]{12}\.\d+(?=#)")


def identity_of(site: str) -> str:
    """Return what a call site is known by, which is not the identity of the call: the site without
    phases, and with tasks without their numbers among those of one name.
    """
    return _TASK_NUMBER.sub(r"\1", _PHASE.sub("", site))


def shown_site(site: str) -> str:
    """Return a call site as people read it: `/look#3`, with phases, and without what
    tells equal tasks apart.
    """
    return _TASK_IDENTITY.sub("", site).replace("/=", "/")


def shown_path(site: str) -> str:
    """Return the tasks and phases of a call site as people read them, `collect/look#3`,
    without other coroutines.
    """
    parts = [part for part in shown_site(site).split("/") if part and not part.startswith("__")]
    return "/".join(parts)


def task_of(site: str) -> str:
    """Return the site of the task that a call site is in, "" for `main`."""
    return next(tasks_around(site), "")


def tasks_around(site: str) -> Iterator[str]:
    """Yield the sites of the tasks that a call site is in, the innermost first."""
    for found in reversed([*_TASK_NUMBER.finditer(site)]):
        yield site[: found.end()]
