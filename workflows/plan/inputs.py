"""A plan's declared inputs against the values a run is started with."""

from collections.abc import Iterator
from typing import Any

from workflows.plan import schema
from workflows.plan.model import Plan
from workflows.plan.problems import Problem


def bind_inputs(plan: Plan, given: dict[str, Any]) -> dict[str, Any]:
    """Return every declared input with its value: the given one, else the default."""
    return {name: given.get(name, spec.default) for name, spec in plan.inputs.items()}


def input_problems(plan: Plan, given: dict[str, Any]) -> Iterator[Problem]:
    """Yield unknown, missing and mistyped inputs."""
    for name in given:
        if name not in plan.inputs:
            known = ", ".join(plan.inputs) or "none"
            yield Problem("input", ("inputs", name), f"the plan declares no input `{name}`; declared: {known}")
    for name, spec in plan.inputs.items():
        if name not in given and "default" not in spec.model_fields_set:
            yield Problem("input", ("inputs", name), f"input `{name}` is missing; give it with --input {name}=...")
        elif name in given:
            for path, sentence in schema.faults(given[name], {"type": spec.type}):
                yield Problem("input", ("inputs", name, *path), sentence)
