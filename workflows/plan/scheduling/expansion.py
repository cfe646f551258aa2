"""A model's wish for so many more nodes that a person has to approve them, and what the person's word makes of it.

While a wish waits its node has ended its call but not itself. Approved, it runs again without a call: the plan may have
grown meanwhile, so what it asks for is checked once more. Refused, its model is asked again and told why.
"""

from collections.abc import Sequence

from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language.summary import clipped
from workflows.plan.scheduling import completion, ready
from workflows.plan.scheduling.events import ExpansionRequest
from workflows.plan.scheduling.state import PENDING, RunState

SHOWN = 3
SHOWN_CHARACTERS = 50
WHY_CHARACTERS = 120


def request_of(digest: str, added: Sequence[NodeSpec], why: str, tokens: int) -> ExpansionRequest:
    """Return the wish for the nodes in `added`, as a person is asked about it."""
    count = sum(1 + _items(spec) for spec in added)
    shown = tuple(clipped(spec.summary.rpartition(" <- ")[0] or spec.summary, SHOWN_CHARACTERS) for spec in added)
    return ExpansionRequest(digest, count, clipped(why, WHY_CHARACTERS), shown[:SHOWN], tokens)


def _items(spec: NodeSpec) -> int:
    """Return how many items a node may open."""
    if spec.kind != "map":
        return 0
    return spec.length if spec.over is None else spec.cap


def needs_approval(state: RunState, unit: int, wish: ExpansionRequest) -> bool:
    """Whether a person decides on this wish of a unit: one that has been approved is not asked about again."""
    return state.approve_above is not None and wish.nodes > state.approve_above and unit not in state.expansion_requests


def decide(state: RunState, unit: int, reason: str | None) -> None:
    """A person has approved a waiting wish, or refused it for a reason."""
    state.waiting -= 1
    wish = state.expansion_requests[unit]
    if reason is None:
        wish.approved = True
        state.status[unit] = PENDING
        ready.queue(state, unit)
        return
    del state.expansion_requests[unit]
    state.facts.pop(unit, None)
    state.objections[unit] = (f"a person refused these nodes ({wish.nodes:,}): {reason or 'no reason was given'}",)
    completion.put_back(state, unit)
