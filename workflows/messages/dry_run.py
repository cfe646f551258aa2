"""What an edit or a fork would do, before anybody does it: how a client asks for
it, and what it is told.
"""

from typing import Final, Literal

from pydantic import Field, JsonValue

from sennit.workflows.limits import MAX_DRY_RUN_CALLS
from sennit.workflows.messages.contracts import Call
from sennit.workflows.messages.message import Digest, Message, RunName

Fate = Literal[
    "taken over", "in flight", "waits", "unknown", "made again", "new", "cancelled", "not called"
]
"""What becomes of a call. The first four are taken over: with its end, as it runs, as it waits for
a person, or though nobody knows whether it was made. Then come calls that are made, and at last
those that only the old script has made.
"""
TAKEN: Final = ("taken over", "in flight", "waits", "unknown")
MADE: Final = ("made again", "new")


class DryRunCall(Message):
    """Asks what becomes of the calls of the run with the id `workflow`: if the program `node` of it
    gets another `script`, or, with a `request`, if that starts a run which forks it. `is_granted`
    says that its user allows the fork to write without asking.
    """

    workflow: str
    node: str = "main"
    script: str = ""
    repeat_writes: bool = False
    request: dict[str, JsonValue] | None = None
    is_granted: bool = False


class CallFate(Message):
    """One call and what becomes of it: `at` is when it ended, or a write began, in milliseconds, 0
    if that is not known, and `why` says more. With `asks` a person is asked first.
    """

    node: str
    what: str
    fate: Fate
    tool: str = ""
    writes: bool = False
    at: int = 0
    why: str = ""
    asks: bool = False


class DryRunReport(Message):
    """What an edit or a fork would do, as far as the recorded ends of calls reach.

    `calls` are in the order in which the script makes them, then those that it does not make;
    `counts` has how many there are of each fate, and `left_out` how many are not among `calls`.
    `is_whole` says that the script comes to its end with what is recorded; then `error` says
    how it fails, if it does. Otherwise the rest is known when it happens, and `stopped` says
    why the dry run went no further than that, if it did not end by itself. With `problems`
    nothing would be done at all.
    """

    calls: tuple[CallFate, ...] = Field(default=(), max_length=MAX_DRY_RUN_CALLS)
    counts: dict[Fate, int] = Field(default_factory=dict)
    left_out: int = 0
    is_whole: bool = False
    error: str = ""
    stopped: str = ""
    problems: tuple[str, ...] = ()


class RunStatePart(Message):
    """A piece of what the query `state` answers, whole only with all
    `parts` of the same `digest`.
    """

    digest: Digest
    parts: int = Field(ge=1, le=1_000)
    body: str


class RunStateView(Message):
    """Where a run stands, for a worker that plays on from there: its graph and its state, packed,
    the plan and the run context in its store, and the runs that it forks.
    """

    plan: Digest
    run_context: Digest
    epoch: int = 1
    origins: tuple[RunName, ...] = ()
    graph: str
    state: str


DRY_RUN: Final = Call("dry_run", DryRunCall, DryRunReport)
"""Plays what an edit or a fork would do. It makes no call, and changes nothing in the store."""
