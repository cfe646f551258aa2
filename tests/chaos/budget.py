"""What runs say they have used of models, against what the model server has counted."""

import json
import re
from collections.abc import Iterator

from chaos.person import Watch

from sennit.activities.providers.model import OPEN_REPLY_TOKENS
from sennit.testing.model_rules import Asked
from sennit.testing.models import ModelServer


def most(asked: Asked) -> int:
    """Return the tokens that a call may take: about what it sends, and all that it lets the model write, or what a call
    without a limit is booked with. A worker measures a call before it sets that limit.
    """
    body = dict(asked.body)
    limit = int(body.pop("max_tokens", OPEN_REPLY_TOKENS))
    sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return -(-len(sent) // 3) + limit


def wrong_usage(seen: Watch, model: ModelServer, disturbances: int) -> Iterator[str]:
    """Yield what is wrong with the usage in a run's report. Each disturbance may have cut off one call of each part of
    the run that asks models: it is charged at the most that it may have used, or was not made, or is not known to the
    run that goes on after a reset.
    """
    found = [(index, re.search(rf"(\w+) {seen.case.seed}!", asked.text)) for index, asked in enumerate(model.asked)]
    made = {index: part[1] for index, part in found if part}
    if not seen.report or not made:
        return
    usage, name = seen.report["usage"], seen.case.name
    cut = disturbances * len(set(made.values()))
    dearest = cut * max(most(model.asked[index]) for index in made)
    paid, charged = sum(sum(model.billed[index]) for index in made), usage["input_tokens"] + usage["output_tokens"]
    if abs(usage["calls"] - len(made)) > cut:
        yield f"{name} reports {usage['calls']} model calls of {len(made)}, with {cut} cut off at the most"
    if abs(charged - paid) > dearest:
        yield f"{name} reports {charged} tokens of {paid}, with {cut} calls cut off at the most"
