"""Tools as a planner reads them: a signature, what it does, what it gives."""

from collections.abc import Iterable
from typing import Any

from workflows.plan.language import json_schema
from workflows.plan.language.text import printable

DESCRIPTION_CHARACTERS = 500
_LEVELS = 4


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


def _argument(name: str, part: json_schema.Schema, defs: dict[str, Any], required: Iterable[str]) -> str:
    default = f" = {printable(repr(part['default']), 40)}" if part.get("default") is not None else ""
    optional = "" if name in required or default else "?"
    return f"{name}{optional}: {shape(part, defs)}{default}"


def _properties(wanted: Any) -> dict[str, Any]:
    found = wanted.get("properties") if isinstance(wanted, dict) else None
    return {name: part for name, part in found.items() if isinstance(part, dict)} if isinstance(found, dict) else {}


def _line(text: Any) -> str:
    return printable(" ".join(str(text).split()), DESCRIPTION_CHARACTERS)


def shape(part: Any, defs: dict[str, Any], level: int = 0) -> str:
    """Return a schema in a few words: `{count: integer, items: [{path: string}]}`."""
    part = json_schema.resolve(part, defs)
    choices = json_schema.choices_of(part)
    if level >= _LEVELS:
        return "any"
    if choices:
        return "|".join(dict.fromkeys(shape(choice, defs, level + 1) for choice in choices))
    if isinstance(part.get("enum"), list):
        return "|".join(printable(repr(value), 40) for value in part["enum"][:20])
    if fields := _properties(part):
        return "{" + ", ".join(f"{name}: {shape(inner, defs, level + 1)}" for name, inner in fields.items()) + "}"
    if isinstance(part.get("items"), dict):
        return f"[{shape(part['items'], defs, level + 1)}]"
    return "|".join(sorted(json_schema.types_of(part, defs))) or "any"
