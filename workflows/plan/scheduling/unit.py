"""What a run knows about one unit: a node, one item of a map, or one node of an item's chain."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.events import Approval


class Status(IntEnum):
    """How a unit stands. BLOCKED: pending behind a failed node. DELEGATED: its successor runs, or
    what its script has called. EXPANDED: a map whose items run. IN_DOUBT: a write has failed and
    may have been made all the same; before a person has decided, no other node is told.

    Snapshots have these numbers, so that they never change.
    """

    PENDING = 0
    RUNNING = 1
    WAITING = 2
    SUCCEEDED = 3
    FAILED = 4
    SKIPPED = 5
    CANCELLED = 6
    BLOCKED = 7
    DELEGATED = 8
    EXPANDED = 9
    IN_DOUBT = 10


(
    PENDING,
    RUNNING,
    WAITING,
    SUCCEEDED,
    FAILED,
    SKIPPED,
    CANCELLED,
    BLOCKED,
    DELEGATED,
    EXPANDED,
    IN_DOUBT,
) = Status

ENDED = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)
STATUS_NAMES = (
    "pending",
    "running",
    "waiting",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
    "pending",
    "running",
    "running",
    "failed",
)


@dataclass(slots=True)
class Unit:
    """What the run knows about a unit. Times are in milliseconds."""

    status: Status = PENDING
    generation: int = 1
    """How often it has been started over, plus one."""
    digest: str | None = None
    """Names its output; None without one."""
    size: int = 0
    """The bytes of its output."""
    attempts: int = 0
    """How often its activity was tried."""
    millis: int = 0
    """How long its last run took."""
    started: int = 0
    """When its last run started."""
    queued: bool = False
    """Whether it is among the ready units."""
    facts: dict[str, Any] | None = None
    """What conditions and maps ask of its output."""
    inherited_failure: bool = False
    """Whether it ended only because of what it depends on."""
    previous_result: str | None = None
    """Of a unit that runs again: how it ended before."""
    approved: Approval | None = None
    """A person's approval of what it writes."""
    objections: tuple[str, ...] = ()
    """What was wrong with its last request."""
    batch: Batch | None = None
    """The units that run in its activity, if it shares one; it is among them."""
    alone: bool = False
    """Whether it starts alone, because it has failed in an activity that it shared."""
    prompt_tokens: int = 0
    """Of a model call whose grant was too small: the tokens of its prompt."""
    span: tuple[int, int] | None = None
    """When its last call itself began and ended, where its worker has said so."""
    ended_at: int | None = None
    """When a call of a program ended, or a program first began."""

    # Only of nodes.
    open_deps: int = 0
    """How many of its dependencies have not ended."""
    open_inputs: int = 0
    """How many inputs of a join, or units of a map's items, have not ended."""
    ok_inputs: int = 0
    """How many inputs of a join have a value."""
    awaiting_inputs: bool = False
    """Whether a join is admitted and only waits for inputs."""
    chosen: tuple[int, ...] | None = None
    """Of a join that has closed: the inputs whose values it takes."""
    past_deadline: bool | None = None
    """Of a join whose deadline has passed: true until that has closed it."""

    def note_end(self, at: int) -> None:
        """Note when it ended, unless that is known already."""
        if self.ended_at is None:
            self.ended_at = at

    def begin_again(self, *, is_of_program: bool) -> None:
        """Forget the result, in another generation. A call of a program also forgets when it
        ended; a program keeps when it first began.
        """
        self.generation += 1
        self.digest = None
        self.queued = False
        self.facts = None
        self.inherited_failure = False
        self.objections = ()
        self.alone = False
        if is_of_program:
            self.ended_at = None
