"""Whether a node's call can be made: its tool and arguments, its model, and the
tools that a model may use.
"""

from collections.abc import Iterator
from typing import Any

from sennit.workflows.plan.checking.output_types import Tools
from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.dependencies import works_of
from sennit.workflows.plan.language.json_schema import Violation
from sennit.workflows.plan.language.nodes import (
    TURN_TOOLS,
    Instead,
    MapNode,
    ModelCall,
    Node,
    ToolCall,
)
from sennit.workflows.plan.language.problems import Problem, Where, no_such_tool
from sennit.workflows.plan.language.references import parse_reference, references_in
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import format_name
from sennit.workflows.plan.limits import MAX_PATTERN_CHARACTERS


def argument_problems(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with a tool call: an unknown tool, unknown, missing
    or mistyped arguments.

    Nothing without a catalogue.
    """
    tools = scope.tools
    if tools is None:
        return
    for field, work in works_of(node):
        if work.kind == "tool":
            inside = (*where, *field)
            yield from _arguments(scope, tools, node, work, inside)


def _arguments(
    scope: SymbolTable, tools: Tools, node: Node, work: ToolCall, inside: Where
) -> Iterator[Problem]:
    tool = tools.get(work.tool)
    if tool is None:
        message = no_such_tool(work.tool, tools)
        yield Problem("unknown_tool", (*inside, "tool"), message)
        return
    schema = tool.get("schema") or {}
    defs = json_schema.definitions(schema)

    def on_text(where: Where, text: str, part: Schema) -> Iterator[Violation] | None:
        return _text_violations(scope, node, where, text, part, defs)

    for where, sentence in json_schema.violations(work.args, schema, on_text=on_text):
        at = inside
        if "args" in work.model_fields_set:
            at = (*inside, "args", *where)
        yield Problem("argument", at, f"{work.tool}: {sentence}")


def _text_violations(
    scope: SymbolTable, node: Node, where: Where, text: str, schema: Schema, defs: dict[str, Any]
) -> Iterator[Violation] | None:
    """Judge a string with references: a reference alone keeps its type,
    inside text it becomes text.
    """
    if "$" not in text or next(references_in(text), None) is None:
        if len(text) > MAX_PATTERN_CHARACTERS and "pattern" in schema:
            return json_schema.violations(text, {**schema, "pattern": None, "$defs": defs}, where)
        return None
    types = frozenset(("string",))
    gives = "text with references in it is"
    whole = parse_reference(text)
    if whole is not None:
        reader: Node | None = None
        if isinstance(node, MapNode):
            reader = node
        types = scope.outputs.types_at(whole, reader)
        gives = f"{format_name(text)} gives"
    wanted = json_schema.types_of(schema, defs)
    if _may_fit(types, wanted):
        return iter(())
    given = " or ".join(sorted(types))
    asked = " or ".join(sorted(wanted))
    return iter([(where, f"{gives} {given}; wanted {asked}")])


def _may_fit(types: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether a value of one of these types may have a wanted one. Nothing is known
    where there are no types.
    """
    if not types or not wanted or types & wanted:
        return True
    return "integer" in types and "number" in wanted


def model_problems(node: Node, index: int, models: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the problem of a model that no provider serves."""
    for field, work in works_of(node):
        if work.kind != "llm" or work.model is None:
            continue
        provider = work.model.partition(":")[0]
        if provider not in models:
            known = ", ".join(models)
            message = f"no provider serves {format_name(work.model)}; there are {known}"
            yield Problem("model", ("nodes", index, *field, "model"), message)


def turn_problems(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with the tools of a model or sub-agent, and with a
    model's further turns.
    """
    for field, work in works_of(node):
        inside = (*where, *field)
        if isinstance(work, ModelCall):
            yield from _turns(node, work, inside)
        if isinstance(work, ToolCall):
            continue
        for position, name in enumerate(work.tools or ()):
            if scope.tools is not None and name not in scope.tools:
                message = no_such_tool(name, scope.tools)
                yield Problem("unknown_tool", (*inside, "tools", position), message)


def _turns(node: Node, work: ModelCall, inside: Where) -> Iterator[Problem]:
    over = work.context.over
    on_error = work.on_error if isinstance(node, MapNode) else node.on_error
    if isinstance(on_error, Instead) and work.loops:
        has = f"`over: {over}`"
        if work.tools:
            has = "tools"
        message = f"a model with {has} cannot have a fallback node; use a fallback value or skip"
        yield Problem("instead", inside, message)
    if work.turn_rule is not None:
        yield from turn_rule_problems(work, (*inside, "turn"))
    if over == "reference" and work.max_turns < 2:
        message = "is 1, and a model that reads on needs a turn to answer; write 2 or more"
        yield Problem("limit", (*inside, "max_turns"), message)


def turn_rule_problems(work: ModelCall, at: Where) -> Iterator[Problem]:
    """Yield why a model cannot go on while some of its calls run."""
    if not work.tools:
        yield Problem(
            "turn",
            at,
            "says when the next turn of a model with `tools` starts; this one calls none",
        )
    if work.workspace is not None:
        message = (
            "is `all` for a model with a `workspace`: each call works on what the one before it "
            "has left"
        )
        yield Problem("turn", at, message)
    for name in work.tools:
        if name in TURN_TOOLS:
            message = (
                f"gives the model a call {name} of its own; the tool {name} must have another name"
            )
            yield Problem("turn", at, message)
