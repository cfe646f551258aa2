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
from sennit.workflows.plan.language.text import printable


def format_tools(catalogue: Iterable[dict[str, Any]]) -> str:
    """Return a few lines for each tool."""
    return "\n\n".join(map(_tool, catalogue)) or "There are no tools in this run."


def _tool(entry: dict[str, Any]) -> str:
    wanted = entry.get("schema") or {}
    fields, defs = _properties(wanted), json_schema.definitions(wanted)
    required = wanted.get("required") or ()
    arguments = ", ".join(_argument(name, part, defs, required) for name, part in fields.items())
    about = [f"  {name}: {_line(part['description'])}" for name, part in fields.items() if part.get("description")]
    gives = entry.get("output_schema")
    lines = [f"{entry['name']}({arguments})", f"  {_line(entry.get('description') or '')}", *about]
    if isinstance(gives, dict):
        lines.append(f"  gives {shape(gives, json_schema.definitions(gives))}")
    return "\n".join(line for line in lines if line.strip())


def description(entry: dict[str, Any]) -> str:
    """Return what a tool does and gives, for a model that is told its arguments as a schema."""
    gives = entry.get("output_schema")
    result = f" Gives {shape(gives, json_schema.definitions(gives))}." if isinstance(gives, dict) else ""
    return f"{_line(entry.get('description') or '')}{result}"


def _argument(name: str, part: json_schema.Schema, defs: dict[str, Any], required: Iterable[str]) -> str:
    default = f" = {printable(repr(part['default']), 40)}" if part.get("default") is not None else ""
    optional = "" if name in required or default else "?"
    return f"{name}{optional}: {shape(part, defs)}{default}"


def _properties(wanted: Any) -> dict[str, Any]:
    found = wanted.get("properties") if isinstance(wanted, dict) else None
    return {name: part for name, part in found.items() if isinstance(part, dict)} if isinstance(found, dict) else {}


def _line(text: Any) -> str:
    return printable(" ".join(str(text).split()), MAX_DESCRIPTION_CHARACTERS)


def shape(part: Any, defs: dict[str, Any]) -> str:
    """Return a schema in a few words: `{count: integer, items: [{path: string}]}`; of a large one only a part."""
    return _shape(part, defs, 0, iter(range(MAX_SHAPE_PARTS)))


def _shape(part: Any, defs: dict[str, Any], level: int, room: Iterator[int]) -> str:
    if level >= MAX_SHAPE_LEVELS or next(room, None) is None:
        return "any"
    part = json_schema.resolve(part, defs)
    if choices := json_schema.choices_of(part):
        return "|".join(dict.fromkeys(_shape(choice, defs, level + 1, room) for choice in choices[:MAX_SHAPE_FIELDS]))
    if isinstance(part.get("enum"), list):
        return "|".join(printable(repr(value), 40) for value in part["enum"][:20])
    if fields := _properties(part):
        first = [*fields.items()][:MAX_SHAPE_FIELDS]
        inside = [f"{name}: {_shape(inner, defs, level + 1, room)}" for name, inner in first]
        return "{" + ", ".join(inside + ["…"] * (len(fields) > MAX_SHAPE_FIELDS)) + "}"
    if isinstance(part.get("items"), dict):
        return f"[{_shape(part['items'], defs, level + 1, room)}]"
    return "|".join(sorted(json_schema.types_of(part, defs))) or "any"
