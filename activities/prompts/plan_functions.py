"""Plans as native tool calls: the functions that a planner may call, and what it is told of them."""

from collections.abc import Sequence
from typing import Any

from sennit.activities.limits import MAX_PLANNED_NODES
from sennit.activities.prompts.planner import RULES, SYSTEM
from sennit.activities.prompts.tools import description
from sennit.activities.providers.model import parameters_of
from sennit.workflows.plan.planner_format.calls import FORMS as CALLS

Schema = dict[str, Any]

FORMS = """\
Write a plan by calling functions, all of them in this one reply, in order. Nothing is run before you have called it,
and no result comes back to you. Calls run at the same time unless one refers to another; a call starts the moment all
that it refers to has ended. Calls are the lines of the plan: the first is line 1, the second line 2.

- In arguments, `"$1"` is the whole result of line 1, `"$1.items[0].path"` a part of it, alone or within a text, and
  also where the schema wants a number or a list; refer only to lines before. `$goal` is the goal. A dollar is `$$`.
- `llm` asks a model, which knows only what its prompt says and refers to. It gives text, or JSON with an
  `output_schema`.
- `map` makes one call for each item of a list, all at the same time, and gives the list of their results. In the
  arguments of the call in `do`, `$item` is the item, `$item.path` a part of it.
- `agent`, and `llm` with `tools`, call tools themselves. Use them only where no plan can be made before.
- `join` is the last call: a model answers the goal from the results named. It is told of failed ones too. Name the
  lines that hold the values, and those that hold the sources. With `policy` it gives the first result that comes.
"""
EXAMPLE = """
Example. Goal: How much higher is Mont Blanc than Kilimanjaro? Four calls in one reply:
search {"query": "height of Mont Blanc"}
search {"query": "height of Kilimanjaro"}
llm {"prompt": "How much higher is the first? $1 $2"}
join {"results": ["$1", "$2", "$3"]}
"""
_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_REFERENCE: Schema = {"type": "string", "pattern": r"^[$]([0-9]+|goal|item|input)([.][A-Za-z0-9_]+|\[[0-9]+\])*$"}
_PLAIN = {"type", "title", "description", "default", "examples"}


def system() -> str:
    """Return what every goal has in common; the tools are told as functions."""
    rules = RULES.format(most=MAX_PLANNED_NODES, form="calls")
    return SYSTEM.format(forms=FORMS, tools="They are the functions.", rules=rules, examples=EXAMPLE)


def functions(catalogue: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the functions of a run's tools and of the other calls of a plan. A string with a reference is allowed
    wherever a tool's schema wants another type.
    """
    tools = [entry for entry in catalogue if entry["name"] not in CALLS]
    named = {"type": "array", "items": {"enum": [entry["name"] for entry in tools]}}
    looped: dict[str, Schema] = {"tools": named, "max_turns": {"type": "integer"}} if tools else {}
    do = {"tool": {"enum": [*(entry["name"] for entry in tools), "llm"]}, "arguments": _OBJECT}
    forms: list[tuple[str, str, dict[str, Schema], int]] = [
        ("llm", "Ask a model.", {"prompt": _TEXT, "output_schema": _OBJECT, **looped}, 1),
        *([("agent", "Give a part to a sub-agent.", {"goal": _TEXT, "tools": named}, 1)] if tools else []),
        ("map", "Make one call for each item of a list.",
         {"over": _REFERENCE, "do": _object(do, 2), "max_items": {"type": "integer"}}, 2),
        ("gate", "Ask a person, and wait for the answer.", {"question": _TEXT}, 1),
        ("join", "End the plan with an answer from these results.",
         {"results": {"type": "array", "items": _REFERENCE}, "text": _TEXT, "policy": {"enum": ["first"]}}, 0),
    ]  # fmt: skip
    known = [(entry["name"], description(entry), _referable(parameters_of(entry))) for entry in tools]
    known += [(name, about, _object(fields, required)) for name, about, fields, required in forms]
    return tuple({"name": name, "description": about, "parameters": schema} for name, about, schema in known)


def _object(fields: dict[str, Schema], required: int) -> Schema:
    """Return the schema of an object that has to have the first fields."""
    return {"type": "object", "properties": fields, "required": [*fields][:required], "additionalProperties": False}


def _referable(schema: Any) -> Any:
    """Return a schema in which a reference may stand in the place of each inner value."""
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for name, part in schema.items():
        if name in ("properties", "$defs") and isinstance(part, dict):
            change = _or_reference if name == "properties" else _referable
            found[name] = {key: change(inner) for key, inner in part.items()}
        elif name == "items":
            found[name] = _or_reference(part)
        elif name in ("anyOf", "oneOf") and isinstance(part, list):
            found[name] = [_referable(choice) for choice in part]
    return found


def _or_reference(part: Any) -> Any:
    """Return the schema of a value that may be a reference too; a plain text may be one as it is."""
    if not isinstance(part, dict) or (part.get("type", "string") == "string" and part.keys() <= _PLAIN):
        return part
    return {"anyOf": [_referable(part), _REFERENCE]}
