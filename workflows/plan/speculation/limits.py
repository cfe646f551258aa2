"""How much a run speculates at most, and from when on."""

from typing import Final

THRESHOLD: Final = 0.5
"""The least probability with which a call is expected to be made."""
KNOWN_RUNS: Final = 20
"""So many runs of a tenant, and calls of a pair's first tool, must be known, unless a
run asks for speculation.
"""
MAX_LIVE: Final = 8
"""Of calls made early that nothing has used yet."""
SHARE: Final = 10
"""One part in so many of the window, and of each limit of the budget, may go to speculation."""
MAX_FOLLOWERS: Final = 64
"""Rows of patterns that a run is given, and mappings of arguments in them: the most probable."""
SLOW_MILLIS: Final = 100
"""A faster call is not worth an activity of its own."""
MAX_EARLY_TOOLS: Final = 64
"""Tools of a run whose calls are made while the reply that asks for them still comes."""
MAX_ASKED: Final = 8
"""Calls of one reply that are made so."""
MAX_CHAIN: Final = 3
"""Of calls that are made early one behind the other, each from what the one before it has given."""
MAX_WALKED: Final = 64
"""Nodes in front of one that are looked at to learn what it waits for."""
MAX_BOUND_INDEX: Final = 100
"""Of a list in arguments that a pattern makes."""
