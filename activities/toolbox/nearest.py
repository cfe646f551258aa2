"""The nearest known name to one that is not known."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

_SHOWN: Final = 12


def did_you_mean(wanted: str, known: Collection[str]) -> str:
    """Return a clause to append to an error: the nearest of `known`, else the first few, else nothing."""
    near = get_close_matches(wanted[:200], known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not known:
        return ""
    shown = sorted(known)
    more = ", ..." if len(shown) > _SHOWN else ""
    return f"; there is {', '.join(shown[:_SHOWN])}{more}"
