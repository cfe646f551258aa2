"""What is wrong with a model call, or with the tools of a sub-agent: models and tools that are not there, and what a
call with further turns cannot be.
"""

from collections.abc import Iterator

from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.language import dependencies
from workflows.plan.language.nodes import AgentCall, Instead, MapNode, ModelCall, Node
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.text import format_name, nearest_or_known


def model_problems(node: Node, index: int, models: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the problem of a model that nobody serves."""
    work = dependencies.work_of(node)
    if isinstance(work, ModelCall) and work.model is not None and work.model.partition(":")[0] not in models:
        told = f"model {format_name(work.model)} is not built yet; built: {', '.join(models)}"
        yield Problem("model", ("nodes", index, *(("do",) if isinstance(node, MapNode) else ()), "model"), told)


def turn_problems(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with the tools that a model or a sub-agent may use, and with a model's further turns."""
    work = dependencies.work_of(node)
    inside: Where = (*where, "do") if isinstance(node, MapNode) else where
    if isinstance(work, ModelCall):
        yield from _turns(node, work, where, inside)
    for position, name in enumerate((isinstance(work, ModelCall | AgentCall) and work.tools) or ()):
        if scope.tools is not None and name not in scope.tools:
            hint = nearest_or_known(name, sorted(scope.tools))
            yield Problem("unknown_tool", (*inside, "tools", position), f"there is no tool {format_name(name)}{hint}")


def _turns(node: Node, work: ModelCall, where: Where, inside: Where) -> Iterator[Problem]:
    over = work.context.over
    if isinstance(node, MapNode):
        if work.tools:
            yield Problem(
                "not_built", (*inside, "tools"), "a map's template cannot loop over tools yet; leave `tools` out"
            )
        if over != "truncate":
            told = f"a map's template cannot {over} what is too long yet; leave `over` out"
            yield Problem("not_built", (*inside, "context", "over"), told)
    elif isinstance(node.on_error, Instead) and (work.loops or over == "summarise"):
        has = "tools" if work.tools else f"`over: {over}`"
        yield Problem("instead", where, f"a model with {has} cannot have a stand-in; use a fallback or skip")
    if over == "reference" and work.max_turns < 2:
        told = "is 1, and a model that reads on needs a turn to answer; write 2 or more"
        yield Problem("limit", (*inside, "max_turns"), told)
