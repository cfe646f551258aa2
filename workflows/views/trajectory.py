"""What a run that is over tells of its calls, in the order in which they began."""

from collections.abc import Mapping
from types import MappingProxyType

from sennit.workflows.messages.trajectory import CallEnded
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.learning.limits import MAX_NOTED_CALLS
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import ENDED
from sennit.workflows.views.figures import own_error, span_of


def calls_of(
    state: RunState, took: Mapping[int, int] = MappingProxyType({})
) -> tuple[tuple[CallEnded, ...], int]:
    """Return the first calls of a run, and how many more the run has made.

    `took` is how long those calls took that were made early, by the units
    that have taken them over.
    """
    calls = []
    for unit in state.numbers():
        if _is_noted(state, unit):
            call = _call(state, unit, took)
            calls.append(call)

    calls.sort(key=lambda call: call.began)
    noted = calls[:MAX_NOTED_CALLS]
    left_out = len(calls) - len(noted)
    return tuple(noted), left_out


def _is_noted(state: RunState, unit: int) -> bool:
    """Whether a unit is a call that the run has made itself, and that has ended by itself."""
    if not state.is_call(unit) or state.units[unit].status not in ENDED:
        return False

    # A unit may also end without a call: taken over from another run or an earlier script,
    # or answered by a person.
    if unit in state.taken_over or unit in state.answers:
        return False
    return state.units[unit].attempts > 0


def _call(state: RunState, unit: int, took: Mapping[int, int]) -> CallEnded:
    spec = state.spec_of(unit)
    used = state.used.get(unit, NO_USAGE)
    began, ended = span_of(state, unit)

    # By the clocks of two machines a call may seem to end before it began.
    millis = max(0, ended - began)

    # A node has a maker if it was not in the plan: then a model or a script has made the call.
    has_maker = spec.maker >= 0
    return CallEnded(
        node=state.path(unit),
        plan=spec.page,
        began=began,
        millis=millis,
        took=took.get(unit, 0),
        attempts=state.units[unit].attempts,
        tokens=used.tokens,
        error=own_error(state, unit),
        ref=state.units[unit].digest or "",
        is_made=bool(spec.page) or has_maker,
    )
