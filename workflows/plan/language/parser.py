"""JSON data to a `Plan`, with every shape error as a problem at its place."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from workflows.plan.language.json_checks import first_violation
from workflows.plan.language.messages import KINDS, problem_of
from workflows.plan.language.nodes import MAX_NODES, Plan
from workflows.plan.language.problems import InvalidPlan, Problem, Where
from workflows.plan.language.text import format_value

MAX_PROBLEMS = 50
KINDS_TO_COME = ("loop", "route")
POLICIES_TO_COME = ("vote", "best", "reduce")


def parse_plan(data: Any) -> Plan:
    """Return the plan in `data`. Raises InvalidPlan with the first 50 shape errors; never anything else."""
    problems = _outline(data)
    if problems:
        raise InvalidPlan(problems)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise InvalidPlan(problem_of(item, data) for item in _telling(errors)[:MAX_PROBLEMS]) from None


def _outline(data: Any) -> list[Problem]:
    """What must hold before the fields are worth looking at: an object, bounded, plain, of kinds that are built."""
    if not isinstance(data, dict):
        return [Problem("shape", (), f"a plan is an object with `nodes`, not {format_value(data)}")]
    nodes = data.get("nodes")
    if isinstance(nodes, list) and len(nodes) > MAX_NODES:
        return [
            Problem("too_many_nodes", ("nodes",), f"{len(nodes):,} nodes; at most {MAX_NODES:,}. Use a `map`"),
        ]
    found = first_violation(data)
    if found is not None:
        return [Problem("not_json", *found)]
    if not isinstance(nodes, list):
        return []
    problems = (problem for index, node in enumerate(nodes) for problem in _not_built(node, ("nodes", index)))
    return list(problems)[:MAX_PROBLEMS]


def _not_built(node: Any, where: Where) -> Iterator[Problem]:
    if not isinstance(node, dict):
        return
    kind, policy = node.get("kind"), node.get("policy")
    if kind in KINDS_TO_COME:
        yield Problem("not_built", (*where, "kind"), f"kind `{kind}` is not built yet; built: {', '.join(KINDS)}")
        return
    name = next(iter(policy), None) if isinstance(policy, dict) else policy
    if kind == "join" and name in POLICIES_TO_COME:
        sentence = f"join policy `{name}` is not built yet; built: all, settled, first, quorum"
        yield Problem("not_built", (*where, "policy"), sentence)
    for name in ("turn", "excerpt") if kind == "llm" else ():
        if node.get(name) is not None:
            yield Problem("not_built", (*where, name), f"`{name}` is written by the engine; leave it out")
    if kind == "map":
        yield from _not_built(node.get("do"), (*where, "do"))


def _telling(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out `too short` for a list that is only short because the items in it are wrong."""
    return [item for item in errors if item["type"] != "too_short" or not item["input"]]
