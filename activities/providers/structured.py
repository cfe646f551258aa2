"""JSON of a given schema from a model: asked of the server where it can, in words where it cannot, and read."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sennit.activities.providers.errors import SchemaMismatch
from sennit.workflows.plan.planner_format.json_text import FoundJson, Unreadable, decode_whole, find_json

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
    """Return the JSON value in a reply: all of it, inside a code fence or tags, or what stands between words.

    `in_wrap` says that the server was given `wrapped(schema)`. Raises SchemaMismatch, which says where it breaks.
    """
    try:
        value = _value_in(text)
    except Unreadable as error:
        why = f"; {error}" if str(error) else ""
        shown = " ".join(text[:1_000].split())[:160]
        raise SchemaMismatch(f"the model's output is not JSON: {shown!r}{why}", retryable=True) from None
    is_wrap = in_wrap and schema.get("type") != "object" and isinstance(value, dict) and list(value) == [WRAP]
    return value[WRAP] if is_wrap else value


def _value_in(text: str) -> Any:
    """Return the only JSON value of a reply. Raises Unreadable, without a word if there is none."""
    # A number, a text or a word of JSON stands alone: between words it would be a guess.
    head, _, inside = text.strip().partition("\n")
    is_fenced = inside.endswith("```") and _FENCE.fullmatch(head) is not None
    with suppress(Unreadable):
        return decode_whole(inside.removesuffix("```") if is_fenced else text)

    found = _object_or_list_in(text)
    if found is None:
        raise Unreadable
    around = f"{found.before} {found.behind}"
    opening = "{" if isinstance(found.value, dict) else "["
    if _KEY.search(around) or opening in found.behind or not found.has_words_behind:
        raise Unreadable("more JSON stands beside the first")
    if _EXAMPLE.search(around):
        raise Unreadable("what stands there is an example; write the answer alone")
    return found.value


def _object_or_list_in(text: str) -> FoundJson | None:
    """Return the first object or list of a reply; an object also behind square brackets that are words."""
    try:
        return find_json(text)
    except Unreadable:
        start = text.find("{")
        if not 0 <= text.find("[") < start:
            raise
        with suppress(Unreadable):
            found = find_json(text[start:])
            return replace(found, before=text[:start]) if found is not None else None
        raise
