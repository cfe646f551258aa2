"""A plan's declared inputs against the values a run is started with."""

from collections.abc import Iterator
from typing import Any

from sennit.workflows.plan.checking.output_types import schema_of_input
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.conditions import comparisons_of
from sennit.workflows.plan.language.facts import FactTooLarge, facts_of
from sennit.workflows.plan.language.json_checks import first_violation
from sennit.workflows.plan.language.nodes import MapNode, Plan
from sennit.workflows.plan.language.problems import Problem, no_such_input
from sennit.workflows.plan.language.references import BindError, parse_reference, resolve
from sennit.workflows.plan.language.text import format_name


def bind_inputs(plan: Plan, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return every declared input with its value: the given one, else the default."""
    return {name: inputs.get(name, spec.default) for name, spec in plan.inputs.items()}


def input_problems(plan: Plan, inputs: dict[str, Any]) -> Iterator[Problem]:
    """Yield unknown, missing and mistyped inputs; when there are none, those that maps and
    conditions cannot use.
    """
    is_valid = True
    for problem in _each(plan, inputs):
        is_valid = False
        yield problem
    if is_valid:
        values = bind_inputs(plan, inputs)
        yield from _lists(plan, values)
        yield from _tested(plan, values)


def _each(plan: Plan, inputs: dict[str, Any]) -> Iterator[Problem]:
    violation = first_violation(inputs)
    if violation is not None:
        place, sentence = violation
        yield Problem("input", ("inputs", *place), sentence)
        return
    for name in inputs:
        if name not in plan.inputs:
            yield Problem("input", ("inputs", name), no_such_input(name, plan.inputs))
    for name, spec in plan.inputs.items():
        if name not in inputs and spec.is_required:
            message = f"input `{name}` is missing; give it with --input {name}=..."
            yield Problem("input", ("inputs", name), message)
        elif name in inputs:
            schema = schema_of_input(spec)
            for path, sentence in json_schema.violations(inputs[name], schema):
                yield Problem("input", ("inputs", name, *path), sentence)


def _lists(plan: Plan, values: dict[str, Any]) -> Iterator[Problem]:
    for index, node in enumerate(plan.nodes):
        if not isinstance(node, MapNode):
            continue
        over = parse_reference(node.over)
        if over is None or over.node != "input":
            continue
        at = ("nodes", index, "over")
        try:
            items = resolve(over, values)
        except BindError as error:
            yield Problem("input", at, str(error))
            continue
        if not isinstance(items, list):
            yield Problem("input", at, f"{format_name(node.over)} is not a list; give one")
        elif len(items) > node.max_items:
            message = (
                f"{format_name(node.over)} has {len(items)} items; max_items is {node.max_items}"
            )
            yield Problem("input", at, message)


def _tested(plan: Plan, values: dict[str, Any]) -> Iterator[Problem]:
    for index, node in enumerate(plan.nodes):
        for place, test in comparisons_of(node.when, ("nodes", index, "when")):
            reference = parse_reference(test.ref)
            if reference is None or reference.node != "input" or test.op == "exists":
                continue
            try:
                facts_of(values, [reference.fact])
            except FactTooLarge as error:
                yield Problem("input", (*place, "ref"), f"a condition tests it, but {error}")
