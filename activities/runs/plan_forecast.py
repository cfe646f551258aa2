"""What a plan may take, for a person who is asked about it before it starts."""

from sennit.workflows.plan.compile import forecast
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.language.limits import dollars, duration_text
from sennit.workflows.plan.language.nodes import Node, Plan
from sennit.workflows.plan.language.text import format_names

_WRITES = 5


def plan_forecast(plan: Plan, compiled: ExecutionPlan) -> str:
    """Return a line on a checked plan: about how many tokens and dollars its models take, how long
    its critical path is, and what may write. Maps count with the most items that they may have.
    Programs have quotes of their own.
    """
    tokens = forecast.tokens(plan.nodes)
    seconds = max((spec.rank for spec in compiled.specs), default=0)
    parts = [f"about {tokens:,} tokens"]
    cost = _cost(plan, compiled)
    if cost is not None and cost > 0:
        parts.append(f"about ${dollars(cost):,.4f}")
    parts.append(f"about {duration_text(seconds)} along the longest path")
    writes = [spec.id for spec in compiled.specs if spec.effect == "write"]
    if writes:
        parts.append(f"may write: {format_names(writes, _WRITES)}")
    else:
        parts.append("writes nothing")
    return "forecast: " + "; ".join(parts)


def _cost(plan: Plan, compiled: ExecutionPlan) -> int | None:
    """Return about how many micro-dollars the model calls cost; None if
    that of one is not known.
    """
    total = 0
    for node, spec in zip(plan.nodes, compiled.specs, strict=True):
        priced = _priced(node, spec)
        if priced is None:
            return None
        total += priced
    return total


def _priced(node: Node, spec: NodeSpec) -> int | None:
    tokens = forecast.tokens([node])
    if not tokens:
        return 0
    if spec.calls_model and spec.price and not spec.stages:
        return tokens * spec.price // 1_000_000
    return None
