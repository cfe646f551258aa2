"""The quote of a program as a node of a run: with its arguments and the prices of the run's models."""

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
from sennit.workflows.plan.language.references import BindError, parse_reference, references_in, resolve
from sennit.workflows.plan.programs.vocabulary import ROLES

_MODEL = re.compile(rf"\b(?:{'|'.join(PROVIDERS)}):[\w.:/-]+")


async def quote_in_plan(read: Read, node: ProgramNode, run_context: RunContext, inputs: Mapping[str, Any]) -> Quoted:
    """Return what a program without problems can cost. What other nodes give it is not known yet, nor what a script
    costs that takes too much to be counted.
    """
    effects = {tool["name"]: tool.get("effect", "") for tool in run_context.catalogue}
    arguments = {name: _known(value, inputs) for name, value in node.arguments.items()}
    prices = _prices(node.script, run_context)
    try:
        found = Quoted(*await ask(read, "quote", node.script, effects, prices, arguments))
    except Unreadable:
        found = Quoted("unknown", 0, 0, 0)
    return found if node.on_error == "fail" else found._replace(calls=0)  # it may end early, and the run goes on


def _prices(script: str, run_context: RunContext) -> dict[str, tuple[int, int]]:
    """Return the known prices of a program's calls: by the role, and by each model that the script may name. The
    process that reads scripts can load none.
    """
    models = {role: (run_context.models.get(role) or OFFLINE)[0] for role in ROLES}
    models |= {name: name for name in _MODEL.findall(script)[:MAX_QUOTED_MODELS]}
    prices = {name: price_of(model) for name, model in models.items()}
    return {name: price for name, price in prices.items() if price is not None}


def _known(value: Any, inputs: Mapping[str, Any]) -> Any:
    """Return an argument of `main`, None if it is not known before the run."""
    reference = parse_reference(value) if isinstance(value, str) else None
    if reference is None:
        return None if any(True for _ in references_in(value)) else value
    try:
        return resolve(reference, inputs) if reference.node == "input" else None
    except BindError:
        return None
