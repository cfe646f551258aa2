"""A model's wish for so many more nodes that a person has to approve them, and what the person's word makes of it.

While a wish waits its node has ended its call but not itself. Approved, it runs again without a call: the plan may have
grown meanwhile, so what it asks for is checked once more. Refused, its model is asked again and told why.
"""

from collections.abc import Sequence

from workflows.plan.compile.graph import Spec
from workflows.plan.language.summary import clipped
from workflows.plan.scheduling import completion, ready
from workflows.plan.scheduling.events import Wish
from workflows.plan.scheduling.state import PENDING, RunState

SHOWN = 3
SHOWN_CHARACTERS = 50
WHY_CHARACTERS = 120


def wish_of(digest: str, added: Sequence[Spec], why: str, tokens: int) -> Wish:
    """Return the wish for the nodes in `added`, as a person is asked about it."""
    count = sum(1 + _items(spec) for spec in added)
    shown = tuple(clipped(spec.summary.rpartition(" <- ")[0] or spec.summary, SHOWN_CHARACTERS) for spec in added)
    return Wish(digest, count, clipped(why, WHY_CHARACTERS), shown[:SHOWN], tokens)


def _items(spec: Spec) -> int:
    """Return how many items a node may open."""
    if spec.kind != "map":
        return 0
    return spec.length if spec.over is None else spec.cap


def needs_approval(state: RunState, unit: int, wish: Wish) -> bool:
    """Whether a person decides on this wish of a unit: one that has been approved is not asked about again."""
    return state.approve_above is not None and wish.nodes > state.approve_above and unit not in state.wishes


def judge(state: RunState, unit: int, reason: str | None) -> None:
    """A person has approved a waiting wish, or refused it for a reason."""
    state.waiting -= 1
    wish = state.wishes[unit]
    if reason is None:
        wish.approved = True
        state.status[unit] = PENDING
        ready.queue(state, unit)
        return
    del state.wishes[unit]
    state.facts.pop(unit, None)
    state.objections[unit] = (f"a person refused these nodes ({wish.nodes:,}): {reason or 'no reason was given'}",)
    completion.put_back(state, unit)
