"""Conditions that could never be decided: found before the run, by their form and by the
types of what they test.
"""

from collections.abc import Iterator
from typing import Any

from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language.conditions import Condition, Test, comparisons_of
from sennit.workflows.plan.language.dependencies import names_in, stage_place
from sennit.workflows.plan.language.json_schema import type_of
from sennit.workflows.plan.language.nodes import MapNode, Node
from sennit.workflows.plan.language.problems import Problem, Where
from sennit.workflows.plan.language.references import (
    Reference,
    parse_reference,
    parse_status_reference,
)
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_value

STATUSES = ("succeeded", "failed", "skipped", "cancelled")
_ORDER = ("lt", "le", "gt", "ge")


def condition_problems(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with a node's `when`, and with those in a map's `do`."""
    yield from _problems(scope, node, node.when, where)
    if not isinstance(node, MapNode):
        return
    for position, stage in enumerate(node.do):
        inside = (*where, *stage_place(node, position))
        yield from _problems(scope, node, stage.when, inside)


def _problems(
    scope: SymbolTable, node: Node, condition: Condition | None, where: Where
) -> Iterator[Problem]:
    for at, test in comparisons_of(condition, (*where, "when")):
        reference = parse_reference(test.ref)
        status = parse_status_reference(test.ref)
        sentence = _value(scope, test)
        if sentence:
            yield Problem("condition", at, sentence)
        if status is not None and "do" in where:
            message = (
                "for each item only values can be tested; what follows a node in `do` runs only "
                "if that has one"
            )
            yield Problem("condition", (*at, "ref"), message)
        elif status is not None:
            yield from scope.check_name(status.node, node, (*at, "ref"))
            if not sentence:
                yield from _status(test, status.name, at)
        elif reference is None:
            message = (
                f"{format_value(test.ref)} is not a reference; write `$node.path`, `$node:status` "
                "or `$node:error.type`"
            )
            yield Problem("reference", (*at, "ref"), message)
        else:
            yield from scope.check_reference(reference, node, (*at, "ref"))
            if not sentence:
                is_of_item = "do" in where and reference.node in names_in(node)
                sentence = _types(scope, test, reference, node if is_of_item else None)
                if sentence:
                    yield Problem("condition", at, sentence)


def _value(scope: SymbolTable, test: Test) -> str | None:
    """Return why a test cannot compare with its constant."""
    has_value = "value" in test.model_fields_set
    value = test.value
    op = test.op
    if op == "exists":
        if has_value:
            return "`exists` takes no `value`; leave it out"
        return None
    if not has_value:
        return f"`value` is missing: what `{op}` compares with"
    if op == "in":
        if isinstance(value, list) and value:
            return None
        return f"`in` needs a list of values, not {format_value(value)}"
    if isinstance(value, list | dict):
        return (
            f"`{op}` compares with one value, not with {format_value(value)}; use `in` for several"
        )
    if op == "contains" and not isinstance(value, str):
        return f"`contains` looks for text, not for {format_value(value)}"
    if op in _ORDER and (value is None or isinstance(value, bool)):
        return f"`{op}` compares numbers or texts, not {format_value(value)}"
    reference = scope.format_reference(value)
    if not reference:
        return None
    return f"a condition compares with a constant; {reference} would stay text"


def _status(test: Test, name: str, at: Where) -> Iterator[Problem]:
    if test.op in _ORDER:
        yield Problem(
            "condition", (*at, "op"), f"a status has no order; use eq, ne or in, not {test.op}"
        )
    if name != "status" or test.op not in ("eq", "ne", "in"):
        return
    for value in _values(test):
        if value not in STATUSES:
            near = ""
            if isinstance(value, str):
                near = did_you_mean(value, STATUSES)
            statuses = ", ".join(STATUSES)
            message = f"no node ends as {format_value(value)}; write one of {statuses}{near}"
            yield Problem("condition", (*at, "value"), message)


def _values(test: Test) -> list[Any]:
    """Return the constants that a test compares with: several for `in`."""
    if isinstance(test.value, list):
        return test.value
    return [test.value]


def _types(scope: SymbolTable, test: Test, reference: Reference, tested: Node | None) -> str | None:
    """Return why a value of the reference's type can never be compared so."""
    have = scope.outputs.types_at(reference, tested)
    if not have or test.op == "exists":
        return None
    types = " or ".join(sorted(have))
    gives = f"{format_name(test.ref)} gives {types}"
    if have <= {"array", "object"}:
        return f"{gives}; a condition tests a text, a number, true, false or null in it"
    if test.op == "contains":
        if "string" in have:
            return None
        return f"{gives}; `contains` looks into text"
    for value in _values(test):
        if _comparable(type_of(value), have):
            return None
    return f"{gives}; comparing it with {format_value(test.value)} by `{test.op}` tells nothing"


def _comparable(kind: str, have: frozenset[str]) -> bool:
    numbers = {"integer", "number"}
    if kind in have:
        return True
    return kind in numbers and bool(have & numbers)
