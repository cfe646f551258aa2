"""What a tool is told about the call it serves."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The surroundings of one call; the same for every attempt of a node, but for `attempt`.

    `idempotency_key` is equal for all attempts of one generation of a node, so a tool that writes can hand it
    to a service that honours such keys.
    """

    docs: Path | None
    """Root of the documents, or None when the run has none."""
    cache: Path
    """A writable folder that outlives the call; anything in it may vanish and must be rebuildable."""
    run_id: str
    node: str
    """Path of the node, such as `n7` or `n5[17]`."""
    generation: int
    attempt: int
    idempotency_key: str
    progress: Callable[[str], None]
    """Reports one line of progress; cheap, may be called often and from any thread."""
