"""What a plan that a model has written may not decide for the person who pays for it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workflows.plan.language.text import format_name, format_names


def disallowed_models(nodes: Iterable[Any], models: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a problem for each node, its shape not yet known, that names a model which serves no role of the run."""
    allowed = sorted({name for names in models.values() for name in names})
    problems = []
    for index, node in enumerate(nodes):
        work = node.get("do", node) if isinstance(node, dict) else None
        model = work.get("model") if isinstance(work, dict) else None
        if isinstance(model, str) and model not in allowed:
            told = f"{format_name(model)} is no model of this run ({format_names(allowed)}); leave `model` out"
            problems.append(f"nodes[{index}].model: {told}")
    return problems
