"""Tools as a planner reads them: a signature, what it does, what it gives."""

from collections.abc import Iterable, Iterator
from typing import Any

from sennit.activities.limits import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_SHAPE_FIELDS,
    MAX_SHAPE_LEVELS,
    MAX_SHAPE_PARTS,
)
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import printable


def format_tools(catalogue: Iterable[dict[str, Any]]) -> str:
    """Return a few lines for each tool."""
    return "\n\n".join(map(_tool, catalogue)) or "There are no tools in this run."


def _tool(entry: dict[str, Any]) -> str:
    wanted = entry.get("schema") or {}
    defs = json_schema.definitions(wanted)
    required = wanted.get("required") or ()
    arguments: list[str] = []
    about: list[str] = []
    for name, part in _properties(wanted).items():
        arguments.append(_argument(name, part, defs, required))
        if part.get("description"):
            about.append(f"  {name}: {_line(part['description'])}")

    signature = f"{entry['name']}({', '.join(arguments)})"
    purpose = f"  {_line(entry.get('description') or '')}"
    lines = [signature, purpose, *about]
    gives = entry.get("output_schema")
    if isinstance(gives, dict):
        lines.append(f"  gives {shape(gives, json_schema.definitions(gives))}")
    return "\n".join(line for line in lines if line.strip())


def description(entry: dict[str, Any]) -> str:
    """Return what a tool does and gives, for a model that is told its arguments as a schema."""
    does = _line(entry.get("description") or "")
    gives = entry.get("output_schema")
    if isinstance(gives, dict):
        does += f" Gives {shape(gives, json_schema.definitions(gives))}."
    return does


def _argument(name: str, part: Schema, defs: dict[str, Any], required: Iterable[str]) -> str:
    """Return an argument as a signature has it: `k: integer = 3`; one that may be left out
    has a mark, or a default.
    """
    if part.get("default") is not None:
        default = printable(repr(part["default"]), 40)
        return f"{name}: {shape(part, defs)} = {default}"
    if name not in required:
        name += "?"
    return f"{name}: {shape(part, defs)}"


def _properties(wanted: Any) -> dict[str, Any]:
    if not isinstance(wanted, dict):
        return {}
    properties = wanted.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: part for name, part in properties.items() if isinstance(part, dict)}


def _line(text: Any) -> str:
    return printable(" ".join(str(text).split()), MAX_DESCRIPTION_CHARACTERS)


def shape(part: Any, defs: dict[str, Any]) -> str:
    """Return a schema in a few words: `{count: integer, items: [{path: string}]}`; of a
    large one only a part.
    """
    return _shape(part, defs, 0, iter(range(MAX_SHAPE_PARTS)))


def _shape(part: Any, defs: dict[str, Any], level: int, room: Iterator[int]) -> str:
    if level >= MAX_SHAPE_LEVELS or next(room, None) is None:
        return "any"
    part = json_schema.resolve(part, defs)
    choices = json_schema.choices_of(part)
    if choices:
        shapes: list[str] = []
        for choice in choices[:MAX_SHAPE_FIELDS]:
            shapes.append(_shape(choice, defs, level + 1, room))
        return "|".join(dict.fromkeys(shapes))
    if isinstance(part.get("enum"), list):
        values = [printable(repr(value), 40) for value in part["enum"][:20]]
        return "|".join(values)
    fields = _properties(part)
    if fields:
        inside: list[str] = []
        for name, inner in list(fields.items())[:MAX_SHAPE_FIELDS]:
            inside.append(f"{name}: {_shape(inner, defs, level + 1, room)}")
        if len(fields) > MAX_SHAPE_FIELDS:
            inside.append("…")
        return "{" + ", ".join(inside) + "}"
    if isinstance(part.get("items"), dict):
        return f"[{_shape(part['items'], defs, level + 1, room)}]"
    return "|".join(sorted(json_schema.types_of(part, defs))) or "any"
