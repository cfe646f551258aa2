"""The quote of a program as a node of a run: with its arguments and the prices of the run's models."""

from collections.abc import Mapping
from typing import Any

from activities.llm.call import OFFLINE
from activities.providers.prices import price_of
from activities.storage.run_context import RunContext
from workflows.plan.compile.graph import Quoted
from workflows.plan.language.nodes import Plan, ProgramNode
from workflows.plan.language.problems import Problem
from workflows.plan.language.references import BindError, parse_reference, references_in, resolve
from workflows.plan.programs.quote import quote_of
from workflows.plan.programs.vocabulary import ROLES


def quote_in_plan(node: ProgramNode, run_context: RunContext, inputs: Mapping[str, Any]) -> Quoted:
    """Return what a program without problems can cost. What other nodes give it is not known yet."""
    tools = {tool["name"]: tool for tool in run_context.catalogue}
    given = {name: _known(value, inputs) for name, value in node.arguments.items()}

    def price(name: str) -> tuple[int, int] | None:
        return price_of((run_context.models.get(name) or OFFLINE)[0] if name in ROLES else name)

    found = quote_of(node.script, tools, price, given).in_short()
    return found if node.on_error == "fail" else found._replace(calls=0)  # it may end early, and the run goes on


def unapprovable(plan: Plan) -> list[Problem]:
    """Return why nobody can approve a plan, if it has no program."""
    if any(isinstance(node, ProgramNode) for node in plan.nodes):
        return []
    return [Problem("approval", (), "approve_plan: this plan has no program, and only programs can be approved")]


def _known(value: Any, inputs: Mapping[str, Any]) -> Any:
    """Return an argument of `main`, None if it is not known before the run."""
    reference = parse_reference(value) if isinstance(value, str) else None
    if reference is None:
        return None if any(True for _ in references_in(value)) else value
    try:
        return resolve(reference, inputs) if reference.node == "input" else None
    except BindError:
        return None
