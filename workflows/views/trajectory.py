"""What a run that is over tells of its calls, in the order in which they began."""

from collections.abc import Mapping
from types import MappingProxyType

from sennit.workflows.messages.trajectory import CallEnded
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.learning.limits import MAX_NOTED_CALLS
from sennit.workflows.plan.scheduling.state import ENDED, RunState
from sennit.workflows.views.figures import own_error, span_of


def calls_of(state: RunState, took: Mapping[int, int] = MappingProxyType({})) -> tuple[tuple[CallEnded, ...], int]:
    """Return the first calls of a run, and how many more it has made. What it has taken over from another run, what a
    person has answered, and what has not ended by itself, is none. A call that has taken over an early one `took` as
    long as that.
    """
    calls = [_call(state, unit, took) for unit in state.units() if _is_noted(state, unit)]
    calls.sort(key=lambda call: call.began)
    noted = tuple(calls[:MAX_NOTED_CALLS])
    return noted, len(calls) - len(noted)


def _is_noted(state: RunState, unit: int) -> bool:
    if not state.is_call(unit) or not state.attempts[unit]:
        return False
    return state.status[unit] in ENDED and unit not in state.taken_over and unit not in state.answers


def _call(state: RunState, unit: int, took: Mapping[int, int]) -> CallEnded:
    spec = state.spec_of(unit)
    began, ended = span_of(state, unit)
    used = state.used.get(unit, NO_USAGE)
    return CallEnded(
        node=state.path(unit),
        plan=spec.page,
        began=began,
        millis=took.get(unit, max(0, ended - began)),
        attempts=state.attempts[unit],
        tokens=used.tokens,
        error=own_error(state, unit),
        ref=state.digest[unit] or "",
        is_made=bool(spec.page) or spec.maker >= 0,
    )
