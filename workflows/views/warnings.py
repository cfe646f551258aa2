"""What people have to know of a run although it goes on, or is done."""

from collections.abc import Sequence

from sennit.workflows.limits import MAX_NAMED_CALLS, MAX_NAMED_WRITES, MAX_RUN_WARNINGS
from sennit.workflows.messages.result import WriteLine
from sennit.workflows.plan.language.text import format_names, one_line
from sennit.workflows.plan.limits import MAX_CAUSE_CHARACTERS
from sennit.workflows.plan.scheduling.cancellation import ANSWERED
from sennit.workflows.plan.scheduling.completion import REJECTED
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.termination import lost_maps, unused_failures
from sennit.workflows.views.quote import budget_warnings


def run_warnings(state: RunState) -> list[str]:
    """Return the warnings of a run that follow from its state: its budget, failures that nothing
    uses, writes that a person has refused, and calls that models have answered without.
    """
    warnings = budget_warnings(state)
    warnings += _failures(state)
    warnings += _refused(state)
    warnings += _answered_without(state)
    return warnings[:MAX_RUN_WARNINGS]


def why_lost(state: RunState) -> str:
    """Return why a run whose answer is there counts as partial: a map of which every item
    failed; "" for no reason.
    """
    reasons = []
    for node in lost_maps(state):
        items = [item for item in state.items[node] if item in state.notes]
        cause = ""
        if items:
            cause = f": {_note(state, items[0])}"
        reasons.append(f"every item of `{state.path(node)}` failed{cause}")
    return "; ".join(reasons[:3])


def why_in_doubt(writes: Sequence[WriteLine]) -> str:
    """Return why a run that has its answer counts as partial: a write may have been made or
    not; "" for no reason.
    """
    unknown = [f"`{line.node}`" for line in writes if line.status == "unknown"]
    if not unknown:
        return ""
    if len(unknown) == 1:
        return f"nobody knows whether the write {unknown[0]} was made"
    return (
        f"nobody knows whether {len(unknown)} writes were made: "
        f"{format_names(unknown, MAX_NAMED_WRITES)}"
    )


def _failures(state: RunState) -> list[str]:
    warnings = []
    for node in unused_failures(state):
        note = _note(state, node)
        warnings.append(f"`{state.path(node)}` failed, and nothing uses it: {note}")
    return warnings


def _refused(state: RunState) -> list[str]:
    """Return the writes that a person or a rule has refused. Models and scripts that wanted
    them may have gone on.
    """
    warnings = []
    for unit, (kind, reason) in state.notes.items():
        if kind == REJECTED:
            warnings.append(f"the write `{state.path(unit)}` was refused: {reason}")
    return warnings


def _answered_without(state: RunState) -> list[str]:
    """Return the calls that were cancelled because their models had come to their
    answers, by these models.
    """
    calls: dict[int, list[str]] = {}
    for unit in sorted(state.notes):
        if state.notes[unit] == ANSWERED:
            model = state.graph.model_of(unit)
            names = calls.setdefault(model, [])
            names.append(f"`{state.path(unit)}`")
    warnings = []
    for model, names in calls.items():
        shown = format_names(names, MAX_NAMED_CALLS)
        warnings.append(
            f"`{state.path(model)}` has answered without {shown}: what still ran was cancelled"
        )
    return warnings


def _note(state: RunState, unit: int) -> str:
    note = state.notes.get(unit, ("it failed",))
    return one_line(": ".join(note), MAX_CAUSE_CHARACTERS)
