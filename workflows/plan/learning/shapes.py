"""Plans of earlier runs as planners see them: tools and references, with `…` for whatever
else was written there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sennit.workflows.plan.language.nodes import AgentCall, MapNode, ModelCall, Node, Plan, ToolCall
from sennit.workflows.plan.language.references import parse_reference, path_text, references_in
from sennit.workflows.plan.learning.limits import (
    MAX_PLAN_LINES,
    MAX_SHAPE_CHARACTERS,
    MAX_SHOWN_PLANS,
)
from sennit.workflows.plan.learning.patterns import PatternTable, PlanRow
from sennit.workflows.plan.learning.trajectory import PlanShape

_LITERAL = "…"
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")


def shape_of(plan: Plan, versions: Mapping[str, str]) -> PlanShape | None:
    """Return the shape of a plan, None if it is too long for an example or has parts that have no
    line: programs, and turns of tool loops. `versions` are the keys of tools by their names.
    """
    if len(plan.nodes) > MAX_PLAN_LINES:
        return None
    numbers = {node.id: number for number, node in enumerate(plan.nodes, 1)}
    lines: list[str] = []
    tools: dict[str, None] = {}
    for node in plan.nodes:
        written = _node(node, numbers)
        if written is None:
            return None
        line = f"{numbers[node.id]}. {written}"
        if len(line) > MAX_SHAPE_CHARACTERS:
            line = f"{line[: MAX_SHAPE_CHARACTERS - 1]}{_LITERAL}"
        lines.append(line)
        for name in _tools_of(node):
            tools[versions.get(name, name)] = None
    return PlanShape(lines=tuple(lines), tools=tuple(tools))


def similar_plans(table: PatternTable, keys: Iterable[str], words: Sequence[str]) -> list[PlanRow]:
    """Return at most three plans that a run with these tools could have had, the
    most similar goal first.

    A plan that calls another tool, or the same with other schemas, is none; neither is one whose
    goal has no word in common with this one.
    """
    allowed = set(keys)
    asked = set(words)
    candidates = []
    for row in table.plans:
        is_callable = allowed.issuperset(row.shape.tools)
        if is_callable and not asked.isdisjoint(row.words):
            candidates.append(row)

    def rank(row: PlanRow) -> tuple[float, int, int]:
        shared = len(asked.intersection(row.words))
        similarity = shared / len(asked.union(row.words))
        tool_count = len(row.shape.tools)
        return (-similarity, -tool_count, -row.ended)

    return sorted(candidates, key=rank)[:MAX_SHOWN_PLANS]


def _node(node: Node, numbers: Mapping[str, int]) -> str | None:
    """Return a node as planners write it, without its literals; None if a line cannot say it."""
    if node.when is not None:
        return None
    waits = ""
    if node.needs:
        waits = f", needs=[{_names(node.needs, numbers)}]"
    if isinstance(node, MapNode):
        if len(node.do) != 1:
            return None
        inner = _call(node.do[0], numbers, "")
        if inner is None:
            return None
        over = _value(node.over, numbers).strip('"')
        return f"map({over}, {inner}{waits})"
    if node.kind == "join":
        return f"join({_names(node.inputs, numbers)}{waits})"
    return _call(node, numbers, waits)


def _call(work: Any, numbers: Mapping[str, int], waits: str) -> str | None:
    if isinstance(work, ToolCall):
        arguments = []
        for name, value in work.args.items():
            arguments.append(f"{_argument(name)}={_value(value, numbers)}")
        listed = ", ".join(arguments)
        return f"{work.tool}({listed}{waits})"
    if isinstance(work, ModelCall) and work.further_turn is None:
        word = "answer" if work.role == "joiner" else "llm"
        read = ""
        for name in getattr(work, "inputs", ()):
            read += f", {_name(name, numbers)}"
        prompt = _value(work.prompt, numbers)
        return f"{word}({prompt}{read}{waits})"
    if isinstance(work, AgentCall):
        return f"agent({_value(work.goal, numbers)}{waits})"
    return None


def _argument(name: str) -> str:
    """Return the name of an argument. A tool that takes any may be given one that is a
    text of the plan's author.
    """
    if _ARGUMENT.fullmatch(name):
        return name
    return _LITERAL


def _value(value: Any, numbers: Mapping[str, int]) -> str:
    """Return a value without its literals: the references in it, as a planner writes them."""
    names: dict[str, None] = {}
    for reference in references_in(value):
        name = _name(reference.node, numbers)
        if reference.path:
            path = path_text(reference.path)
            name = f"${{{name[1:]}{path}}}"
        names[name] = None
    shown = " ".join(names)
    if not isinstance(value, str):
        if not names:
            return _LITERAL
        return f'"{_LITERAL} {shown}"'
    if not names:
        return f'"{_LITERAL}"'
    if parse_reference(value) is not None:
        return shown
    return f'"{_LITERAL} {shown}"'


def _name(name: str, numbers: Mapping[str, int]) -> str:
    """Return a node by its line: `$2`. Other names, such as `goal` and `item`, stay."""
    return f"${numbers.get(name, name)}"


def _names(names: Sequence[str], numbers: Mapping[str, int]) -> str:
    written = [_name(name, numbers) for name in names]
    return ", ".join(written)


def _tools_of(node: Node) -> list[str]:
    works: Sequence[Any] = (node,)
    if isinstance(node, MapNode):
        works = node.do
    return [work.tool for work in works if isinstance(work, ToolCall)]
