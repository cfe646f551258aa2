"""Which model serves each call of a plan, on which queue, at what price. `models` are
those of a run by role.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sennit.activities.llm.models import OFFLINE
from sennit.activities.programs.reading import Read, Unreadable, ask, problem_of
from sennit.activities.providers.model import OPEN_REPLY_TOKENS
from sennit.activities.providers.prices import price_of, price_to_add, unpriced
from sennit.workflows.messages import queues
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import AgentCall, ModelCall, Node, Plan, ToolCall
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.text import format_name, format_names


def queue_of(models: dict[str, list[str]], tools: dict[str, dict[str, Any]], node: Node) -> str:
    """Return the task queue of a node's activity."""
    work = dependencies.work_of(node)
    if isinstance(work, ToolCall):
        return str(tools[work.tool].get("queue", queues.TOOLS))
    if not isinstance(work, ModelCall):
        return queues.TOOLS
    return queues.llm_queue(_model(models, work))


def needs_default_models(plan: dict[str, Any]) -> bool:
    """Whether a node of a plan, not yet checked, calls a model without naming it."""
    nodes = plan.get("nodes")
    if not isinstance(nodes, list):
        return False
    works: list[Any] = []
    for node in nodes:
        if isinstance(node, dict):
            do = node.get("do", node)
            if isinstance(do, list):
                works += do
            else:
                works.append(do)
    for work in works:
        if not isinstance(work, dict) or work.get("kind") not in ("llm", "program"):
            continue
        if not work.get("model"):
            return True
    return False


def called_models(models: dict[str, list[str]], plan: Plan) -> list[str]:
    """Return the models that a plan's nodes call, each once, without those that only take over."""
    called = [_model(models, call) for call in _model_calls(plan)]
    return list(dict.fromkeys(called))


def _model_calls(plan: Plan) -> Iterator[ModelCall]:
    """Yield the model calls of a plan, but for those in scripts."""
    for node in plan.nodes:
        for _, work in dependencies.works_of(node):
            if isinstance(work, ModelCall):
                yield work


def serving_models(models: Mapping[str, Sequence[str]], call: ModelCall) -> Sequence[str]:
    """Return the models of a call, in order of preference."""
    if call.model:
        return (call.model,)
    return models.get(call.role) or OFFLINE


def _model(models: Mapping[str, Sequence[str]], call: ModelCall) -> str:
    """Return the model that a call asks first."""
    return serving_models(models, call)[0]


def price_a_million(models: dict[str, list[str]], call: ModelCall | AgentCall) -> int:
    """Return the most that a million tokens of a call, or of a sub-agent's planner, cost, in
    millionths of a dollar; 0 where no price is known.
    """
    if isinstance(call, AgentCall):
        name = models.get("planner", OFFLINE)[0]
    else:
        name = _model(models, call)
    return max(price_of(name) or (0,))


def longest_reply(models: dict[str, list[str]], limit: int | None, call: ModelCall) -> int:
    """Return the most tokens that the reply of a call may have under a budget, with what its model
    thinks: its `limit`, if it has one. The offline rules take 0.
    """
    if _model(models, call) in OFFLINE:
        return 0
    if limit is None:
        return OPEN_REPLY_TOKENS
    return limit


def price_warnings(models: dict[str, list[str]], plan: Plan) -> tuple[str, ...]:
    """Return a warning where models are called whose price is not known."""
    warning = unpriced(called_models(models, plan))
    if not warning:
        return ()
    return (warning,)


def price_problems(models: dict[str, list[str]], plan: Plan) -> list[Problem]:
    """Return what keeps a plan from being run within a budget of money: a model whose price is not
    known, be it one that only takes over.
    """
    names: set[str] = set()
    for call in _model_calls(plan):
        if call.model:
            names.add(call.model)
        else:
            names.update(models.get(call.role, ()))
    if any(map(dependencies.programs_in, plan.nodes)):
        names.update(_models_of(models))
    missing = price_to_add(names)
    if not missing:
        return []
    return [Problem("price", (), missing)]


def disallowed_models(nodes: Iterable[Any], models: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a problem for each call, its shape not yet known, that names a model which serves no
    role of the run. What programs call is in their scripts: see `model_problems`.
    """
    allowed = _models_of(models)
    problems = []
    for place, work in _works(nodes):
        model = work.get("model")
        if isinstance(model, str) and model not in allowed:
            message = (
                f"{format_name(model)} is no model of this run ({format_names(allowed)}); leave "
                "`model` out"
            )
            problems.append(f"{place}.model: {message}")
    return problems


async def model_problems(
    read: Read, nodes: Sequence[Any], models: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return a problem for each call of nodes that a model has written, those in scripts too, if
    the call may ask a model which serves no role of the run.
    """
    problems = disallowed_models(nodes, models)
    for place, work in _works(nodes):
        script = work.get("script")
        if not isinstance(script, str):
            continue
        try:
            found = await ask(read, "models", script, _models_of(models))
        except Unreadable as error:
            found = [str(problem_of(error))]
        for problem in found:
            problems.append(f"{place}.script, {problem}")
    return problems


def _models_of(models: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted(set[str]().union(*models.values()))


def _works(nodes: Iterable[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each call or program in nodes, with the place of its node, and in a
    chain with its place there.
    """
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            continue
        do = node.get("do", node)
        if isinstance(do, dict):
            yield f"nodes[{index}]", do
        elif isinstance(do, list):
            for position, work in enumerate(do):
                if isinstance(work, dict):
                    yield f"nodes[{index}].do[{position}]", work
