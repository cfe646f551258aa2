"""The quote of a program as a node of a run: with its arguments and the
prices of the run's models.
"""

import re
from collections.abc import Mapping
from typing import Any

from sennit.activities.limits import MAX_QUOTED_MODELS
from sennit.activities.llm.models import OFFLINE
from sennit.activities.programs.reading import Read, Unreadable, ask
from sennit.activities.providers.prices import price_of
from sennit.activities.storage.run_context import RunContext
from sennit.workflows.messages.queues import PROVIDERS
from sennit.workflows.plan.compile.execution_plan import Quoted
from sennit.workflows.plan.language.nodes import ProgramNode
from sennit.workflows.plan.language.references import (
    BindError,
    parse_reference,
    references_in,
    resolve,
)
from sennit.workflows.plan.programs.vocabulary import ROLES

_MODEL = re.compile(rf"\b(?:{'|'.join(PROVIDERS)}):[\w.:/-]+")


async def quote_in_plan(
    read: Read, node: ProgramNode, run_context: RunContext, inputs: Mapping[str, Any]
) -> Quoted:
    """Return what a program without problems can cost. What other nodes give it is not known yet,
    nor what a script costs that takes too much to be counted.
    """
    effects = {tool["name"]: tool.get("effect", "") for tool in run_context.catalogue}
    arguments = {name: _known(value, inputs) for name, value in node.arguments.items()}
    prices = _prices(node.script, run_context)
    try:
        answer = await ask(read, "quote", node.script, effects, prices, arguments)
        quoted = Quoted(*answer)
    except Unreadable:
        quoted = Quoted("unknown", 0, 0, 0)
    if node.on_error != "fail":  # the program may end early, and the run goes on
        quoted = quoted._replace(calls=0)
    return quoted


def _prices(script: str, run_context: RunContext) -> dict[str, tuple[int, int]]:
    """Return the known prices of a program's calls: by the role, and by each model that the script
    may name. The process that reads scripts can load none.
    """
    models: dict[str, str] = {}
    for role in ROLES:
        usual, *_ = run_context.models.get(role) or OFFLINE
        models[role] = usual
    models |= {name: name for name in _MODEL.findall(script)[:MAX_QUOTED_MODELS]}

    prices: dict[str, tuple[int, int]] = {}
    for name, model in models.items():
        price = price_of(model)
        if price is not None:
            prices[name] = price
    return prices


def _known(value: Any, inputs: Mapping[str, Any]) -> Any:
    """Return an argument of `main`, None if it is not known before the run."""
    reference = None
    if isinstance(value, str):
        reference = parse_reference(value)
    if reference is None:
        if list(references_in(value)):
            return None
        return value
    if reference.node != "input":
        return None
    try:
        return resolve(reference, inputs)
    except BindError:
        return None
