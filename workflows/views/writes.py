"""What became of writes, where the status of their nodes does not tell."""

from collections.abc import Iterator, Sequence

from sennit.workflows.limits import MAX_NAMED_WRITES, MAX_WRITES
from sennit.workflows.messages.result import WriteLine
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.scheduling.events import Effect, WriteStatus, Written
from sennit.workflows.plan.scheduling.state import SUCCEEDED, RunState
from sennit.workflows.plan.scheduling.step import unit_of

ORDER: tuple[WriteStatus, ...] = ("unknown", "in flight", "made", "not made")
_SAYS: dict[WriteStatus, str] = {
    "in flight": "is in flight",
    "made": "was made all the same",
    "not made": "was not made",
    "unknown": "may have been made: nobody knows",
}


def writes_of(state: RunState, *, all_made: bool = False, forgotten: Sequence[Written] = ()) -> tuple[WriteLine, ...]:
    """Return the writes that were cut off, or of which nobody knows whether they were made, which come first; with
    `all_made` also those of which the status of their nodes tells that this run has made them. Those are `forgotten`
    that were made before a reset, by nodes that there were not when the ledger of effects was read.
    """
    found = [
        WriteLine(node=_name(state, unit, each), status=each.status)
        for unit in sorted(state.effects)
        for each in state.effects[unit]
    ]
    for write in forgotten:
        if unit_of(state, write) is None:
            name = write.path if write.generation == 1 else f"{write.path}~{write.generation}"
            name = f"{name}.{write.below}" if write.below else name
            found.append(WriteLine(node=name, status=write.status))
    if all_made:
        found += [WriteLine(node=state.full_path(unit), status="made") for unit in _made(state)]
    return tuple(sorted(found, key=lambda line: ORDER.index(line.status))[:MAX_WRITES])


def effect_text(state: RunState, unit: int) -> str:
    """Return what became of a unit's writes as it ran last, as a part of a sentence; "" if there is nothing to say."""
    found = [each for each in state.effects.get(unit, ()) if each.generation == state.generation[unit]]
    if state.kind_of(unit) == "agent" and any(not each.below and each.status == "unknown" for each in found):
        return "nobody knows what it has written"
    named = [f"{f'its write {each.below}' if each.below else 'its write'} {_SAYS[each.status]}" for each in found]
    more = [f"and {len(named) - MAX_NAMED_WRITES} more"] * (len(named) > MAX_NAMED_WRITES)
    return "; ".join([*named[:MAX_NAMED_WRITES], *more])


def _name(state: RunState, unit: int, effect: Effect) -> str:
    name = state.full_path(unit, effect.generation)
    return f"{name}.{effect.below}" if effect.below else name


def _made(state: RunState) -> Iterator[int]:
    """Yield the writes whose status tells that this run has made them."""
    for unit in state.units_in(SUCCEEDED):
        made_here = unit not in state.answers and unit not in state.taken_over
        if state.spec_of(unit).effect == "write" and state.kind_of(unit) == "tool" and made_here:
            yield unit


def names_of(state: RunState, nodes: list[int]) -> str:
    """Return the first few of these nodes, as people read them."""
    return format_names(map(state.shown, nodes), 5)
