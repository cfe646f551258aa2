"""JSON of a given schema from a model: asked of the server where it can, in words where it cannot, and read."""

import json
import re
from typing import Any

from sennit.activities.providers.errors import SchemaMismatch
from sennit.workflows.plan.planner_format.json_text import Unreadable, decode

Schema = dict[str, Any]

WRAP = "value"
_KEY = re.compile(r"[\"'\u201d]\w+[\"'\u201d]\s*:")
_EXAMPLE = re.compile(r"\b(?:for )?example\b|\bfor instance\b|\be\.g\.|\bmy (?:final )?answer is\b", re.IGNORECASE)
_FENCE = re.compile(r"```\w*\s*")


def wrapped(schema: Schema) -> Schema:
    """Return a schema whose root is an object, as servers demand: anything else becomes its property `value`."""
    if schema.get("type") == "object":
        return schema
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    outer: Schema = {
        "type": "object",
        "properties": {WRAP: inner},
        "required": [WRAP],
        "additionalProperties": False,
    }
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def closed_schema(schema: Any) -> Any:
    """Return a schema whose objects allow the properties they name and no others, as some servers demand."""
    if isinstance(schema, list):
        return [closed_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: part if name in ("enum", "const") else closed_schema(part) for name, part in schema.items()}
    return {"additionalProperties": False, **inner} if isinstance(schema.get("properties"), dict) else inner


def strict_schema(schema: Schema) -> Schema:
    """Return a schema whose objects require all their properties: null is added to the optional ones. Optional ones
    and choices that are no strict schema even so are left out.
    """
    found = dict(schema)
    if isinstance(fields := schema.get("properties"), dict):
        required = schema.get("required", ())
        kept = {name: strict_schema(part) for name, part in fields.items()}
        kept = {name: part for name, part in kept.items() if name in required or is_strict(part)}
        fields = {
            name: part if name in required else {"anyOf": [part, {"type": "null"}]} for name, part in kept.items()
        }
        found |= {"properties": fields, "required": [*fields]}
    if isinstance(schema.get("items"), dict):
        found["items"] = strict_schema(schema["items"])
    if isinstance(schema.get("anyOf"), list):
        choices = [strict_schema(part) for part in schema["anyOf"]]
        found["anyOf"] = [choice for choice in choices if is_strict(choice)] or choices
    if isinstance(schema.get("$defs"), dict):
        found["$defs"] = {name: strict_schema(part) for name, part in schema["$defs"].items()}
    return found


def is_strict(schema: Any) -> bool:
    """Whether every object names its properties, requires them all and allows no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    named = schema.get("properties")
    if schema.get("type") == "object" or isinstance(named, dict):
        complete = isinstance(named, dict) and sorted(named) == sorted(schema.get("required", ()))
        if not complete or schema.get("additionalProperties") is not False:
            return False
    return all(is_strict(part) for name, part in schema.items() if name not in ("enum", "const"))


def schema_instruction(schema: Schema) -> str:
    """Return the instruction for a model whose server cannot be given a schema."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON value that fits this JSON Schema, and with nothing else:\n{text}"


def parse_json(text: str, schema: Schema, *, in_wrap: bool) -> Any:
    """Return the JSON value in a reply: all of it, inside a code fence, or what stands between words.

    `in_wrap` says that the server was given `wrapped(schema)`. Raises SchemaMismatch, which says where it breaks.
    """
    head, _, inside = text.strip().partition("\n")
    fenced = inside.endswith("```") and _FENCE.fullmatch(head)
    tried = [text, inside.removesuffix("```") if fenced else ""]
    starts = [(text.find(opening), closing) for opening, closing in ("{}", "[]") if opening in text]
    tried += [text[start : text.rfind(closing) + 1] for start, closing in sorted(starts)]
    why = ""
    for piece in filter(None, map(str.strip, tried)):
        try:
            value, end = decode(piece)
        except Unreadable as error:
            why = why or (f"; {error}" if piece[0] in "{[" else "")
            continue
        if end < len(piece):
            continue
        around = text.replace(piece, "", 1)
        if _KEY.search(around):
            why = "; more JSON stands beside the first"
            break
        if _EXAMPLE.search(around):
            why = "; what stands there is an example; write the answer alone"
            break
        wrap = in_wrap and schema.get("type") != "object" and isinstance(value, dict) and list(value) == [WRAP]
        return value[WRAP] if wrap else value
    raise SchemaMismatch(f"the model's output is not JSON: {' '.join(text.split())[:160]!r}{why}", retryable=True)
