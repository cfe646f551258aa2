"""A frozen run: the scheduler has broken an invariant of its own, and only a
person moves the run on.

To go on from a state that is wrong could write something twice. To fail the workflow task would
hide the fault: nobody could finish or cancel the run, and its board would not say why. So the run
stays where it is, and says what broke.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType

from sennit.workflows.limits import MAX_BROKEN_CHARACTERS
from sennit.workflows.messages.result import BlockedOn, WriteLine
from sennit.workflows.plan.scheduling.completion import fate_of, may_write
from sennit.workflows.plan.scheduling.events import (
    Event,
    NodeEnded,
    NodesAppended,
    ProgramAdvanced,
    WriteStatus,
)
from sennit.workflows.plan.scheduling.state import RunState

_SCHEDULER = "sennit.workflows.plan.scheduling."


@dataclass
class Freeze:
    """The knowledge of a run after the event that its scheduler could not take.

    `invariant` names what broke and where. `task` is the event of the history with which the
    workflow task ends that has frozen the run: a reset to it has a mended worker take the same
    events again. `fates` has what became of the writes that have ended since.
    """

    invariant: str
    task: int
    fates: dict[str, WriteStatus] = field(default_factory=dict)

    def blocked_on(self, run: str) -> BlockedOn:
        """Return what a person is told: what broke, and how the run goes on."""
        reset = [
            "temporal",
            "workflow",
            "reset",
            "--workflow-id",
            run,
            "--event-id",
            str(self.task),
        ]
        command = shlex.join([*reset, "--reason", "mended"])
        return BlockedOn(
            node="",
            why="frozen",
            question=self.problem,
            shown=f"With a mended worker, reset the run to event {self.task}: it goes on from "
            "there.\n"
            "Or finish or cancel it, and fork it: a fork takes over what it has made.",
            update="finish",
            example={},
            command=command,
        )

    @property
    def problem(self) -> str:
        """What is wrong with the run, as a sentence."""
        return (
            f"The run is frozen, because its scheduler broke an invariant: {self.invariant}. "
            "Nothing more starts."
        )

    def note_ends(self, state: RunState, ends: Iterable[NodeEnded]) -> None:
        """Keep what became of the writes among what has ended: the scheduler does
        not learn of it any more.
        """
        for end in ends:
            if end.unit not in state.units or not may_write(state, end.unit):
                continue
            name = state.full_path(end.unit, end.generation)
            if state.kind_of(end.unit) == "agent" and end.outcome.effects is not None:
                for below, status in end.outcome.effects:
                    self.fates[f"{name}.{below}"] = status
            else:
                self.fates[name] = fate_of(end.outcome) or "unknown"

    def writes(self, known: Iterable[WriteLine]) -> tuple[WriteLine, ...]:
        """Return what became of the writes of the run: of those that the scheduler has
        `known`, and of the others.
        """
        lines: list[WriteLine] = []
        for name, status in self.fates.items():
            lines.append(WriteLine(node=name, status=status))
        for line in known:
            if line.node not in self.fates:
                lines.append(line)
        return tuple(lines)


def frozen_by(error: Exception, event: Event, state: RunState, task: int) -> Freeze:
    """Return what a run knows when taking this event has raised an error. The event itself is not
    lost on people: what it says of a write is told.
    """
    invariant = f"{_named(error)}, while it took {_described(event, state)}"
    freeze = Freeze(invariant, task)
    ended: list[NodeEnded] = []
    if isinstance(event, NodeEnded):
        ended.append(event)
    elif isinstance(event, NodesAppended | ProgramAdvanced) and event.ended is not None:
        ended.append(event.ended)
    freeze.note_ends(state, ended)
    return freeze


def _named(error: Exception) -> str:
    """Return what broke: the sentence of a broken invariant, or an unexpected error, with
    the function that raised.
    """
    text = f"{type(error).__name__}: {error}"[:MAX_BROKEN_CHARACTERS]
    place = _place_in_scheduler(error.__traceback__)
    if not place:
        return text
    return f"{place} raised {text}"


def _place_in_scheduler(traceback: TracebackType | None) -> str:
    """Return the innermost function of the scheduler that the error came
    through, as `ready.release`.
    """
    place = ""
    while traceback is not None:
        frame = traceback.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_SCHEDULER):
            place = f"{module.removeprefix(_SCHEDULER)}.{frame.f_code.co_name}"
        traceback = traceback.tb_next
    return place


def _described(event: Event, state: RunState) -> str:
    """Return which event it was, and of which node."""
    kind = type(event).__name__
    unit = getattr(event, "unit", None)
    if isinstance(event, NodesAppended | ProgramAdvanced) and event.ended is not None:
        unit = event.ended.unit
    if isinstance(unit, int) and unit in state.units:
        return f"{kind} of {state.path(unit)}"
    return kind
