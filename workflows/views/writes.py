"""What became of writes, where the status of their nodes does not tell."""

from collections.abc import Iterator, Sequence

from sennit.workflows.limits import MAX_NAMED_WRITES, MAX_WRITES
from sennit.workflows.messages.result import WriteLine
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.scheduling.events import Effect, WriteStatus, Written
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import unit_of
from sennit.workflows.plan.scheduling.unit import SUCCEEDED

ORDER: tuple[WriteStatus, ...] = ("unknown", "in flight", "made", "not made")
_SAYS: dict[WriteStatus, str] = {
    "in flight": "is in flight",
    "made": "was made all the same",
    "not made": "was not made",
    "unknown": "may have been made: nobody knows",
}


def writes_of(
    state: RunState, *, all_made: bool = False, forgotten: Sequence[Written] = ()
) -> tuple[WriteLine, ...]:
    """Return the writes that were cut off, or of which nobody knows whether they were made, which
    come first; with `all_made` also those of which the status of their nodes tells that this run
    has made them. Those are `forgotten` that were made before a reset, by nodes that there were not
    when the ledger of effects was read.
    """
    lines: list[WriteLine] = []
    # Writes whose node cannot tell what became of them.
    for unit in sorted(state.effects):
        for effect in state.effects[unit]:
            path = state.full_path(unit, effect.generation)
            name = _below(path, effect.below)
            lines.append(WriteLine(node=name, status=effect.status))
    for write in forgotten:
        if unit_of(state, write) is None:
            path = write.path
            if write.generation != 1:
                path += f"~{write.generation}"
            name = _below(path, write.below)
            lines.append(WriteLine(node=name, status=write.status))
    if all_made:
        for unit in _made(state):
            lines.append(WriteLine(node=state.full_path(unit), status="made"))
    lines.sort(key=lambda line: ORDER.index(line.status))
    return tuple(lines[:MAX_WRITES])


def effect_text(state: RunState, unit: int) -> str:
    """Return what became of a unit's writes as it ran last, as a part of a sentence; "" if
    there is nothing to say.
    """
    generation = state.units[unit].generation
    effects: list[Effect] = []
    for effect in state.effects.get(unit, ()):
        if effect.generation == generation:
            effects.append(effect)
    if state.kind_of(unit) == "agent" and any(map(_is_unknown_as_a_whole, effects)):
        return "nobody knows what it has written"
    parts = []
    for effect in effects[:MAX_NAMED_WRITES]:
        write = f"its write {effect.below}".rstrip()
        parts.append(f"{write} {_SAYS[effect.status]}")
    if len(effects) > MAX_NAMED_WRITES:
        parts.append(f"and {len(effects) - MAX_NAMED_WRITES} more")
    return "; ".join(parts)


def _is_unknown_as_a_whole(effect: Effect) -> bool:
    return not effect.below and effect.status == "unknown"


def _below(name: str, below: str) -> str:
    """Return the name of a write that a unit made, or, with `below`, of one
    that its sub-agent made.
    """
    if not below:
        return name
    return f"{name}.{below}"


def _made(state: RunState) -> Iterator[int]:
    """Yield the writes whose status tells that this run has made them."""
    for unit in state.units_in(SUCCEEDED):
        is_write = state.spec_of(unit).effect == "write" and state.kind_of(unit) == "tool"
        made_here = unit not in state.answers and unit not in state.taken_over
        if is_write and made_here:
            yield unit


def names_of(state: RunState, nodes: list[int]) -> str:
    """Return the first few of these nodes, as people read them."""
    return format_names(map(state.path, nodes), 5)
