"""A node's arguments against its tool's schema, and references in them against what their nodes give."""

from collections.abc import Iterator
from typing import Any

from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.language import dependencies, json_schema
from workflows.plan.language.nodes import MapNode, Node, ToolCall
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.references import parse_reference, references_in
from workflows.plan.language.text import format_name, nearest_or_known


def argument_problems(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with a node's call: unknown tool, unknown or missing or mistyped arguments.

    Nothing without a catalogue.
    """
    work = dependencies.work_of(node)
    if scope.tools is None or not isinstance(work, ToolCall):
        return
    inside: Where = (*where, "do") if isinstance(node, MapNode) else where
    tool = scope.tools.get(work.tool)
    if tool is None:
        hint = nearest_or_known(work.tool, sorted(scope.tools))
        yield Problem("unknown_tool", (*inside, "tool"), f"there is no tool {format_name(work.tool)}{hint}")
        return
    wanted = tool.get("schema") or {}
    defs = json_schema.definitions(wanted)

    def on_text(place: Where, text: str, part: json_schema.Schema) -> Iterator[json_schema.Fault] | None:
        return _text_faults(scope, node, place, text, part, defs)

    for place, sentence in json_schema.violations(work.args, wanted, on_text=on_text):
        at: Where = ("args", *place) if "args" in work.model_fields_set else ()
        yield Problem("argument", (*inside, *at), f"{work.tool}: {sentence}")


def _text_faults(
    scope: SymbolTable, node: Node, place: Where, text: str, wanted: json_schema.Schema, defs: dict[str, Any]
) -> Iterator[json_schema.Fault] | None:
    """Take over strings with references: a whole one keeps its type, inside text it becomes text."""
    if "$" not in text or next(references_in(text), None) is None:
        if len(text) > json_schema.PATTERN_CHARACTERS and "pattern" in wanted:
            return json_schema.violations(text, {**wanted, "pattern": None, "$defs": defs}, place)
        return None
    whole = parse_reference(text)
    if whole is not None:
        have = scope.outputs.types_at(whole, node if isinstance(node, MapNode) else None)
    else:
        have = frozenset(("string",))
    want = json_schema.types_of(wanted, defs)
    if not have or not want or have & want or ("integer" in have and "number" in want):
        return iter(())
    what = f"{format_name(text)} gives" if whole is not None else "text with references in it is"
    return iter([(place, f"{what} {' or '.join(sorted(have))}; wanted {' or '.join(sorted(want))}")])
