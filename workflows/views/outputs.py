"""Where the outputs of a run lie, for those who may read them, in its own part of the store."""

from collections.abc import Sequence
from typing import Any

from sennit.workflows.limits import MAX_OUTPUTS
from sennit.workflows.messages.contracts import NodeError
from sennit.workflows.messages.outputs import NO_OUTPUT, NO_SUCH_NODE, NOT_ENDED, PLAN, OutputPlace
from sennit.workflows.plan.language.text import format_name, nearest_or_known
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import BLOCKED, FAILED, SKIPPED, STATUS_NAMES
from sennit.workflows.views.nodes import error_of, visible_units

NO_PLAN = OutputPlace(error=NodeError(type=NOT_ENDED, message="the run has no plan yet"))


def asked_for(request: Any) -> tuple[str, ...]:
    """Return the names that a query asks for, whatever its form."""
    names = None
    if isinstance(request, dict):
        names = request.get("nodes")
    if not isinstance(names, list | tuple):
        return ()
    return tuple(map(str, names[:MAX_OUTPUTS]))


def output_places(
    state: RunState, names: Sequence[str], answer: str, plan: str
) -> tuple[OutputPlace, ...]:
    """Return where the outputs of these nodes lie. `answer` is the digest of the run's, "" if it
    was not cut. `plan` is that of its plan.
    """
    places: list[OutputPlace] = []
    unknown = 0
    for name in names:
        unit = None
        if name:
            unit = state.find(name)
        if not name:
            places.append(OutputPlace(ref=answer))
        elif name == PLAN:
            places.append(OutputPlace(ref=plan))
        elif unit is not None:
            places.append(_place(state, unit, name))
        else:  # one hint is enough, and to look for many would keep the run from its work
            hint = ""
            if not unknown:
                paths = [state.path(shown) for shown in visible_units(state)]
                hint = nearest_or_known(name, paths)
            unknown += 1
            message = f"there is no node {format_name(name)}{hint}"
            places.append(_none(NO_SUCH_NODE, message))
    return tuple(places)


def _place(state: RunState, unit: int, name: str) -> OutputPlace:
    ref = state.units[unit].digest
    status = state.units[unit].status
    word = "blocked"
    if status != BLOCKED:
        word = STATUS_NAMES[status]
    if ref and word == "succeeded":
        return OutputPlace(ref=ref)
    if state.kind_of(unit) == "task":
        return _none(
            NO_OUTPUT,
            f"{format_name(name)} is a task: only its script has its value. Read that of its calls",
        )
    ended = state.ended or status in (FAILED, SKIPPED) or word == "cancelled"
    if not ended:
        return _none(NOT_ENDED, f"{format_name(name)} has no output yet: it is {word}")
    error = (error_of(state, unit) or "").removeprefix("Skipped: ")
    why = ""
    if error:
        why = f": {error}"
    return _none(NO_OUTPUT, f"{format_name(name)} has no output: its status is {word}{why}")


def _none(kind: str, message: str) -> OutputPlace:
    return OutputPlace(error=NodeError(type=kind, message=message))
