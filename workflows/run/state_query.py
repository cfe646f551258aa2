"""Answers the query `state`: where a run stands, for a worker that plays on from
there without changing it.
"""

import hashlib
from typing import Any

from sennit.workflows.limits import MAX_STATE_PART_BYTES
from sennit.workflows.messages.dry_run import RunStatePart, RunStateView
from sennit.workflows.plan.digests import DIGEST_CHARACTERS
from sennit.workflows.plan.scheduling.snapshot import dump
from sennit.workflows.run.engine import Engine


def state_part(engine: Engine, run_context: str, request: Any) -> dict[str, Any]:
    """Return a piece of `RunStateView` as `RunStatePart`: the first, or that which the
    request names by its number.

    The run may go on between two pieces: then they have other digests, and
    whoever asks begins again.
    """
    state = engine.state
    dispatcher = engine.dispatcher
    view = RunStateView(
        plan=dispatcher.plan,
        run_context=run_context,
        epoch=dispatcher.epoch,
        origins=dispatcher.origins,
        graph=state.graph.execution_plan.pack(),
        state=dump(state),
    )
    text = view.model_dump_json()  # both are packed, as ASCII
    pieces: list[str] = []
    for start in range(0, len(text), MAX_STATE_PART_BYTES):
        pieces.append(text[start : start + MAX_STATE_PART_BYTES])
    number = _part_number(request, len(pieces))
    digest = hashlib.sha256(text.encode()).hexdigest()
    part = RunStatePart(digest=digest[:DIGEST_CHARACTERS], parts=len(pieces), body=pieces[number])
    return part.model_dump(mode="json")


def _part_number(request: Any, parts: int) -> int:
    """Return which of so many pieces a request names, 0 if it names none of them."""
    if not isinstance(request, dict):
        return 0
    number = request.get("part")
    if not isinstance(number, int) or not 0 <= number < parts:
        return 0
    return number
