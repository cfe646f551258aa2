"""The limit that Temporal sets to all that travels: every other limit of that kind is a share of it, or follows."""

from typing import Final

MAX_PAYLOAD_BYTES: Final = 2 * 1024 * 1024
"""Of one payload. A server refuses a larger one, and the task that sends it begins again for ever."""
MAX_CARRIED_BYTES: Final = MAX_PAYLOAD_BYTES * 3 // 4
"""Of what a run hands on when it continues as new, with its request: without a plan that lies in the store, beyond."""
MAX_DRAFT_BYTES: Final = MAX_PAYLOAD_BYTES // 2  # of all parts of a plan, packed, that come while it is written
MAX_TASK_BYTES: Final = MAX_PAYLOAD_BYTES // 2
"""Of the calls that one workflow task starts: its commands travel together, in at most 4 MiB."""
IN_FLIGHT: Final = 1_000
"""Units that are under way at once unless a run says another number; they share fewer activities."""
MAX_UNITS: Final = 16_000
"""Nodes and items of maps that one run has at once. What it hands on when it continues as new grows by 90 bytes with
each, and has to stay below MAX_CARRIED_BYTES.
"""
MOST_READ: Final = 64
"""Nodes that a consumer may read for a join to stand in its input, whole: so many manifests still fit a payload."""
MAX_MANIFEST_BYTES: Final = MOST_READ * 144
"""What a join's manifest may take in all inputs of its consumers together: 64 references, each with the name of its
node. A larger one is stored once, so that the history of a run grows with its edges to and from joins, and not with
their product.
"""
MAX_MANIFEST_LEVELS: Final = 8
"""Joins of joins in one manifest: what reads it goes down as many levels."""
